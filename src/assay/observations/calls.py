"""A call that carries its own result, as our form and AgentV's have it."""

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
    if KEPT_AS_TEXT.isdisjoint(notes):  # else it was read before, and stays as it is
        given, odd = arguments(given)
        notes += odd
    return ToolCall(
        tool=record.needed("name", "tool"),
        input=given,
        output=record.get(*_OUTPUT),
        id=record.text("id"),
        duration_ms=record.number("durationMs", "duration_ms"),
        success=False if success is None and error else success,
        error=error,
        notes=tuple(dict.fromkeys((*notes, *slips(record.raw, _KEYS)))),
    )


def slips(keys: Iterable[Any], known: frozenset[str]) -> list[str]:
    """Other keys are the user's own, but one that is nearly ours was meant to be ours."""
    own = [key for key in keys if isinstance(key, str) and key not in known]
    hints = {key: nearest(key, known, 0.85) for key in own}
    return [f"the key {key!r} is not known ({hint})" for key, hint in hints.items() if hint]
