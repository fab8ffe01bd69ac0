"""The interchange form: a line of a replay file, and what an HTTP agent answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from assay.documents.document import MAX_DEPTH
from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.observations import agentv
from assay.observations.calls import read_call, slips
from assay.observations.measures import measures
from assay.observations.pairing import last_said
from assay.observations.records import Record, as_text, error_text

_KEYS = frozenset(
    {
        *("id", "response", "toolCalls", "usage", "costUsd", "durationMs", "llmCalls"),
        *("tool_calls", "cost_usd", "duration_ms", "llm_calls", "error", "notes", "messages"),
    }
)
#: A number that something can take.
_Measure = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, lt=1e300)]


class _PlainCall(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1)]
    params: Any = None
    result: Any = None
    success: bool | None = None
    duration_ms: _Measure | None = None


class _PlainLine(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What nearly every line is: nothing in it has another spelling, or could be wrong."""

    response: str
    id: str = ""
    tool_calls: list[_PlainCall] | None = None
    duration_ms: _Measure | None = None
    usage: Usage | None = None
    cost_usd: _Measure | None = None


_PLAIN = msgspec.json.Decoder(_PlainLine)


def read_plain(data: bytes) -> tuple[str, Observation] | None:
    """The id and the observation of a plain line; None when it has to be looked at closely."""
    # So few brackets cannot be nested too deeply.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        return None
    try:
        line = _PLAIN.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    used, calls = line.usage, None
    if used is not None and (used.input_tokens is None or used.output_tokens is None):
        return None
    if line.tool_calls is not None:
        calls = []
        for c in line.tool_calls:
            if type(c.params) is str:  # it may be JSON
                return None
            calls.append(ToolCall(c.name, c.params, c.result, None, c.duration_ms, c.success))
    said = (line.response, None if calls is None else tuple(calls), (), used)
    seen = Observation(*said, line.cost_usd, line.duration_ms, record=msgspec.Raw(data))
    return line.id, seen


def fits(value: Any) -> bool:
    return isinstance(value, dict) and ("response" in value or "toolCalls" in value)


def failed(value: Any) -> bool:
    """A mapping with an error and no answer, such as a provider's refusal."""
    return isinstance(value, dict) and error_text(value.get("error")) is not None


def read(value: Any) -> Observation:
    response = value.get("response")
    record = Record(value)
    measured = measures(record)
    notes = record.texts("notes")
    if not _KEYS.issuperset(value):
        notes = tuple(dict.fromkeys((*notes, *slips(value, _KEYS))))
    messages = tuple(agentv.message(m) for m in record.records("messages"))
    return Observation(
        response=last_said(messages) if response is None else as_text(response, "response"),
        tool_calls=_calls(record),
        messages=messages,
        usage=measured.usage,
        cost_usd=measured.cost_usd,
        duration_ms=measured.duration_ms,
        llm_calls=record.count("llmCalls", "llm_calls"),
        error=measured.error,
        notes=notes,
        record=value,
    )


def _calls(record: Record) -> tuple[ToolCall, ...] | None:
    name, given = record.find("toolCalls", "tool_calls")
    if given is None:
        return None
    return tuple(map(read_call, record.records(name)))
