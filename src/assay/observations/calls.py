"""Calls that contain their own result, as in Assay's own form and AgentV's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.errors import nearest
from assay.model.message import ToolCall
from assay.observations.records import KEPT_AS_TEXT, Record, arguments, broken, error_text

_INPUT = ("params", "input", "args", "arguments")
_OUTPUT = ("result", "output")
_KEYS = frozenset(
    {
        *("name", "tool", *_INPUT, *_OUTPUT, "id", "durationMs", "duration_ms"),
        *("success", "error", "notes"),
    }
)


def read_call(record: Record) -> ToolCall:
    if "function" in record.raw:
        fault = "is an OpenAI call; such messages are read when 'response' is left out"
        raise broken(record.at, fault)
    error, success = error_text(record.get("error")), record.flag("success")
    given, notes = record.get(*_INPUT), record.texts("notes")
    if KEPT_AS_TEXT.isdisjoint(notes):  # else the call was read before: do not parse it again
        given, more = arguments(given)
        notes += more
    return ToolCall(
        tool=record.needed("name", "tool"),
        input=given,
        output=record.get(*_OUTPUT),
        id=record.text("id"),
        duration_ms=record.number("durationMs", "duration_ms"),
        success=False if success is None and error else success,
        error=error,
        notes=tuple(dict.fromkeys((*notes, *misspelt(record.raw, _KEYS)))),
    )


def misspelt(keys: Iterable[Any], known: frozenset[str]) -> list[str]:
    """Notes on unknown keys that resemble a known one; all others are the user's own."""
    unknown = [key for key in keys if isinstance(key, str) and key not in known]
    hints = {key: nearest(key, known, 0.85) for key in unknown}
    return [f"the key {key!r} is not known ({hint})" for key, hint in hints.items() if hint]
