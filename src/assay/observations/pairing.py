"""Turns of any transcript to one Observation: each call is joined with its result.

A result belongs to the first open call before it with the same id. A result whose id no
call has, or that has none, belongs to the first open call that could be meant: of the same
tool where the result names one. What is left over says so in notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from assay.model.message import Message, Role, ToolCall
from assay.model.observation import Observation
from assay.observations.measures import Measures
from assay.observations.records import Record, as_text, broken

NO_RESULT = "no result is recorded for this call"

REFUSED = "the model refused to answer"
_CUT = "the answer was cut at the limit of tokens"
_ENDINGS = {
    "length": _CUT,
    "max_tokens": _CUT,
    "content_filter": "the provider's content filter removed an answer or a part of it",
    "refusal": REFUSED,
}

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class Result(msgspec.Struct, frozen=True):
    """What came back from a tool."""

    output: Any = None
    id: str | None = None
    tool: str | None = None
    success: bool | None = None
    error: str | None = None


class Turn(msgspec.Struct, frozen=True):
    """One message of any provider: what was said, called and returned in it."""

    role: Role
    content: Any = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    name: str | None = None


def ending(reason: Any) -> tuple[str, ...]:
    """What is odd about an answer that ended for this reason."""
    return (_ENDINGS[reason],) if isinstance(reason, str) and reason in _ENDINGS else ()


def role_of(record: Record) -> Role:
    role = record.needed("role")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise broken(record.place("role"), f"is {role!r}; known: {known}")
    return ROLES[role]


class Pairs(msgspec.Struct):
    """All calls so far, those of them that wait for a result, and the results of no call."""

    calls: list[ToolCall] = []
    open: list[int] = []
    notes: list[str] = []

    def add(self, call: ToolCall) -> int:
        place = len(self.calls)
        self.calls.append(call)
        if call.output is None:
            self.open.append(place)
        return place

    def close(self, result: Result) -> bool:
        """Join the result with its call; false when it has none."""
        place = self._place(result)
        if place is None:
            name = f" of {result.tool!r}" if result.tool else ""
            mark = f" with the id {result.id!r}" if result.id else ""
            self.notes.append(f"a result{name}{mark} belongs to no call")
            return False
        self.open.remove(place)
        call = self.calls[place]
        self.calls[place] = call.replace(
            output=result.output,
            success=call.success if result.success is None else result.success,
            error=call.error or result.error,
        )
        return True

    def _place(self, result: Result) -> int | None:
        waiting = self.open
        if result.id:
            for place in waiting:
                if self.calls[place].id == result.id:
                    return place
            waiting = [place for place in waiting if self.calls[place].id is None]
        for place in waiting:
            if result.tool is None or self.calls[place].tool == result.tool:
                return place
        return None

    def finish(self) -> None:
        for place in self.open:
            call = self.calls[place]
            if call.success is None and call.error is None:
                self.calls[place] = call.replace(notes=(*call.notes, NO_RESULT))


def observe(
    turns: Iterable[Turn], measures: Measures, raw: Any, *, llm_calls: int | None = None
) -> Observation:
    """The observation of a transcript; every assistant turn is a model call unless told."""
    pairs, said, replies = Pairs(), list[tuple[Turn, list[int]]](), 0
    for turn in turns:
        places = [pairs.add(call) for call in turn.calls]
        orphans = [result for result in turn.results if not pairs.close(result)]
        said += [(Turn("tool", r.output, name=r.tool), []) for r in orphans]
        if turn.content is not None or places or not turn.results:
            said.append((turn, places))
        replies += turn.role == "assistant"
    pairs.finish()
    messages = tuple(
        Message(turn.role, turn.content, tuple(pairs.calls[p] for p in places), turn.name)
        for turn, places in said
    )
    return Observation(
        response=last_said(messages),
        tool_calls=tuple(pairs.calls),
        messages=messages,
        usage=measures.usage,
        cost_usd=measures.cost_usd,
        duration_ms=measures.duration_ms,
        llm_calls=replies if llm_calls is None else llm_calls,
        error=measures.error,
        notes=tuple(pairs.notes),
        raw=raw,
    )


def last_said(messages: Iterable[Message]) -> str:
    """The text of the last assistant message that has one, of those after the last question."""
    for message in reversed(tuple(messages)):
        if message.role == "user":
            break
        if message.role == "assistant":
            content = message.content
            text = message.text if isinstance(content, tuple) else as_text(content, "content")
            if text.strip():
                return text
    return ""
