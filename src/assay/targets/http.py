"""`http`: an agent with an HTTP API of its own.

The body is a JSON value with placeholders for the question, and paths find the answer in the
reply. By default `{"message": ...}` is sent, and the reply is read in the interchange form.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator

from assay.errors import nearest
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.target import Need, TargetSpec
from assay.ports import Request, Target
from assay.targets.address import is_address, shown_url
from assay.targets.chat import Secret, question, text_of
from assay.targets.reply_paths import ReplyPaths, ReplyReader
from assay.wire.fields import Empty, Json, Positive, Text
from assay.wire.validation_errors import problem

PLACES = ("message", "messages", "id", "repeat", "conversation_id", "metadata")
_PLACE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def _check_places(text: str) -> None:
    for name in _PLACE.findall(text):
        if name not in PLACES:
            hint = nearest(name, PLACES) or f"known: {', '.join(PLACES)}"
            raise problem("wrong-value", f"the placeholder {{{{{name}}}}} is not known", hint)


def _url(value: str) -> str:
    if not is_address(value):
        raise problem("wrong-value", f"{value!r} is not an address", "https://host/path")
    parts = urlsplit(value)
    if parts.username is not None:
        hint = "put them in headers: Authorization"
        raise problem("wrong-value", "the address has a user name or password in it", hint)
    if _PLACE.search(parts.netloc):
        raise problem("wrong-value", "a case must not choose the host")
    _check_places(value)
    return value


def _body(value: Any) -> Any:
    if isinstance(value, str):
        _check_places(value)
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            _body(part)
    return value


class HttpTarget(TargetSpec):
    """An agent that is asked with one HTTP request."""

    default_body: ClassVar[Json] = {"message": "{{message}}"}

    provider: Text = "http"
    url: Annotated[Text, AfterValidator(_url)]
    method: Literal["POST", "GET", "PUT", "PATCH"] = "POST"
    headers: dict[str, Secret] = Empty(dict)
    body: Annotated[Json, AfterValidator(_body)] = None
    paths: ReplyPaths = ReplyPaths()
    timeout_seconds: Positive | None = None

    def needs(self) -> Iterator[Need]:
        yield Need("address", self.url)

    @classmethod
    def inline(cls, provider: str, name: str) -> dict[str, Any] | None:
        """An address in place of a target's name is the setting `url`."""
        return {"url": name} if name.startswith(("http:", "https:")) else None

    @property
    def label(self) -> str:
        return self.name if self.name not in ("", self.url) else shown_url(self.url)

    @property
    def identity(self) -> str:
        """With a hash of the query, which distinguishes targets but may hold a key."""
        query = hashlib.sha256(urlsplit(self.url).query.encode()).hexdigest()[:16]
        public = self.model_copy(update={"url": f"{shown_url(self.url)}?{query}"})
        return super(HttpTarget, public).identity

    def connect(self) -> Target:
        return Http(self)


class Http:
    """The connected target."""

    def __init__(self, spec: HttpTarget) -> None:
        from assay.targets.http_client import HttpClient  # aiohttp is slow to import

        headers = {name: value.get_secret_value() for name, value in spec.headers.items()}
        secrets = [word for value in headers.values() for word in value.split()]
        self.name = spec.label
        self._spec = spec
        self._body = spec.body
        if not spec.is_given("body") and spec.method != "GET":
            self._body = spec.default_body
        self._http = HttpClient(headers, timeout=spec.timeout_seconds, secrets=secrets)
        self._reader = ReplyReader(spec.paths)

    async def ask(self, request: Request) -> Observation:
        values = _values(request)
        url = _PLACE.sub(lambda place: quote(_text(values[place[1]]), safe=""), self._spec.url)
        body = None if self._body is None else _fill(self._body, values)
        reply = await self._http.send(self._spec.method, url, body)
        seen = self._reader.read(self._http.value(reply))
        took = reply.duration_ms if seen.duration_ms is None else seen.duration_ms
        return seen.replace(duration_ms=took)

    async def close(self) -> None:
        await self._http.close()

    def faults(self, kept: Iterable[Mapping[str, Any]]) -> list[str]:
        """The configured paths that led nowhere in any reply."""
        return self._reader.problems(kept)


def _values(request: Request) -> dict[str, Any]:
    case = request.case
    return {
        "message": question(request),
        "messages": [_message(message) for message in request.messages],
        "id": case.id if case else None,
        "repeat": request.repeat,
        "conversation_id": case.conversation_id if case else None,
        "metadata": dict(case.metadata) if case else {},
    }


def _message(message: Message) -> dict[str, Any]:
    """As in eval files, but with the content of files in place of their names."""
    wire = message.to_dict()
    return {**wire, "content": text_of(message)} if isinstance(message.content, tuple) else wire


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its placeholders filled in; one that is a whole text keeps its type."""
    if isinstance(template, dict):
        return {key: _fill(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [_fill(part, values) for part in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACE.fullmatch(template):
        return values[whole[1]]
    return _PLACE.sub(lambda place: _text(values[place[1]]), template)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
