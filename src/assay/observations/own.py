"""The interchange form: a line of a replay file, and what an HTTP agent answers."""

from __future__ import annotations

from typing import Any

from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.observations import agentv
from assay.observations.calls import read_call, slips
from assay.observations.measures import measures, read_usage
from assay.observations.pairing import last_said
from assay.observations.records import Record, as_text, error_text, is_measure

_KEYS = frozenset(
    {
        *("id", "response", "toolCalls", "usage", "costUsd", "durationMs", "llmCalls"),
        *("tool_calls", "cost_usd", "duration_ms", "llm_calls", "error", "notes", "messages"),
    }
)
#: The keys of nearly every line: no other spelling of them has to be looked for.
_COMMON = frozenset({"id", "response", "toolCalls", "durationMs", "costUsd", "usage", "llmCalls"})
_COMMON_OF_CALL = frozenset({"name", "params", "result", "success", "durationMs"})


def fits(value: Any) -> bool:
    return isinstance(value, dict) and ("response" in value or "toolCalls" in value)


def failed(value: Any) -> bool:
    """A mapping with an error and no answer, such as a provider's refusal."""
    return isinstance(value, dict) and error_text(value.get("error")) is not None


def read(value: Any) -> Observation:
    response = value.get("response")
    if type(response) is str and _COMMON.issuperset(value):
        return _common(response, value)
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


def _common(response: str, value: dict[str, Any]) -> Observation:
    if len(value) == 2 and "id" in value:
        return Observation(response, record=value)  # the barest replay: nothing left to check
    record, spent = Record(value), value.get("durationMs")
    return Observation(
        response,
        _calls(record),
        (),
        _usage(record) if "usage" in value else None,
        record.number("costUsd") if "costUsd" in value else None,
        spent if type(spent) is float and 0 <= spent < 1e300 else record.number("durationMs"),
        record.count("llmCalls") if "llmCalls" in value else None,
        record=value,
    )


def _usage(record: Record) -> Usage | None:
    """Tokens, mostly as two whole numbers and nothing else."""
    usage = record.raw["usage"]
    if type(usage) is dict and len(usage) == 2:
        read, written = usage.get("inputTokens"), usage.get("outputTokens")
        if type(read) is int and type(written) is int and min(read, written) >= 0:
            return Usage(read, written)
    return read_usage(record.record("usage"))


def _calls(record: Record) -> tuple[ToolCall, ...] | None:
    name, given = record.find("toolCalls", "tool_calls")
    if given is None:
        return None
    return _common_calls(given) or tuple(map(read_call, record.records(name)))


def _common_calls(given: Any) -> tuple[ToolCall, ...]:
    """The calls, when there is nothing in any of them that could be wrong or odd."""
    calls = []
    for raw in given if type(given) is list else ():
        if type(raw) is not dict or not _COMMON_OF_CALL.issuperset(raw):
            return ()
        name, params, success = raw.get("name"), raw.get("params"), raw.get("success")
        if type(name) is not str or not name or type(params) is str:
            return ()
        if success is not None and type(success) is not bool:
            return ()
        took = raw.get("durationMs")
        if took is not None and not is_measure(took):
            return ()
        calls.append(ToolCall(name, params, raw.get("result"), None, took, success))
    return tuple(calls)
