"""The interchange form: a line of a replay file, and what an HTTP agent answers."""

from __future__ import annotations

from typing import Any

from assay.model.message import ToolCall
from assay.model.observation import Observation
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
_PLAIN = frozenset({"name", "params", "result"})
_BARE = frozenset({"id", "response"})


def fits(value: Any) -> bool:
    return isinstance(value, dict) and ("response" in value or "toolCalls" in value)


def failed(value: Any) -> bool:
    """A mapping with an error and no answer, such as a provider's refusal."""
    return isinstance(value, dict) and error_text(value.get("error")) is not None


def read(value: Any) -> Observation:
    response = value.get("response")
    if type(response) is str and _BARE.issuperset(value):
        return Observation(response, raw=value)  # most replays: nothing left to check
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
    if type(given) is list and all(map(_is_plain, given)):  # as most are
        return tuple(ToolCall(raw["name"], raw.get("params"), raw.get("result")) for raw in given)
    return tuple(map(read_call, record.records(name)))


def _is_plain(raw: Any) -> bool:
    """A call with nothing in it that could be wrong."""
    return (
        type(raw) is dict
        and _PLAIN.issuperset(raw)
        and type(raw.get("name")) is str
        and raw["name"] != ""
        and type(raw.get("params")) is not str
    )
