"""Anthropic messages: calls and results are content blocks."""

from __future__ import annotations

from typing import Any

from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations.measures import measures_of_replies
from assay.observations.pairing import Result, Turn, ending, observe, role_of
from assay.observations.records import (
    Record,
    arguments,
    as_text,
    broken,
    joined,
    message_list,
    outcome,
    records,
)


def fits(value: Any) -> bool:
    if isinstance(value, dict) and value.get("type") == "message" and "role" in value:
        return True
    return any(_is_block(b) for m in message_list(value) or () for b in _blocks(m))


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _is_block(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and (
        kind.endswith(("tool_use", "tool_result")) or kind in ("thinking", "redacted_thinking")
    )


def read(value: Any) -> Observation:
    record = Record(value if isinstance(value, dict) else {})
    entries = records(message_list(value) or [], "messages")
    turns = [turn(entry) for entry in entries]
    if (system := joined(record.get("system"))) is not None:
        turns.insert(0, Turn("system", system))
    observation = observe(turns, measures_of_replies(record, entries), value)
    notes = (*observation.notes, *ending(record.get("stop_reason")))
    return observation.replace(notes=notes)


def turn(record: Record) -> Turn:
    role, content = role_of(record), record.get("content")
    if not isinstance(content, list):
        return Turn(role, content)
    calls: list[ToolCall] = []
    results: list[Result] = []
    others: list[Any] = []
    for index, raw in enumerate(content):
        block = Record(raw, f"{record.place('content')}[{index}]")
        kind = block.needed("type")
        if kind.endswith("tool_use"):
            given, notes = arguments(block.get("input"))
            calls.append(ToolCall(block.needed("name"), given, id=block.text("id"), notes=notes))
        elif kind.endswith("tool_result"):
            results.append(_result(block))
        elif kind not in ("thinking", "redacted_thinking"):
            others.append(raw)
    if calls and role != "assistant":
        raise broken(record.place("content"), f"has a 'tool_use' of the role {role!r}")
    return Turn(role, joined(others), tuple(calls), tuple(results))


def _result(block: Record) -> Result:
    content = block.get("content")
    output, failed = joined(content), block.flag("is_error")
    if isinstance(content, dict) and "error_code" in content:  # of a tool that the provider runs
        output, failed = content["error_code"], True
    return Result(
        output=outcome(output),
        id=block.text("tool_use_id"),
        success=None if failed is None else not failed,
        error=(as_text(output, block.at) or "the tool failed") if failed else None,
    )
