"""OpenAI chat messages: arguments are JSON text, results are messages of their own."""

from __future__ import annotations

from typing import Any

from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations.measures import measures, measures_of_replies
from assay.observations.pairing import REFUSED, Result, Turn, ending, observe, role_of
from assay.observations.records import (
    Record,
    arguments,
    broken,
    free_text,
    joined,
    message_list,
    outcome,
    records,
)


def fits(value: Any) -> bool:
    if isinstance(value, dict) and "choices" in value:
        return True
    found = message_list(value)
    if found is None:
        return False
    has_key = isinstance(value, dict) and "messages" in value
    return has_key or any(isinstance(item, dict) and "role" in item for item in found)


def read(value: Any) -> Observation:
    record = Record(value if isinstance(value, dict) else {})
    if "choices" in record.raw:
        return _completion(record, value)
    entries = records(message_list(value) or [], "messages")
    measured = measures_of_replies(record, entries)
    return observe([turn(entry) for entry in entries], measured, value)


def _completion(record: Record, raw: Any) -> Observation:
    """The first choice is the answer."""
    choices = record.records("choices")
    if not choices:
        return observe([], measures(record), raw)
    message = choices[0].record("message")
    if message is None:
        raise broken(choices[0].at, "has no 'message'")
    answer = turn(Record({**message.raw, "role": "assistant"}, message.at))
    notes = (REFUSED,) if message.text("refusal") else ending(choices[0].get("finish_reason"))
    observation = observe([answer], measures(record), raw)
    return observation.replace(notes=(*observation.notes, *notes))


def turn(record: Record) -> Turn:
    role, name = role_of(record), record.text("name")
    content = joined(record.get("content"))
    if role == "tool":
        call_id = record.text("tool_call_id", "id")
        return Turn(role, results=(Result(outcome(content), call_id, name),), name=name)
    calls = [_call(call) for call in record.records("tool_calls")]
    if (legacy := record.record("function_call")) is not None:
        calls.append(_function(legacy, None))
    return Turn(role, content or record.text("refusal") or content, tuple(calls), name=name)


def _call(record: Record) -> ToolCall:
    call_id = record.text("id")
    if (custom := record.record("custom")) is not None:
        given, notes = free_text(custom.get("input"))
        return ToolCall(custom.needed("name"), given, id=call_id, notes=notes)
    return _function(record.record("function") or record, call_id)


def _function(record: Record, call_id: str | None) -> ToolCall:
    given, notes = arguments(record.get("arguments"))
    return ToolCall(record.needed("name"), given, id=call_id, notes=notes)
