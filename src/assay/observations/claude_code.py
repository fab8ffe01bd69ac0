"""Claude Code: the lines of a session log, or of its output as a stream of JSON.

A line has a `type`. Those of the user and the assistant have a message of Anthropic's API, in
several lines if it has several blocks. The last line of a stream is a `result`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from assay.model.observation import Observation
from assay.observations import chat
from assay.observations.measures import Measures, read_usage, total
from assay.observations.pairing import observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, message_list, records

_SPEAKERS = ("user", "assistant")


def read(value: Any) -> Observation:
    lines = [
        line
        for line in records(message_list(value) or [], "lines")
        # Subagents have their own conversation, and some lines are internal notes of the program.
        if not line.get("isSidechain") and not line.get("parent_tool_use_id")
    ]
    spoken = [line for line in lines if _is_spoken(line.raw) and not line.get("isMeta")]
    failed = [line for line in spoken if line.get("isApiErrorMessage")]
    messages = _joined([line for line in spoken if line not in failed])
    end = next((line for line in reversed(lines) if line.get("type") == "result"), RecordReader({}))
    replies = {
        m.text("id") or str(n): m for n, m in enumerate(messages) if m.get("role") == "assistant"
    }
    gave_up = bool(failed) and failed[-1] is spoken[-1]
    measured = Measures(
        usage=read_usage(end.record("usage"))
        or total(read_usage(m.record("usage")) for m in replies.values()),
        cost_usd=end.number("total_cost_usd"),
        duration_ms=_duration(spoken)
        if end.get("duration_ms") is None
        else end.number("duration_ms"),
        error=_error(end) or (_said(failed[-1]) if gave_up else None),
    )
    return observe(map(chat.turn, messages), measured, value, llm_calls=len(replies))


def _joined(lines: list[RecordReader]) -> list[RecordReader]:
    """The messages; the lines of one reply have its id, and each a part of its content."""
    found: list[RecordReader] = []
    for line in lines:
        message = RecordReader(line.get("message"), line.place("message"))
        raw = {"role": line.get("type"), **message.raw}
        last = found[-1].raw if found else {}
        blocks, more = last.get("content"), raw.get("content")
        same = raw.get("id") is not None and raw.get("id") == last.get("id")
        if same and isinstance(blocks, list) and isinstance(more, list):
            found[-1] = RecordReader({**last, **raw, "content": [*blocks, *more]}, found[-1].at)
        else:
            found.append(RecordReader(raw, message.at))
    return found


def _duration(lines: list[RecordReader]) -> float | None:
    """The time from the first line to the last, in milliseconds."""
    try:
        times = [datetime.fromisoformat(line.text("timestamp") or "") for line in lines]
        return (times[-1] - times[0]).total_seconds() * 1000 if times[-1] >= times[0] else None
    except (ValueError, TypeError, IndexError):
        return None


def _error(end: RecordReader) -> str | None:
    """Why a stream ended early."""
    kind = end.text("subtype") or ""
    if not end.get("is_error") and not kind.startswith("error"):
        return None
    return end.text("result") or kind or "it failed"


def _said(line: RecordReader) -> str:
    answer = observe([chat.turn(each) for each in _joined([line])], Measures(), None)
    return answer.response or "the API returned an error"


def _is_spoken(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and line.get("type") in _SPEAKERS
        and isinstance(line.get("message"), dict)
    )


def _has_types(value: Any) -> bool:
    lines = message_list(value) or ()
    return any(isinstance(line, dict) and line.get("type") in _SPEAKERS for line in lines)


FORMAT = RecordFormat(
    "Claude Code",
    (
        Need("'type': 'assistant'", _has_types),
        Need("'message'", lambda value: any(map(_is_spoken, message_list(value) or ()))),
    ),
    read,
)
