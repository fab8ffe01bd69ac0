"""AgentV: `output_messages`, whose calls contain their results, and the output file with them."""

from __future__ import annotations

from typing import Any

from assay.model.message import ContentPart, Message
from assay.model.observation import Observation
from assay.observations.calls import read_call
from assay.observations.measures import measures
from assay.observations.pairing import Result, Turn, observe, role_of
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, message_list, records


def _fits(value: Any) -> bool:
    if _is_file(value):
        return "type" not in value  # a content block has a text too
    return any(_has_tool(message) for message in message_list(value) or ())


def _is_file(value: Any) -> bool:
    """Is it an output file? OpenAI Responses have settings under `text`."""
    return isinstance(value, dict) and (
        "output_messages" in value or not isinstance(value.get("text", {}), dict)
    )


def _has_tool(message: Any) -> bool:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return isinstance(calls, list) and any(isinstance(c, dict) and "tool" in c for c in calls)


def read(value: Any) -> Observation:
    if _is_file(value):
        return _read_file(RecordReader(value), value)
    record = RecordReader(value if isinstance(value, dict) else {})
    turns = [turn(entry) for entry in records(message_list(value) or [], "messages")]
    return observe(turns, measures(record), value)


def _read_file(record: RecordReader, raw: Any) -> Observation:
    """An output file; `text` is the answer if the messages have none."""
    turns = [turn(entry) for entry in record.records("output_messages")]
    measured, text = measures(record), record.text("text")
    observation = observe(turns, measured, raw, is_reply=text is not None)
    if record.get("output_messages") is None:
        observation = observation.replace(tool_calls=None, llm_calls=None)
    if observation.response or text is None:
        return observation
    return observation.replace(response=text)


def turn(record: RecordReader) -> Turn:
    role = role_of(record)
    content, name = _content(record.get("content")), record.text("name")
    if role == "tool" and content is not None:
        result = Result(output=content, id=record.identity("tool_call_id"), tool=name)
        return Turn(role, results=(result,), name=name)
    return Turn(role, content, tuple(map(read_call, record.records("tool_calls"))), name=name)


def message(record: RecordReader) -> Message:
    """A message in the form of eval files, whose calls contain their results."""
    calls = tuple(map(read_call, record.records("tool_calls", "toolCalls")))
    return Message(role_of(record), _content(record.get("content")), calls, record.text("name"))


def _content(raw: Any) -> Any:
    """A list of parts as ContentParts; any other value unchanged."""
    if isinstance(raw, list) and raw and all(map(_is_part, raw)):
        return tuple(
            ContentPart("text", part)
            if isinstance(part, str)
            else ContentPart(part["type"], part["value"])
            for part in raw
        )
    return raw


def _is_part(raw: Any) -> bool:
    if not isinstance(raw, dict):
        return isinstance(raw, str)
    return raw.get("type") in ("text", "file") and isinstance(raw.get("value"), str)


FORMAT = RecordFormat("AgentV", (Need("'output_messages' or 'text'", _fits),), read)
