"""`anthropic`: the Messages API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.shape import AtLeastOne, Text
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget, text_of
from assay.targets.prices import cost
from assay.targets.reply import require, tool_call, usage

if TYPE_CHECKING:
    from assay.targets.http_client import HttpReply

API_VERSION = "2023-06-01"
#: The tool that the model is made to call when the reply must follow a schema.
REPLY_TOOL = "reply"


class AnthropicTarget(ChatTarget):
    """A Claude model. The API wants a limit of tokens, so there is a default."""

    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"

    provider: Text = "anthropic"
    base_url: Address = "https://api.anthropic.com"
    max_tokens: AtLeastOne = 1024

    def connect(self) -> Target:
        return _Messages(self)


class _Messages:
    def __init__(self, spec: AnthropicTarget) -> None:
        key = spec.api_key.get_secret_value() if spec.api_key else ""
        self.name = spec.label
        self._spec = spec
        self._url = f"{spec.base_url}/v1/messages"
        headers = {"anthropic-version": API_VERSION}
        self._http = spec.client({**headers, "x-api-key": key} if key else headers)

    async def ask(self, request: Request) -> Observation:
        reply = await self._http.post(self._url, self._body(request))
        return self._observation(reply, by_tool=request.reply_schema is not None)

    async def close(self) -> None:
        await self._http.close()

    def _body(self, request: Request) -> dict[str, Any]:
        """The system messages apart from the others; a schema as the tool that must be called."""
        turns = [(message.role, text_of(message)) for message in request.messages]
        system = "\n\n".join(text for role, text in turns if role == "system")
        body: dict[str, Any] = {
            "model": self._spec.model,
            "messages": [{"role": r, "content": text} for r, text in turns if r != "system"],
            **self._spec.sampling(),
        }
        if not body["messages"]:
            raise TargetError("the input has system messages only; the model needs a question")
        if system:
            body["system"] = system
        if request.reply_schema is not None:
            schema = dict(request.reply_schema)
            body["tools"] = [
                {"name": REPLY_TOOL, "description": "Give the answer.", "input_schema": schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": REPLY_TOOL}
        return body | self._spec.extra_body

    def _observation(self, reply: HttpReply, *, by_tool: bool) -> Observation:
        data = self._http.document(reply)
        reason = data.get("stop_reason")
        if reason == "refusal":
            raise TargetError("the model refused to answer (stop_reason: refusal)")
        response, calls = _content(require(data.get("content"), list, "the reply's 'content'"))
        answers = [call.input for call in calls if call.tool == REPLY_TOOL] if by_tool else []
        if answers:
            response, calls = json.dumps(answers[0], ensure_ascii=False), ()
        if not response.strip() and not calls:
            raise TargetError(f"the model sent an empty answer (stop_reason: {reason})")
        tokens = usage(data.get("usage"), "input_tokens", "output_tokens")
        return Observation(
            response,
            tool_calls=calls,
            usage=tokens,
            cost_usd=cost(self._spec.model, tokens, self._spec.prices),
            duration_ms=reply.duration_ms,
            llm_calls=1,
            notes=("the answer was cut at the limit of tokens",) if reason == "max_tokens" else (),
            raw=data,
        )


def _content(blocks: list[Any]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the calls of the blocks; what the model thought aside is left out."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for block in blocks:
        block = require(block, dict, "a content block of the reply")
        if block.get("type") == "text":
            texts.append(require(block.get("text"), str, "the text of a content block"))
        elif block.get("type") == "tool_use":
            name = require(block.get("name"), str, "the name of a called tool")
            calls.append(tool_call(name, block.get("input"), block.get("id")))
    return "".join(texts), tuple(calls)
