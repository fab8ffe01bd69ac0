"""`openai`: chat completions, of OpenAI or of any server that speaks the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.shape import Count, Text
from assay.observations import openai
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget, text_of
from assay.targets.prices import cost
from assay.targets.reply import observation

if TYPE_CHECKING:
    from assay.targets.http_client import HttpReply


class OpenAITarget(ChatTarget):
    """A model behind a chat-completions API."""

    key_variable: ClassVar[str] = "OPENAI_API_KEY"

    provider: Text = "openai"
    base_url: Address = "https://api.openai.com/v1"
    seed: Count | None = None

    def connect(self) -> Target:
        return _ChatCompletions(self)


class _ChatCompletions:
    def __init__(self, spec: OpenAITarget) -> None:
        key = spec.api_key.get_secret_value() if spec.api_key else ""
        self.name = spec.label
        self._spec = spec
        self._url = f"{spec.base_url}/chat/completions"
        self._http = spec.client({"Authorization": f"Bearer {key}"} if key else {})
        self._takes_schema = True

    async def ask(self, request: Request) -> Observation:
        body = {
            "model": self._spec.model,
            "messages": [_message(message) for message in request.messages],
            **self._spec.sampling("seed"),
            **self._spec.extra_body,
        }
        if request.reply_schema is None or not self._takes_schema:
            return self._observation(await self._http.post(self._url, body))
        shape = {"name": "reply", "strict": True, "schema": dict(request.reply_schema)}
        response_format = {"type": "json_schema", "json_schema": shape}
        reply = await self._http.post(self._url, {**body, "response_format": response_format})
        if not _refuses_schema(reply):
            return self._observation(reply)
        seen = self._observation(await self._http.post(self._url, body))
        self._takes_schema = False  # known only now: without it the request was fine
        return seen

    async def close(self) -> None:
        await self._http.close()

    def _observation(self, reply: HttpReply) -> Observation:
        data = self._http.document(reply)
        if not data.get("choices"):
            # Some gateways send an error with status 200.
            said = self._http.quote(str(data.get("error") or data))
            raise TargetError(f"the reply has no 'choices': {said}")
        seen = observation(data, openai.read)
        price = cost(self._spec.model, seen.usage, self._spec.prices)
        return replace(seen, cost_usd=price, duration_ms=reply.duration_ms)


def _message(message: Message) -> dict[str, Any]:
    wire = {"role": message.role, "content": text_of(message)}
    return {**wire, "name": message.name} if message.name else wire


def _refuses_schema(reply: HttpReply) -> bool:
    """Whether the server cannot take `response_format`, or not this one."""
    if reply.status not in (400, 422):
        return False
    return "response_format" in reply.text or "json_schema" in reply.text
