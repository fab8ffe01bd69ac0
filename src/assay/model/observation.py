"""Observation: what a target did, the normal form of all transcripts, traces and replies."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec
from msgspec.structs import asdict, replace

from assay.model.json_encoding import as_json
from assay.model.message import Message, ToolCall
from assay.record import Record

Tokens = Annotated[int, msgspec.Meta(ge=0)]


class Usage(Record, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Tokens that a target reported; None means not reported."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    @property
    def total(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, int]:
        plain: dict[str, int] = msgspec.to_builtins(self)
        return plain


class Observation(Record, frozen=True, eq=False):
    """One answer of a target, and everything it did on the way.

    `tool_calls` is None when the target does not report its calls, and empty when it made none.
    Other fields are None when not reported. If there is an `error`, there is no answer, and
    `response` has no meaning. `raw` is what the observation was made from.
    """

    response: str = ""
    tool_calls: tuple[ToolCall, ...] | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    llm_calls: int | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    raw: Any = None

    def __eq__(self, other: object) -> bool:
        """Compare all fields but `raw`."""
        if type(other) is not type(self):
            return NotImplemented
        return self._fields_but_raw() == other._fields_but_raw()

    def __hash__(self) -> int:
        return hash(tuple(self._fields_but_raw().values()))

    def __repr__(self) -> str:
        fields = [f"{name}={value!r}" for name, value in self._fields_but_raw().items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def _fields_but_raw(self) -> dict[str, Any]:
        """All fields but `raw`, including those of subclasses."""
        fields = asdict(self)
        del fields["raw"]
        return fields

    def replace(self, **changes: Any) -> Self:
        """A copy with other values."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The interchange form, as in a line of a replay file."""
        result: dict[str, Any] = {"response": self.response}
        if self.tool_calls is not None:
            result["toolCalls"] = [observed(call) for call in self.tool_calls]
        if self.duration_ms is not None:
            result["durationMs"] = self.duration_ms
        if self.usage is not None:
            result["usage"] = self.usage.to_dict()
        if self.cost_usd is not None:
            result["costUsd"] = self.cost_usd
        if self.llm_calls is not None:
            result["llmCalls"] = self.llm_calls
        if self.error is not None:
            result["error"] = self.error
        if self.notes:
            result["notes"] = list(self.notes)
        if self.messages:
            result["messages"] = [_message_dict(message) for message in self.messages]
        return result

    def to_json(self, case_id: str) -> bytes:
        """A line of a replay file."""
        return as_json({"id": case_id} | self.to_dict())


def _message_dict(message: Message) -> dict[str, Any]:
    """A message as in eval files, with what was observed of its calls."""
    result = message.to_dict()
    for call, entry in zip(message.tool_calls, result.get("tool_calls", ()), strict=True):
        pairs = {"success": call.success, "error": call.error, "notes": list(call.notes) or None}
        entry.update({key: value for key, value in pairs.items() if value is not None})
    return result


def observed(call: ToolCall) -> dict[str, Any]:
    """A call in the interchange form."""
    result: dict[str, Any] = {"name": call.tool}
    if call.input is not None:
        result["params"] = call.input
    if call.output is not None:
        result["result"] = call.output
    if call.success is not None:
        result["success"] = call.success
    if call.error is not None:
        result["error"] = call.error
    if call.duration_ms is not None:
        result["durationMs"] = call.duration_ms
    if call.id is not None:
        result["id"] = call.id
    if call.notes:
        result["notes"] = list(call.notes)
    return result
