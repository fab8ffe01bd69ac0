"""`scripted`: answers that are written in the settings. For demos and tests.

A list of `replies` is given in the order of the requests; the last one is repeated. A mapping is
independent of that order: a reply is found by the id of the case, else by the first key that
occurs in the last user message. A list under a key has one reply for each repeat of the case; the
last one serves all later repeats.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo

from assay.errors import TargetError
from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.model.target import TargetSpec
from assay.ports import Request, Target
from assay.wire.fields import Count, Flag, Json, Number, Text
from assay.wire.shape import Shape
from assay.wire.validation_errors import problem, shown

Amount = Annotated[Number, Field(ge=0)]


class ScriptedCall(Shape):
    """A tool call, as a line of a replay file has it."""

    name: Text
    params: Json = None
    result: Json = None
    success: Flag | None = None
    error: str | None = None
    durationMs: Amount | None = None

    def call(self) -> ToolCall:
        return ToolCall(
            self.name,
            input=self.params,
            output=self.result,
            duration_ms=self.durationMs,
            success=self.success,
            error=self.error,
        )


class ScriptedUsage(Shape):
    inputTokens: Count | None = None
    outputTokens: Count | None = None


class ScriptedReply(Shape):
    """One answer, or an `error` in its place; `retryable` errors may be asked again.

    `response` that is not text is sent as JSON. `toolCalls: null` plays a target that
    does not report which tools it called.
    """

    response: Json = ""
    toolCalls: tuple[ScriptedCall, ...] | None = ()
    usage: ScriptedUsage | None = None
    costUsd: Amount | None = None
    durationMs: Amount | None = None
    llmCalls: Count | None = None
    error: Text | None = None
    retryable: Flag = False

    def observation(self) -> Observation:
        if self.error is not None:
            raise TargetError(self.error, retryable=self.retryable)
        text = self.response
        if not isinstance(text, str):
            text = json.dumps(text, ensure_ascii=False)
        calls, tokens = self.toolCalls, self.usage
        return Observation(
            text,
            tool_calls=None if calls is None else tuple(call.call() for call in calls),
            usage=Usage(tokens.inputTokens, tokens.outputTokens) if tokens else None,
            cost_usd=self.costUsd,
            duration_ms=self.durationMs,
            llm_calls=self.llmCalls,
        )


def _reply(raw: Any) -> Any:
    """A text alone is a response."""
    return {"response": raw} if isinstance(raw, str) else raw


def _listed(raw: Any) -> Any:
    return raw if isinstance(raw, list) else [raw]


Reply = Annotated[
    ScriptedReply, BeforeValidator(_reply, json_schema_input_type=str | ScriptedReply)
]
InOrder = Annotated[tuple[Reply, ...], Field(min_length=1)]
Keyed = Annotated[
    dict[
        Text, Annotated[InOrder, BeforeValidator(_listed, json_schema_input_type=Reply | InOrder)]
    ],
    Field(min_length=1),
]
_IN_ORDER: TypeAdapter[tuple[ScriptedReply, ...]] = TypeAdapter(InOrder)
_KEYED: TypeAdapter[dict[str, tuple[ScriptedReply, ...]]] = TypeAdapter(Keyed)


def _replies(raw: Any, info: ValidationInfo) -> Any:
    if isinstance(raw, (list, tuple)):
        return _IN_ORDER.validate_python(raw, context=info.context)
    if isinstance(raw, dict):
        return _KEYED.validate_python(raw, context=info.context)
    raise problem("wrong-type", f"is {shown(raw)}, neither a list of replies nor a mapping")


Replies = Annotated[
    tuple[ScriptedReply, ...] | dict[str, tuple[ScriptedReply, ...]],
    BeforeValidator(_replies, json_schema_input_type=InOrder | Keyed),
]


class ScriptedTarget(TargetSpec):
    """Gives the replies that are written in its settings."""

    provider: Text = "scripted"
    replies: Replies

    def connect(self) -> Target:
        return _Scripted(self)


class _Scripted:
    def __init__(self, spec: ScriptedTarget) -> None:
        self.name = spec.label
        self._replies = spec.replies
        self._asked = 0

    async def ask(self, request: Request) -> Observation:
        replies = self._replies
        if isinstance(replies, dict):
            found = _found(replies, request)
            return found[min(request.repeat, len(found) - 1)].observation()
        reply = replies[min(self._asked, len(replies) - 1)]
        self._asked += 1
        return reply.observation()

    async def close(self) -> None:
        pass


def _found(
    replies: dict[str, tuple[ScriptedReply, ...]], request: Request
) -> tuple[ScriptedReply, ...]:
    if request.case is not None and request.case.id in replies:
        return replies[request.case.id]
    users = [message.text for message in request.messages if message.role == "user"]
    question = users[-1] if users else ""
    for key, found in replies.items():
        if key in question:
            return found
    keys = ", ".join(repr(key) for key in list(replies)[:10])
    raise TargetError(f"no scripted reply matches {shown(question)}; the keys are {keys}")
