"""Messages of all chat formats: OpenAI, Anthropic, LangChain, Inspect, the AI SDK, tau-bench."""

from __future__ import annotations

from typing import Any

from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.observations.blocks import Blocks, read_blocks
from assay.observations.calls import read_chat_call
from assay.observations.measures import measures_of_replies
from assay.observations.pairing import REFUSED, Result, Turn, ending, observe, role_of
from assay.observations.records import (
    RecordReader,
    as_text,
    broken,
    error_text,
    joined,
    message_list,
    outcome,
    records,
)
from assay.redaction import cut

#: Begins a reply of the model in a message of the AI SDK.
_STEP = {"type": "step-start"}
#: How LangChain names roles.
_LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})


def is_message(value: Any) -> bool:
    """Does it have a role, or the type that LangChain has instead?"""
    if not isinstance(value, dict):
        return False
    if "role" in value:
        return True
    plain = unwrapped(value)
    kind = plain.get("type")
    return isinstance(kind, str) and kind in _LANGCHAIN_TYPES and "content" in plain


def unwrapped(raw: Any) -> Any:
    """A message that LangChain has serialised with its class, or with its type, around it."""
    if not isinstance(raw, dict) or "role" in raw:
        return raw
    data, path = raw.get("data"), raw.get("id")
    if isinstance(data, dict) and "content" in data:
        return {"type": raw.get("type"), **data}
    if raw.get("type") == "constructor" and isinstance(raw.get("kwargs"), dict):
        name = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
        return {"type": name.removesuffix("Chunk").removesuffix("Message").lower(), **raw["kwargs"]}
    return raw


def read(value: Any) -> Observation:
    """A list of messages, alone or in a mapping with measures."""
    record = RecordReader(value if isinstance(value, dict) else {})
    messages = [step for raw in message_list(value) or [] for step in _steps(unwrapped(raw))]
    entries = records(messages, "messages")
    turns = [turn(entry) for entry in entries]
    if (system := joined(record.get("system"))) is not None:
        turns.insert(0, Turn("system", system))
    return observe(turns, measures_of_replies(record, entries), value)


def _steps(raw: Any) -> list[Any]:
    """The replies in a message of the AI SDK, which has all of an answer in one message."""
    parts = raw.get("parts") if isinstance(raw, dict) else None
    if not isinstance(parts, list) or _STEP not in parts:
        return [raw]
    steps: list[list[Any]] = [[]]
    for part in parts:
        if part == _STEP:
            steps.append([])
        else:
            steps[-1].append(part)
    # The other keys repeat the texts and calls of the parts.
    repeated = ("parts", "content", "toolInvocations")
    common = {key: value for key, value in raw.items() if key not in repeated}
    return [{**common, "parts": step} for step in steps if step] or [raw]


def turn(record: RecordReader) -> Turn:
    role, blocks = role_of(record), _blocks(record)
    notes = [*blocks.notes, *ending(record.get("stop_reason", "finish_reason"))]
    content, name = blocks.content, record.text("name")
    if content is None and (audio := record.record("audio")) is not None:
        content = audio.text("transcript")
    if refusal := record.text("refusal"):
        content = content or refusal
        notes.append(REFUSED)
    if role == "tool" and not blocks.results and not blocks.calls:
        return _tool_turn(record, content, name)
    if blocks.calls and role != "assistant":
        raise broken(record.place("content"), f"has a 'tool_use' of the role {role!r}")
    calls = (*blocks.calls, *_listed(record, blocks.calls))
    if calls and role != "assistant":  # simulated users have tools too
        calls, notes = (), [*notes, f"calls of the role {role!r} are not the agent's"]
    if content is None and not calls and not blocks.results and role == "assistant":
        content = _without_text(record, notes)
    return Turn(role, content, calls, tuple(blocks.results), name, tuple(dict.fromkeys(notes)))


def _blocks(record: RecordReader) -> Blocks:
    """What `parts` and `content` have; a text in `content` repeats those of `parts`."""
    content, parts = record.get("content"), record.get("parts")
    found = Blocks()
    if isinstance(parts, list):
        found = read_blocks(parts, record.place("parts"))
    elif isinstance(content, list):
        return read_blocks(content, record.place("content"))
    if isinstance(content, str) and not found.texts:
        found.texts.append(content)
    elif not isinstance(content, list):
        found.data = content
    return found


def _without_text(record: RecordReader, notes: list[str]) -> Any:
    """The content of a message that has none: known to be empty, or None if it is not recorded."""
    if "content" in record.raw and not any(map(record.get, ("content", "parts", "audio"))):
        return ""
    keys = ", ".join(repr(cut(str(key), 40)) for key in record.raw if key != "role")
    if keys and not notes:
        notes.append(f"a message has no content that can be read, only {cut(keys, 200)}")
    return None


def _listed(record: RecordReader, known: list[ToolCall]) -> list[ToolCall]:
    """The calls outside the content, except those that are also in it."""
    listed = [
        read_chat_call(call)
        for name in ("tool_calls", "toolCalls", "toolInvocations")
        for call in record.records(name)
    ]
    if (legacy := record.record("function_call")) is not None:
        listed.append(read_chat_call(legacy))
    ids = {call.id for call in known if call.id}
    same = [(call.tool, call.input) for call in known if not call.id]
    return [c for c in listed if c.id not in ids and (c.tool, c.input) not in same]


def _tool_turn(record: RecordReader, content: Any, name: str | None) -> Turn:
    """A message with the result of a call."""
    if record.get("requestor") == "user":
        return Turn("tool", "" if content is None else content, name=name)
    function, error = record.get("function"), record.get("error")
    tool = name or record.text("toolName", "tool_name")
    if isinstance(function, str):
        tool = tool or function
    status = record.get("status")
    failed = error_text(None if error is True else error)
    if error is True or (status == "error" and failed is None):
        failed = as_text(content, record.at) or "the tool failed"
    succeeded = True if error is False or status == "success" else None
    result = Result(
        output=outcome(content),
        id=record.identity("tool_call_id", "toolCallId", "id"),
        tool=tool,
        success=False if failed else succeeded,
        error=failed,
    )
    return Turn("tool", results=(result,), name=name)
