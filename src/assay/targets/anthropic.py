"""`anthropic`: the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations import anthropic
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget
from assay.targets.conversation import Body, Turn, converse
from assay.targets.prices import cost
from assay.targets.reply import observation, require
from assay.targets.tools import Answer, offered
from assay.targets.transcript import Step, steps
from assay.wire.fields import AtLeastOne, Text

if TYPE_CHECKING:
    from assay.targets.http_client import HttpReply

API_VERSION = "2023-06-01"
#: The tool that the model is forced to call if the reply must follow a schema.
REPLY_TOOL = "reply"


class AnthropicTarget(ChatTarget):
    """A Claude model. The API requires a limit of tokens, so there is a default."""

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
        self._functions = spec.functions()
        self._tools = (*spec.definitions, *self._functions.definitions)
        self._url = f"{spec.base_url}/v1/messages"
        headers = {"anthropic-version": API_VERSION}
        self._http = spec.client({**headers, "x-api-key": key} if key else headers)

    async def ask(self, request: Request) -> Observation:
        return await converse(self, request, self._tools, self._functions)

    def requests(self, seen: Observation) -> int:
        return seen.llm_calls or 1

    async def reply(self, body: Body, request: Request) -> Observation:
        reply = await self._http.post(self._url, body)
        return self._observation(reply, by_tool=request.reply_schema is not None)

    async def close(self) -> None:
        await self._functions.close()
        await self._http.close()

    def opening(self, request: Request) -> Body:
        """The body of the first request; the API takes system messages in a separate field."""
        transcript = steps(request.messages)
        system = "\n\n".join(step.text for step in transcript if step.role == "system")
        body: Body = {
            "model": self._spec.model,
            "messages": [
                message
                for step in transcript
                if step.role != "system"
                for message in _messages(step)
            ],
            **self._spec.sampling(),
        }
        if not body["messages"]:
            raise TargetError("the input has system messages only; the model needs a question")
        if system:
            body["system"] = system
        return body | self._tool_keys(request, transcript) | self._spec.extra_body

    def continued(self, body: Body, turn: Turn) -> Body:
        """Blocks go back unchanged but for missing ids, as thinking blocks are signed."""
        ids = iter(turn.message.tool_calls)
        blocks = [
            {**block, "id": next(ids).id} if block["type"].endswith("tool_use") else block
            for block in turn.seen.raw["content"]
        ]
        echo = {"role": "assistant", "content": blocks}
        return {**body, "messages": [*body["messages"], echo, _results(turn.answers)]}

    def _tool_keys(self, request: Request, transcript: Sequence[Step]) -> Body:
        """The tools, also those that the input calls; a reply schema is one that must be called."""
        if request.reply_schema is not None:
            schema = dict(request.reply_schema)
            tool = {"name": REPLY_TOOL, "description": "Give the answer.", "input_schema": schema}
            return {"tools": [tool], "tool_choice": {"type": "tool", "name": REPLY_TOOL}}
        called = [answer.call.tool for step in transcript for answer in step.answers]
        stubs = request.case.stubs if request.case else ()
        tools = offered(self._tools, [*stubs, *called])
        return {"tools": [tool.wire("input_schema") for tool in tools]} if tools else {}

    def _observation(self, reply: HttpReply, *, by_tool: bool) -> Observation:
        data = self._http.document(reply)
        require(data.get("content"), list, "the reply's 'content'")
        seen = observation({**data, "role": "assistant"}, anthropic.read)
        answers = [call.input for call in seen.tool_calls or () if call.tool == REPLY_TOOL]
        if by_tool and answers:
            text = json.dumps(answers[0], ensure_ascii=False)
            seen = seen.replace(response=text, tool_calls=())
        price = cost(self._spec.model, seen.usage, self._spec.prices)
        return seen.replace(cost_usd=price, duration_ms=reply.duration_ms, raw=data)


def _messages(step: Step) -> list[dict[str, Any]]:
    """The message of a step, and one message with the results of its calls."""
    if not step.answers:
        return [{"role": step.role, "content": step.text}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
    blocks += [_call(answer.call) for answer in step.answers]
    return [{"role": step.role, "content": blocks}, _results(step.answers)]


def _call(call: ToolCall) -> dict[str, Any]:
    """A call; the API takes only objects as arguments."""
    given = {} if call.input is None else call.input
    arguments = given if isinstance(given, dict) else {"input": given}
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": arguments}


def _results(answers: Iterable[Answer]) -> dict[str, Any]:
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": answer.call.id,
            "content": answer.text,
            **({"is_error": True} if answer.failed else {}),
        }
        for answer in answers
    ]
    return {"role": "user", "content": blocks}
