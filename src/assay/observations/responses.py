"""OpenAI Responses: a flat list of items, with calls and results beside messages."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations.measures import measures
from assay.observations.pairing import Result, Turn, observe, role_of
from assay.observations.records import (
    Record,
    arguments,
    error_text,
    free_text,
    joined,
    outcome,
    records,
)

#: The status of a call that the provider ran itself, as success.
_SUCCESS = {"completed": True, "failed": False}
#: The keys of such a call that are not its input.
_NOT_INPUT = ("type", "id", "call_id", "status", "output", "error")


def fits(value: Any) -> bool:
    if isinstance(value, dict):
        if value.get("object") == "response" or isinstance(value.get("output"), list):
            return True
        value = [value]
    return isinstance(value, list) and any(map(_is_item, value))


def _is_item(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    kind, content = item.get("type"), item.get("content")
    if isinstance(kind, str) and (kind == "reasoning" or kind.endswith(("_call", "_call_output"))):
        return True
    blocks = content if isinstance(content, list) else []
    return any(
        isinstance(b, dict) and b.get("type") in ("input_text", "output_text") for b in blocks
    )


def read(value: Any) -> Observation:
    if isinstance(value, dict) and not _is_item(value):
        record = Record(value)
        items = record.records("output")
        if isinstance(value.get("input"), list):
            items = [*record.records("input"), *items]
    else:
        record = Record({})
        items = records(value if isinstance(value, list) else [value], "output")
    turns, replies = _turns(items)
    return observe(turns, measures(record), value, llm_calls=replies)


def _turns(items: list[Record]) -> tuple[list[Turn], int]:
    """The turns, and the number of replies; consecutive items of the model are one reply."""
    turns: list[Turn] = []
    replies, replying = 0, False
    for item in items:
        turn = _turn(item)
        by_model = item.get("type") == "reasoning" or (
            turn is not None and turn.role == "assistant"
        )
        replies += by_model and not replying
        if turn is None:
            replying = replying or by_model
            continue
        last = turns[-1] if turns and replying and turns[-1].role == "assistant" else None
        if by_model and last is not None and (last.content is None or turn.content is None):
            content = turn.content if last.content is None else last.content
            turns[-1] = replace(last, content=content, calls=(*last.calls, *turn.calls))
        else:
            turns.append(turn)
        replying = by_model
    return turns, replies


def _turn(item: Record) -> Turn | None:
    kind = item.text("type") or "message"
    if kind == "message":
        return Turn(role_of(item), joined(item.get("content")))
    if kind.endswith("_call_output"):
        output = outcome(joined(item.get("output")))
        return Turn("tool", results=(Result(output, item.text("call_id")),))
    if kind.endswith("_call"):
        return Turn("assistant", calls=(_call(item, kind),))
    return None  # reasoning, references, lists of tools: neither messages nor calls


def _call(item: Record, kind: str) -> ToolCall:
    call_id = item.text("call_id")
    if kind == "function_call":
        given, notes = arguments(item.get("arguments"))
        return ToolCall(item.needed("name"), given, id=call_id or item.text("id"), notes=notes)
    if kind == "custom_tool_call":
        given, notes = free_text(item.get("input"))
        return ToolCall(item.needed("name"), given, id=call_id, notes=notes)
    tool = kind.removesuffix("_call") or kind
    if call_id:  # run by the client, which sends the output
        given, notes = free_text(item.get("action"))
        return ToolCall(tool, given, id=call_id, notes=notes)
    return _hosted(item, tool)


def _hosted(item: Record, tool: str) -> ToolCall:
    """A call that the provider ran itself: a search, or a tool of an MCP server."""
    error = error_text(item.get("error"))
    given, notes = arguments(item.get("arguments"))
    if given is None:
        given = {key: value for key, value in item.raw.items() if key not in _NOT_INPUT}
    return ToolCall(
        tool=item.text("name") or tool,
        input=given,
        output=outcome(item.get("output")),
        id=item.text("id"),
        success=False if error else _SUCCESS.get(item.text("status") or ""),
        error=error,
        notes=notes,
    )
