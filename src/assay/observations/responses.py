"""OpenAI Responses: a flat list of items, which are messages, calls and results."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations import chat
from assay.observations.measures import measures
from assay.observations.pairing import Result, Turn, ending, observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import (
    RecordReader,
    arguments,
    as_text,
    error_text,
    free_text,
    joined,
    outcome,
    records,
)
from assay.wire.validation_errors import shown

#: The status of a call that the provider ran itself, as success.
_SUCCESS = {"completed": True, "failed": False}
#: Where such a call has its result: code has outputs, a search in files results, an image a result.
_OUTPUTS = ("output", "outputs", "results", "result")
#: The keys of such a call that are neither its input nor its result.
_NOT_INPUT = ("type", "id", "call_id", "status", "error", "container_id")
_INCOMPLETE = "the response is incomplete"
#: Responses that have not ended, or were ended by their client.
_UNFINISHED = ("queued", "in_progress", "cancelled")


def _has_items(value: Any) -> bool:
    """Is it a response, which is known by its `output`, or are there items?"""
    if isinstance(value, dict) and value.get("object") == "response":
        return True
    if isinstance(value, dict) and isinstance(value.get("output"), list):
        return not any(isinstance(item, dict) and "tool_calls" in item for item in value["output"])
    return any(map(_is_item, _items(value)))


def _items(value: Any) -> list[Any]:
    """A list of items, alone or under `messages`, or an item alone."""
    if isinstance(value, dict):
        value = value.get("messages", [value])
    return value if isinstance(value, list) else []


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
    items = _items(value)
    if not any(map(_is_item, items)):
        return _read_response(RecordReader(value), value)
    record = RecordReader(value if isinstance(value, dict) and "messages" in value else {})
    found = records(items, "output")
    turns, replies = _turns(found)
    observation = observe(turns, measures(record), value, llm_calls=replies)
    cut = any(item.get("status") == "incomplete" for item in found)
    return observation.replace(notes=(*observation.notes, _INCOMPLETE)) if cut else observation


def _read_response(record: RecordReader, raw: Any) -> Observation:
    items, status = record.records("output"), record.get("status")
    if isinstance(record.get("input"), list):
        items = [*record.records("input"), *items]
    turns, replies = _turns(items)
    unknown = None
    if status in _UNFINISHED:
        unknown = f"the status of the response is {status!r}"
    observation = observe(
        turns,
        measures(record),
        raw,
        llm_calls=replies,
        is_reply=status is not None,
        unknown=unknown,
    )
    if status != "incomplete":
        return observation
    details = record.record("incomplete_details") or RecordReader({})
    reason = details.get("reason")
    notes = ending(reason) or (f"{_INCOMPLETE}: {shown(reason)}",)
    return observation.replace(notes=tuple(dict.fromkeys((*observation.notes, *notes))))


def _turns(items: list[RecordReader]) -> tuple[list[Turn], int]:
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
            calls, notes = (*last.calls, *turn.calls), (*last.notes, *turn.notes)
            turns[-1] = replace(last, content=content, calls=calls, notes=notes)
        else:
            turns.append(turn)
        replying = by_model
    return turns, replies


def _turn(item: RecordReader) -> Turn | None:
    kind = item.text("type") or "message"
    if kind == "message":
        return chat.turn(item)
    if kind.endswith("_call_output"):
        output = outcome(joined(item.get("output")))
        failed = item.get("status") == "failed"
        result = Result(
            output=output,
            id=item.identity("call_id"),
            success=False if failed else None,
            error=(as_text(output, item.at) or "the tool failed") if failed else None,
        )
        return Turn("tool", results=(result,))
    if kind.endswith("_call"):
        return Turn("assistant", calls=(_call(item, kind),))
    return None  # reasoning, references, lists of tools: neither messages nor calls


def _call(item: RecordReader, kind: str) -> ToolCall:
    call_id = item.identity("call_id")
    if kind == "function_call":
        given, notes = arguments(item.get("arguments"))
        return ToolCall(item.needed("name"), given, id=call_id or item.identity("id"), notes=notes)
    if kind == "custom_tool_call":
        given, notes = free_text(item.get("input"))
        return ToolCall(item.needed("name"), given, id=call_id, notes=notes)
    tool = kind.removesuffix("_call") or kind
    if call_id:  # run by the client, which sends the output
        given, notes = free_text(item.get("action", "operation", "arguments"))
        return ToolCall(tool, given, id=call_id, notes=notes)
    return _hosted(item, tool)


def _hosted(item: RecordReader, tool: str) -> ToolCall:
    """A call that the provider ran itself: a search, or a tool of an MCP server."""
    error = error_text(item.get("error"))
    given, notes = arguments(item.get("arguments"))
    if given is None:
        left_out = (*_NOT_INPUT, *_OUTPUTS)
        given = {key: value for key, value in item.raw.items() if key not in left_out}
    return ToolCall(
        tool=item.text("name") or tool,
        input=given,
        output=outcome(item.get(*_OUTPUTS)),
        id=item.identity("id"),
        success=False if error else _SUCCESS.get(item.text("status") or ""),
        error=error,
        notes=notes,
    )


FORMAT = RecordFormat("OpenAI Responses", (Need("'output'", _has_items),), read)
