"""Tool calls: in the forms of Assay and AgentV, and in those of all chat formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.errors import nearest
from assay.model.message import ToolCall
from assay.observations.records import (
    KEPT_AS_TEXT,
    RecordReader,
    arguments,
    broken,
    error_text,
    free_text,
    outcome,
)
from assay.redaction import cut

_INPUT = ("params", "input", "args", "arguments")
_OUTPUT = ("result", "output")
_KEYS = frozenset(
    {
        *("name", "tool", *_INPUT, *_OUTPUT, "id", "durationMs", "duration_ms"),
        *("success", "error", "notes"),
    }
)


def read_call(record: RecordReader) -> ToolCall:
    """A call that contains its own result, as in Assay's own form and AgentV's."""
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
        id=record.identity("id"),
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


# Chat formats

_NAMES = ("name", "toolName", "tool_name", "function_name", "tool")
_IDS = ("id", "tool_call_id", "toolCallId", "toolUseId", "call_id")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
#: Keys with mappings that are not the arguments of a call.
_NOT_ARGUMENTS = frozenset(
    {*_NAMES, *_IDS, *_OUTPUT, "function", "error", "view", "caller", "cache_control"}
)
#: The states in which a call of the AI SDK has ended, as success.
_SUCCESS = {"output-available": True, "output-error": False}


def read_chat_call(record: RecordReader, name: str | None = None) -> ToolCall:
    """A call of any chat format; `name` is given if the format has it elsewhere.

    OpenAI nests name and arguments in `function`, Inspect has the name there, LangChain names the
    arguments `args`, Anthropic `input`. The AI SDK has the result in the call.
    """
    call_id = record.identity(*_IDS)
    if isinstance(record.get("custom"), dict):
        custom = RecordReader(record.get("custom"), record.place("custom"))
        given, notes = free_text(custom.get("input"))
        return ToolCall(custom.needed("name"), given, id=call_id, notes=notes)
    inner, function = record, record.get("function")
    if isinstance(function, str):
        name = function
    elif function is not None:
        inner = RecordReader(function, record.place("function"))
    given, notes = arguments(inner.get(*_ARGUMENTS))
    error = error_text(record.get("errorText", "error", "parse_error"))
    state = record.get("state")
    return ToolCall(
        tool=name or inner.needed(*_NAMES),
        input=given,
        output=outcome(record.get(*_OUTPUT)),
        id=call_id,
        success=False if error else _SUCCESS.get(state) if isinstance(state, str) else None,
        error=error,
        notes=(*notes, *_without_arguments(inner)),
    )


def _without_arguments(record: RecordReader) -> tuple[str, ...]:
    """A note if a call has no arguments under a known key, but a mapping under another one."""
    if any(name in record.raw for name in _ARGUMENTS):
        return ()
    others = [
        repr(key)
        for key, value in record.raw.items()
        if isinstance(value, dict) and key not in _NOT_ARGUMENTS
    ]
    known = " or ".join(map(repr, _ARGUMENTS))
    fault = f"no arguments were found: the call has {cut(', '.join(others), 100)}, not {known}"
    return (fault,) if others else ()
