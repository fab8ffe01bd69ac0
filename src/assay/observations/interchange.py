"""Assay's own interchange form: lines of replay files, and the answers of HTTP agents."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.observations import agentv
from assay.observations.calls import misspelt, read_call
from assay.observations.measures import measures
from assay.observations.pairing import Answer, last_said
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import MAX_WHOLE, RecordReader, as_text, error_text
from assay.wire.json import is_shallow

_KEYS = frozenset(
    {
        *("id", "response", "toolCalls", "usage", "costUsd", "durationMs", "llmCalls"),
        *("tool_calls", "cost_usd", "duration_ms", "llm_calls", "error", "notes", "messages"),
    }
)
#: A valid measurement, as `records.is_measure` has it.
_Measure = Annotated[int, Meta(ge=0, le=MAX_WHOLE)] | Annotated[float, Meta(ge=0, lt=1e300)]


class PlainCall(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1)]
    params: Any = None
    result: Any = None
    success: bool | None = None
    duration_ms: _Measure | None = None


class PlainRecord(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The form of nearly every line: canonical keys only, and nothing that needs a check."""

    response: str
    id: str = ""
    tool_calls: list[PlainCall] | None = None
    duration_ms: _Measure | None = None
    usage: Usage | None = None
    cost_usd: _Measure | None = None


_PLAIN = msgspec.json.Decoder(PlainRecord)


def plain_record(data: bytes) -> PlainRecord | None:
    """Decode a plain line; None if it needs the general reader."""
    try:
        record = _PLAIN.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    usage = record.usage
    if usage is not None and (usage.input_tokens is None or usage.output_tokens is None):
        return None
    flat = True
    for call in record.tool_calls or ():
        if type(call.params) is str:  # it may be JSON
            return None
        flat = flat and _is_flat(call.params) and _is_flat(call.result)
    return record if flat or is_shallow(data) else None


def _is_flat(value: Any) -> bool:
    """Is it a scalar, or a mapping of scalars?"""
    if type(value) is list:
        return False
    if type(value) is dict:
        for inside in value.values():
            if type(inside) in (dict, list):
                return False
    return True


def of_plain(record: PlainRecord, data: bytes) -> Observation:
    """The observation of a plain record; `data` is the JSON that it was decoded from."""
    calls = None
    if record.tool_calls is not None:
        calls = tuple(
            [
                ToolCall(c.name, c.params, c.result, None, c.duration_ms, c.success)
                for c in record.tool_calls
            ]
        )
    fields = (record.response, calls, (), record.usage, record.cost_usd, record.duration_ms)
    return Observation(*fields, raw=msgspec.json.decode(data))


def _fits(value: Any) -> bool:
    return isinstance(value, dict) and ("response" in value or "toolCalls" in value)


def _failed(value: Any) -> bool:
    """Is it a mapping with an error and no answer, such as a provider's error response?"""
    return isinstance(value, dict) and error_text(value.get("error")) is not None


def read(value: Any) -> Observation:
    response = value.get("response")
    record = RecordReader(value)
    measured = measures(record)
    notes = record.texts("notes")
    if not _KEYS.issuperset(value):
        notes = tuple(dict.fromkeys((*notes, *misspelt(value, _KEYS))))
    messages = tuple(agentv.message(m) for m in record.records("messages"))
    answer = Answer(as_text(response, "response"))
    if response is None and messages:
        answer = last_said(messages)
    elif "response" not in value:
        answer = Answer(unknown="; ".join(("there is no 'response'", *notes)))
    return Observation(
        response=answer.text,
        tool_calls=_calls(record),
        messages=messages,
        usage=measured.usage,
        cost_usd=measured.cost_usd,
        duration_ms=measured.duration_ms,
        llm_calls=record.count("llmCalls", "llm_calls"),
        error=measured.error or answer.error,
        notes=(*notes, *(note for note in answer.notes if note not in notes)),
        raw=value,
    )


def _calls(record: RecordReader) -> tuple[ToolCall, ...] | None:
    name, given = record.find("toolCalls", "tool_calls")
    if given is None:
        return None
    return tuple(map(read_call, record.records(name)))


FORMAT = RecordFormat("Assay", (Need("'response' or 'toolCalls'", _fits),), read)
#: An error without an answer, such as the error response of a provider.
FAILURE = RecordFormat("failure", (Need("'error'", _failed),), read)
