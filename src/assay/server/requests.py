"""Requests as the routes take them: known query parameters, and a JSON body within limits."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from typing import Any
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import EvalFileErrors, nearest
from assay.redaction import cut
from assay.server.envelope import JSON, ApiError, described_errors, invalid
from assay.wire.json import parse, plain_object

#: The largest body that is accepted, in bytes.
MAX_BODY = 1024 * 1024
#: How much of a larger body is read and discarded, so that its sender gets to see the error.
MAX_DRAINED = 8 * 1024 * 1024
#: How long a body may take to arrive.
BODY_SECONDS = 30.0


class Route(APIRoute):
    """A route of the API: FastAPI parses its requests after these checks."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        described = {"operation_id": endpoint.__name__, "tags": [path.split("/")[2]]}
        if not {"GET", "HEAD"}.issuperset(more["methods"]):
            more["responses"] = more["responses"] | described_errors("FORBIDDEN")
        super().__init__(path, endpoint, **more | described)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_query = bool(self.dependant.query_params)

        async def checked(request: Request) -> Response:
            check_query(request, takes_query=takes_query)
            if self.body_field is not None:
                require_json(request)
                request = JsonRequest(request.scope, request.receive)
            return await handle(request)

        return checked


class JsonRequest(Request):
    """A request whose body is JSON, limited in size and time."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = await read_body(self)
        return self._body

    async def json(self) -> Any:
        """The body; a malformed one is a list with its ApiError, which no model takes.

        The error is not raised here: whether the resource exists comes first.
        """
        if not hasattr(self, "_json"):
            try:
                self._json = _parse_json(await self.body())
            except ApiError as error:
                self._json = [error]
        return self._json


def check_query(request: Request, *, takes_query: bool = False) -> None:
    """Refuse a query parameter that is given twice, or any where none is taken."""
    raw: bytes = request.scope["query_string"]
    if not raw:
        return
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        raise invalid("The query is not UTF-8") from None
    for name, times in Counter(name for name, _ in pairs).items():
        if not takes_query:
            raise unknown("Query parameter", name, ())
        if times > 1:
            raise invalid(f"Query parameter {quoted(name)} is given twice")


def unknown(what: str, name: str, known: Collection[str]) -> ApiError:
    hint = nearest(name, known)
    return invalid(f"{what} {quoted(name)} is not known" + (f"; {hint}" if hint else ""))


def require_json(request: Request) -> None:
    """Refuse other content types: an HTML form of another site could send those."""
    headers = request.headers.getlist("content-type")
    if len(headers) > 1:  # a proxy may go by another one than we do
        message = f"A request must have one Content-Type header, and this has {len(headers)}"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", message)
    header = headers[0] if headers else ""
    kind, *parameters = (part.strip().lower() for part in header.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    charsets = [value.strip('"') for name, _, value in pairs if name == "charset"]
    if kind != JSON or not {"utf-8", "utf8"}.issuperset(charsets):
        found = f"Content-Type is {quoted(header)}" if header else "Content-Type is missing"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", f"{found}; it must be {JSON}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        message = f"Content-Encoding is {quoted(encoding)}; send the body as it is"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", message)


async def read_body(request: Request) -> bytes:
    """The body, limited in size and time."""
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MAX_BODY:
                    chunks.append(chunk)
                elif size > MAX_DRAINED:
                    break
    except TimeoutError:
        late = f"The body did not arrive within {BODY_SECONDS:g} seconds"
        raise ApiError("INVALID_INPUT", late, {"connection": "close"}) from None
    if size <= MAX_BODY:
        return b"".join(chunks)
    message = f"The body is larger than {MAX_BODY} bytes"
    raise ApiError("PAYLOAD_TOO_LARGE", message, {"connection": "close"})


def _parse_json(raw: bytes) -> Any:
    """The body, read by the rules of eval files."""
    if (plain := plain_object(raw)) is not None:
        return plain
    try:
        document = parse(raw.decode(), "body")
        # Text that cannot be stored is a problem of its field, see `problems`.
        faults = [fault for fault in document.problems if fault.code != "bad-character"]
        if not faults:
            return json.loads(raw) if document.problems else document.data
    except UnicodeDecodeError:
        raise invalid("Malformed JSON: the body is not UTF-8") from None
    except EvalFileErrors as error:
        faults = list(error.problems)
    place = f"line {faults[0].line}, column {faults[0].column}"
    raise invalid(f"Malformed JSON: {place}: {faults[0].advice}")


def quoted(name: str) -> str:
    """Text from a request, shortened, quoted, and safe to encode as JSON."""
    short = cut(name, 53)
    return repr(short.encode("utf-8", "backslashreplace").decode())
