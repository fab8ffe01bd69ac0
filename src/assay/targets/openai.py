"""`openai`: chat completions, of OpenAI or of any server that speaks the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation
from assay.model.shape import Count, Text
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget, text_of
from assay.targets.prices import cost
from assay.targets.reply import require, tool_call, usage

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
        observation = self._observation(await self._http.post(self._url, body))
        self._takes_schema = False  # known only now: without it the request was fine
        return observation

    async def close(self) -> None:
        await self._http.close()

    def _observation(self, reply: HttpReply) -> Observation:
        data = self._http.document(reply)
        choice = self._first_choice(data)
        message = require(choice.get("message"), dict, "the reply's 'message'")
        reason = choice.get("finish_reason")
        if message.get("refusal"):
            raise TargetError(f"the model refused: {self._http.quote(str(message['refusal']))}")
        if reason == "content_filter":
            raise TargetError("the provider's content filter removed the answer")
        response, calls = _text(message.get("content")), _tool_calls(message)
        if not response.strip() and not calls:
            raise TargetError(f"the model sent an empty answer (finish_reason: {reason})")
        tokens = usage(data.get("usage"), "prompt_tokens", "completion_tokens")
        return Observation(
            response,
            tool_calls=calls,
            usage=tokens,
            cost_usd=cost(self._spec.model, tokens, self._spec.prices),
            duration_ms=reply.duration_ms,
            llm_calls=1,
            notes=("the answer was cut at the limit of tokens",) if reason == "length" else (),
            raw=data,
        )

    def _first_choice(self, data: dict[str, Any]) -> dict[str, Any]:
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            # Some gateways send an error with status 200.
            said = self._http.quote(str(data.get("error") or data))
            raise TargetError(f"the reply has no 'choices': {said}")
        return require(choices[0], dict, "the reply's first choice")


def _message(message: Message) -> dict[str, Any]:
    wire = {"role": message.role, "content": text_of(message)}
    return {**wire, "name": message.name} if message.name else wire


def _refuses_schema(reply: HttpReply) -> bool:
    """Whether the server cannot take `response_format`, or not this one."""
    if reply.status not in (400, 422):
        return False
    return "response_format" in reply.text or "json_schema" in reply.text


def _text(content: Any) -> str:
    """The text of a message; some servers send a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in parts if isinstance(text, str))
    return "" if content is None else require(content, str, "the reply's 'content'")


def _tool_calls(message: dict[str, Any]) -> tuple[ToolCall, ...]:
    calls = []
    for call in require(message.get("tool_calls") or [], list, "the reply's 'tool_calls'"):
        call = require(call, dict, "a tool call of the reply")
        function = require(call.get("function"), dict, "the 'function' of a tool call")
        name = require(function.get("name"), str, "the name of a called tool")
        calls.append(tool_call(name, function.get("arguments"), call.get("id")))
    return tuple(calls)
