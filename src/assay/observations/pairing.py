"""Converts the turns of any transcript to an Observation, pairing each call with its result.

A result belongs to the first earlier call with the same id that has no result yet. If there is
none, or the result has no id, it belongs to the first such call without an id, of the same tool
if the result names one. Calls and results that remain unpaired are noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from assay.model.message import Message, Role, ToolCall
from assay.model.observation import Observation
from assay.observations.measures import Measures
from assay.observations.records import RecordReader, as_text, broken

NO_RESULT = "no result is recorded for this call"

REFUSED = "the model refused to answer"
_CUT = "the answer was cut off at the token limit"
_ENDINGS = {
    "length": _CUT,
    "max_tokens": _CUT,
    "max_output_tokens": _CUT,
    "model_context_window_exceeded": _CUT,
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
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
}

USER_SPOKE_LAST = "the last message is the user's: the answer is the assistant's message before it"
ENDS_WITH_RESULT = "the record ends with the result of a tool: no answer follows it"
NO_REPLY = "the record has no message of the assistant"
NO_CONTENT = "the last message of the assistant has neither text nor tool calls"


class Result(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    output: Any = None
    id: str | None = None
    tool: str | None = None
    success: bool | None = None
    error: str | None = None


class Turn(msgspec.Struct, frozen=True):
    """One message of any provider: its content, calls and results."""

    role: Role
    content: Any = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    name: str | None = None
    notes: tuple[str, ...] = ()


def ending(reason: Any) -> tuple[str, ...]:
    """A note on an answer that was cut or refused, by its stop reason; mostly none."""
    return (_ENDINGS[reason],) if isinstance(reason, str) and reason in _ENDINGS else ()


def role_of(record: RecordReader) -> Role:
    role = record.text("role") or record.needed("role", "type")  # LangChain has a type
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise broken(record.place("role"), f"is {role!r}; known: {known}")
    return ROLES[role]


class Pairs(msgspec.Struct):
    """All calls so far, the indices of those without a result, and notes on unpaired results."""

    calls: list[ToolCall] = []
    open: list[int] = []
    notes: list[str] = []

    def add(self, call: ToolCall) -> int:
        """Add a call; returns its index."""
        index = len(self.calls)
        self.calls.append(call)
        if call.output is None:
            self.open.append(index)
        return index

    def close(self, result: Result) -> bool:
        """Pair a result with its call; False if there is none."""
        index = self._find(result)
        if index is None:
            name = f" of {result.tool!r}" if result.tool else ""
            mark = f" with the id {result.id!r}" if result.id else ""
            self.notes.append(f"a result{name}{mark} has no matching call")
            return False
        self.open.remove(index)
        call = self.calls[index]
        self.calls[index] = call.replace(
            output=result.output,
            success=call.success if result.success is None else result.success,
            error=call.error or result.error,
        )
        return True

    def _find(self, result: Result) -> int | None:
        candidates = self.open
        if result.id:
            for index in candidates:
                if self.calls[index].id == result.id:
                    return index
            candidates = [index for index in candidates if self.calls[index].id is None]
        for index in candidates:
            if result.tool is None or self.calls[index].tool == result.tool:
                return index
        return None

    def finish(self) -> None:
        """Add a note to calls that have neither a result nor a status."""
        for index in self.open:
            call = self.calls[index]
            if call.success is None and call.error is None:
                self.calls[index] = call.replace(notes=(*call.notes, NO_RESULT))


class Answer(msgspec.Struct, frozen=True):
    """The answer in a record; `unknown` is the reason if the record does not contain it."""

    text: str = ""
    notes: tuple[str, ...] = ()
    unknown: str | None = None

    @property
    def error(self) -> str | None:
        """Why a case cannot be graded; nothing may be concluded from an unknown answer."""
        return f"the answer is not in the record: {self.unknown}" if self.unknown else None


def observe(
    turns: Iterable[Turn],
    measures: Measures,
    raw: Any,
    *,
    llm_calls: int | None = None,
    is_reply: bool = False,
    unknown: str | None = None,
) -> Observation:
    """The observation of a transcript; `llm_calls` defaults to the number of assistant turns.

    `is_reply`: the record is the whole reply of a model, so without text the answer is empty.
    `unknown`: why the answer is not in the record, if the format reports that.
    """
    # Turns with the indices of their calls: results may complete those later.
    pairs, kept, replies = Pairs(), list[tuple[Turn, list[int]]](), 0
    notes, ends_with_result = list[str](), False
    for turn in turns:
        indices = [pairs.add(call) for call in turn.calls]
        orphans = [result for result in turn.results if not pairs.close(result)]
        kept += [(Turn("tool", r.output, name=r.tool), []) for r in orphans]
        if turn.content is not None or indices or not turn.results:
            kept.append((turn, indices))
        replies += turn.role == "assistant"
        notes += turn.notes
        ends_with_result = len(turn.results) > len(orphans) and turn.content is None
    if ends_with_result:
        notes.append(ENDS_WITH_RESULT)
    pairs.finish()
    messages = tuple(
        Message(turn.role, turn.content, tuple(pairs.calls[i] for i in indices), turn.name)
        for turn, indices in kept
    )
    answer = last_said(messages)
    if unknown is None and not is_reply:
        if answer.unknown:
            unknown = "; ".join(dict.fromkeys((answer.unknown, *notes)))
        elif ends_with_result and not answer.text:
            unknown = ENDS_WITH_RESULT
    if unknown or answer.unknown:
        answer = Answer(unknown=unknown)
    return Observation(
        response=answer.text,
        tool_calls=tuple(pairs.calls),
        messages=messages,
        usage=measures.usage,
        cost_usd=measures.cost_usd,
        duration_ms=measures.duration_ms,
        llm_calls=replies if llm_calls is None else llm_calls,
        error=measures.error or answer.error,
        notes=tuple(dict.fromkeys((*pairs.notes, *notes, *answer.notes))),
        raw=raw,
    )


def last_said(messages: Sequence[Message]) -> Answer:
    """The last text of the assistant since the question before it.

    It is empty if the assistant only called tools, and unknown if there is nothing to read.
    """
    replies = [i for i, message in enumerate(messages) if message.role == "assistant"]
    if not replies:
        return Answer(unknown=NO_REPLY)
    last = replies[-1]
    if messages[last].content is None and not messages[last].tool_calls:
        return Answer(unknown=NO_CONTENT)
    after = messages[last + 1 :]
    notes = (USER_SPOKE_LAST,) if any(message.role == "user" for message in after) else ()
    for message in reversed(messages[: last + 1]):
        if message.role == "user":
            break
        if message.role == "assistant":
            content = message.content
            text = message.text if isinstance(content, tuple) else as_text(content, "content")
            if text.strip():
                return Answer(text, notes)
    return Answer(notes=notes)
