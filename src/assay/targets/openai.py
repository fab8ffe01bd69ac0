"""`openai`: chat completions, of OpenAI or any server with the same API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, ClassVar

from assay.errors import TargetError
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations import openai
from assay.ports import Request, Target
from assay.targets.chat import Address, ChatTarget
from assay.targets.conversation import Body, Turn, converse
from assay.targets.prices import cost
from assay.targets.reply import observation
from assay.targets.tools import Answer, offered
from assay.targets.transcript import Step, steps
from assay.wire.fields import Count, Text

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
        self._functions = spec.functions()
        self._tools = (*spec.definitions, *self._functions.definitions)
        self._url = f"{spec.base_url}/chat/completions"
        self._http = spec.client({"Authorization": f"Bearer {key}"} if key else {})
        self._takes_schema = True

    async def ask(self, request: Request) -> Observation:
        return await converse(self, request, self._tools, self._functions)

    def requests(self, seen: Observation) -> int:
        return seen.llm_calls or 1

    def opening(self, request: Request) -> Body:
        messages = [wire for step in steps(request.messages) for wire in _messages(step)]
        body = {"model": self._spec.model, "messages": messages, **self._spec.sampling("seed")}
        tools = offered(self._tools, request.case.stubs if request.case else ())
        if tools and request.reply_schema is None:
            functions = [tool.wire("parameters") for tool in tools]
            body["tools"] = [{"type": "function", "function": each} for each in functions]
        return {**body, **self._spec.extra_body}

    async def reply(self, body: Body, request: Request) -> Observation:
        if request.reply_schema is None or not self._takes_schema:
            return self._observation(await self._http.post(self._url, body))
        shape = {"name": "reply", "strict": True, "schema": dict(request.reply_schema)}
        response_format = {"type": "json_schema", "json_schema": shape}
        reply = await self._http.post(self._url, {**body, "response_format": response_format})
        if not _refuses_schema(reply):
            return self._observation(reply)
        seen = self._observation(await self._http.post(self._url, body))
        self._takes_schema = False  # only now: without the schema the request succeeded
        return seen

    def continued(self, body: Body, turn: Turn) -> Body:
        message = turn.seen.raw["choices"][0]["message"]
        # A call in the old form, 'function_call', has no entry in 'tool_calls'.
        raw = chain(message.get("tool_calls") or (), repeat({}))
        calls = [_echo(*pair) for pair in zip(turn.message.tool_calls, raw, strict=False)]
        echo = {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
        return {**body, "messages": [*body["messages"], echo, *_results(turn.answers)]}

    async def close(self) -> None:
        await self._functions.close()
        await self._http.close()

    def _observation(self, reply: HttpReply) -> Observation:
        data = self._http.document(reply)
        if not data.get("choices"):
            # Some gateways send errors with status 200.
            body = self._http.quote(str(data.get("error") or data))
            raise TargetError(f"the reply has no 'choices': {body}")
        seen = observation(data, openai.read)
        price = cost(self._spec.model, seen.usage, self._spec.prices)
        return seen.replace(cost_usd=price, duration_ms=reply.duration_ms)


def _messages(step: Step) -> list[dict[str, Any]]:
    """The message of a step, and one message per result."""
    wire: dict[str, Any] = {"role": step.role, "content": step.text}
    if step.name:
        wire["name"] = step.name
    if step.answers:
        wire["content"] = step.text or None
        wire["tool_calls"] = [_call(answer.call) for answer in step.answers]
    return [wire, *_results(step.answers)]


def _call(call: ToolCall) -> dict[str, Any]:
    """A call; its arguments are a text with JSON."""
    arguments = json.dumps({} if call.input is None else call.input, ensure_ascii=False)
    function = {"name": call.tool, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _echo(call: ToolCall, raw: dict[str, Any]) -> dict[str, Any]:
    """A call as the model made it, with an id, and with the provider's own keys."""
    if "custom" in raw:
        return {**raw, "id": call.id}
    echo, function = {**raw, **_call(call)}, raw.get("function")
    if isinstance(function, dict) and isinstance(function.get("arguments"), str):
        echo["function"] = function  # unchanged, as its arguments may not be valid JSON
    return echo


def _results(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text}
        for answer in answers
    ]


def _refuses_schema(reply: HttpReply) -> bool:
    """Does the server reject `response_format`, or this schema?"""
    if reply.status not in (400, 422):
        return False
    return "response_format" in reply.text or "json_schema" in reply.text
