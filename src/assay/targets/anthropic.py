"""`anthropic`: the Messages API."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.observation import Observation
from assay.model.shape import AtLeastOne, Text
from assay.observations import anthropic
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget, text_of
from assay.targets.prices import cost
from assay.targets.reply import observation, require

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
        require(data.get("content"), list, "the reply's 'content'")
        seen = observation({**data, "role": "assistant"}, anthropic.read)
        answers = [call.input for call in seen.tool_calls or () if call.tool == REPLY_TOOL]
        if by_tool and answers:
            text = json.dumps(answers[0], ensure_ascii=False)
            seen = replace(seen, response=text, tool_calls=())
        price = cost(self._spec.model, seen.usage, self._spec.prices)
        return replace(seen, cost_usd=price, duration_ms=reply.duration_ms, raw=data)
