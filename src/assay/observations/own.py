"""The interchange form: a line of a replay file, and what an HTTP agent answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from assay.documents.json import is_shallow
from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.observations import agentv
from assay.observations.calls import read_call, slips
from assay.observations.measures import measures
from assay.observations.pairing import last_said
from assay.observations.records import MAX_WHOLE, Record, as_text, error_text

_KEYS = frozenset(
    {
        *("id", "response", "toolCalls", "usage", "costUsd", "durationMs", "llmCalls"),
        *("tool_calls", "cost_usd", "duration_ms", "llm_calls", "error", "notes", "messages"),
    }
)
#: A number that something can take.
_Measure = Annotated[int, Meta(ge=0, le=MAX_WHOLE)] | Annotated[float, Meta(ge=0, lt=1e300)]


class PlainCall(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1)]
    params: Any = None
    result: Any = None
    success: bool | None = None
    duration_ms: _Measure | None = None


class PlainRecord(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What nearly every line is: nothing in it has another spelling, or could be wrong."""

    response: str
    id: str = ""
    tool_calls: list[PlainCall] | None = None
    duration_ms: _Measure | None = None
    usage: Usage | None = None
    cost_usd: _Measure | None = None


_PLAIN = msgspec.json.Decoder(PlainRecord)


def plain_record(data: bytes) -> PlainRecord | None:
    """What a plain line says; None when it has to be looked at closely."""
    try:
        line = _PLAIN.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    used = line.usage
    if used is not None and (used.input_tokens is None or used.output_tokens is None):
        return None
    flat = True
    for call in line.tool_calls or ():
        if type(call.params) is str:  # it may be JSON
            return None
        flat = flat and _is_flat(call.params) and _is_flat(call.result)
    return line if flat or is_shallow(data) else None


def _is_flat(value: Any) -> bool:
    """Whether nothing is nested in it."""
    if type(value) is list:
        return False
    if type(value) is dict:
        for inside in value.values():
            if type(inside) in (dict, list):
                return False
    return True


def of_plain(line: PlainRecord, data: bytes) -> Observation:
    """The observation that a plain line tells of."""
    calls = None
    if line.tool_calls is not None:
        calls = tuple(
            [
                ToolCall(c.name, c.params, c.result, None, c.duration_ms, c.success)
                for c in line.tool_calls
            ]
        )
    said = (line.response, calls, (), line.usage, line.cost_usd, line.duration_ms)
    return Observation(*said, raw=msgspec.json.decode(data))


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
        raw=value,
    )


def _calls(record: Record) -> tuple[ToolCall, ...] | None:
    name, given = record.find("toolCalls", "tool_calls")
    if given is None:
        return None
    return tuple(map(read_call, record.records(name)))
