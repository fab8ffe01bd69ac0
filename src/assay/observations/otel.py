"""OpenTelemetry `gen_ai.*` spans: model calls tell what was said, tool spans how calls went.

Every model call repeats the conversation so far, so a message is taken once. Messages stand
in the attributes `gen_ai.input.messages` and `gen_ai.output.messages`, or, as older
instrumentations have it, in events such as `gen_ai.user.message` and `gen_ai.choice`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.model.values import from_json
from assay.observations import openai
from assay.observations.measures import Measures, total
from assay.observations.pairing import Result, Turn, observe, role_of
from assay.observations.records import (
    Record,
    arguments,
    as_text,
    broken,
    error_text,
    outcome,
    records,
)
from assay.observations.spans import Span, is_span, read_spans

_MODEL = ("chat", "generate_content", "text_completion")
_AGENT = ("invoke_agent", "invoke_workflow")
_WRAPPED = ("resourceSpans", "resource_spans", "spans")


def fits(value: Any) -> bool:
    if isinstance(value, dict):
        return is_span(value) or any(name in value for name in _WRAPPED)
    return isinstance(value, list) and any(map(is_span, value))


def read(value: Any) -> Observation:
    spans = read_spans(value)
    story = _Story()
    for span in spans:
        story.add(span)
    if not (story.models or story.agents or story.tools):
        raise broken("", "has spans, but none of a model, an agent or a tool (gen_ai.*)")
    measured = Measures(
        usage=total(map(_usage, story.models)) or total(map(_usage, story.agents)),
        duration_ms=_duration(spans),
        error=_failure([span for span in spans if span not in story.tools]),
    )
    seen = observe(story.turns, measured, value)
    known = seen.tool_calls if story.turns else None  # without messages nobody can tell
    return seen.replace(tool_calls=known, llm_calls=len(story.models) or None)


class _Story(msgspec.Struct):
    """The turns that the spans tell of, put together in the order in which spans ended."""

    turns: list[Turn] = []
    models: list[Span] = []
    agents: list[Span] = []
    tools: list[Span] = []
    heard: Counter[Any] = msgspec.field(default_factory=Counter)
    ran: set[tuple[int, int]] = set()
    answered: set[str] = set()

    def add(self, span: Span) -> None:
        operation = span.attributes.get("gen_ai.operation.name")
        if operation == "execute_tool" or (not operation and "gen_ai.tool.name" in span.attributes):
            self.tools.append(span)
            self._run(span)
        elif operation in _AGENT:
            self.agents.append(span)
            outputs = _outputs(span)
            # Its model calls tell the same, and what they were asked may be worded otherwise.
            retold = self.models and self.turns and all(self.heard[_key(t)] for t in outputs)
            if not retold:
                self._hear([*_inputs(span), *outputs])
        elif operation in _MODEL or (not operation and _speaks_gen_ai(span)):
            self.models.append(span)
            self._hear(_inputs(span))
            for turn in _outputs(span):  # a reply is always new, even when it repeats another
                self.heard[_key(turn)] += 1
                self._take(turn)

    def _hear(self, turns: list[Turn]) -> None:
        """Take the turns that were not heard before."""
        here: Counter[Any] = Counter()
        for turn in turns:
            key = _key(turn)
            here[key] += 1
            if here[key] > self.heard[key]:
                self.heard[key] = here[key]
                self._take(turn)

    def _take(self, turn: Turn) -> None:
        """A turn without the calls and results that tool spans have told already."""
        calls = tuple(call for call in turn.calls if call.id not in self.answered)
        results = tuple(result for result in turn.results if result.id not in self.answered)
        left = replace(turn, calls=calls, results=results)
        if left == turn or left.content is not None or calls or results:
            self.turns.append(left)

    def _run(self, span: Span) -> None:
        """Tell of a call how it went; a call that no message has is a turn of its own."""
        call = _executed(span)
        if call.id and call.output is not None:
            self.answered.add(call.id)
        place = self._find(call)
        if place is None:
            self.ran.add((len(self.turns), 0))
            self.turns.append(Turn("assistant", calls=(call,)))
            return
        self.ran.add(place)
        turn, calls = self.turns[place[0]], list(self.turns[place[0]].calls)
        asked = calls[place[1]]
        given = call if asked.input is None else call.replace(input=asked.input, notes=asked.notes)
        calls[place[1]] = given.replace(id=asked.id or call.id)
        self.turns[place[0]] = replace(turn, calls=tuple(calls))

    def _find(self, ran: ToolCall) -> tuple[int, int] | None:
        """The call that was run: by its id, else the first open one of the tool."""
        waiting = [
            ((t, c), call)
            for t, turn in enumerate(self.turns)
            for c, call in enumerate(turn.calls)
            if (t, c) not in self.ran
        ]
        same_id = [place for place, call in waiting if ran.id and call.id == ran.id]
        same_tool = [
            place for place, call in waiting if call.tool == ran.tool and not (ran.id and call.id)
        ]
        return next(iter(same_id or same_tool), None)


def _key(turn: Turn) -> Any:
    """What makes a turn the same turn in the history of a later call."""
    calls = tuple(call.id or call.tool for call in turn.calls)
    results = tuple(result.id or as_text(result.output) for result in turn.results)
    return turn.role, as_text(turn.content), calls, results


def _speaks_gen_ai(span: Span) -> bool:
    return any(name.startswith("gen_ai.") for name in span.attributes)


def _executed(span: Span) -> ToolCall:
    record = Record(span.attributes, span.at)
    name = record.text("gen_ai.tool.name") or span.name.removeprefix("execute_tool").strip()
    given, notes = arguments(record.get("gen_ai.tool.call.arguments"))
    error = span.message or record.text("error.type") or "the tool failed"
    return ToolCall(
        tool=name or "unknown",
        input=given,
        output=outcome(record.get("gen_ai.tool.call.result")),
        id=record.text("gen_ai.tool.call.id"),
        duration_ms=span.duration_ms,
        success=span.success,
        error=error if span.success is False else None,
        notes=notes,
    )


# What was said


def _sources(span: Span) -> Iterator[tuple[str, Record]]:
    """The attributes of the span and of its events, with the event's name."""
    yield "", Record(span.attributes, span.at)
    for name, body in span.events:
        yield name, Record(body, f"{span.at} {name}".strip())


def _inputs(span: Span) -> list[Turn]:
    turns: list[Turn] = []
    for name, source in _sources(span):
        if system := _decoded(source, "gen_ai.system_instructions"):
            parts = system if isinstance(system, list) else [{"type": "text", "content": system}]
            turns.append(_turn(Record({"role": "system", "parts": parts}, source.at)))
        turns += _messages(source, "gen_ai.input.messages")
        if name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.removeprefix("gen_ai.").removesuffix(".message")
            turns.append(openai.turn(Record({"role": role, **_event(source)}, source.at)))
    return turns


def _outputs(span: Span) -> list[Turn]:
    turns: list[Turn] = []
    for name, source in _sources(span):
        turns += _messages(source, "gen_ai.output.messages")
        if name == "gen_ai.choice":
            body = _event(source)
            said = body.get("message")
            if body.get("index") in (None, 0, "0"):  # the first choice is the answer
                message = said if isinstance(said, dict) else {**body, "content": said}
                message = message if said is not None else body
                turns.append(openai.turn(Record({**message, "role": "assistant"}, source.at)))
    return turns


def _event(source: Record) -> dict[str, Any]:
    """The body of an older event; its parts may be JSON in texts."""
    names = ("gen_ai.event.content", "message", "tool_calls")
    body = {**source.raw, **{n: _decoded(source, n) for n in names if n in source.raw}}
    whole = body.pop("gen_ai.event.content", None)
    return {**body, **whole} if isinstance(whole, dict) else body


def _decoded(source: Record, name: str) -> Any:
    """An attribute that may be a JSON text."""
    value = source.get(name)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value)
        except ValueError as error:
            raise broken(source.place(name), f"is not valid JSON: {error}") from None
    return value


def _messages(source: Record, name: str) -> list[Turn]:
    value = _decoded(source, name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise broken(source.place(name), "is not a list of messages")
    return [
        _turn(entry) if "parts" in entry.raw else openai.turn(entry)
        for entry in records(value, source.place(name))
    ]


def _turn(record: Record) -> Turn:
    """A message of parts."""
    calls: list[ToolCall] = []
    results: list[Result] = []
    said: list[str] = []
    for part in record.records("parts"):
        kind = part.text("type")
        if kind == "text":
            said.append(as_text(part.get("content"), part.at))
        elif kind == "tool_call":
            given, notes = arguments(part.get("arguments"))
            calls.append(ToolCall(part.needed("name"), given, id=part.text("id"), notes=notes))
        elif kind == "tool_call_response":
            output = outcome(part.get("response", "result"))
            results.append(Result(output, part.text("id")))
    content = "".join(said) if said else None
    return Turn(role_of(record), content, tuple(calls), tuple(results), record.text("name"))


# What was measured


def _usage(span: Span) -> Usage | None:
    record = Record(span.attributes, span.at)
    read = record.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    written = record.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    return None if read is None and written is None else Usage(read, written)


def _duration(spans: list[Span]) -> float | None:
    starts = [span.start for span in spans if span.start is not None]
    ends = [span.end for span in spans if span.end is not None]
    if not starts or not ends or max(ends) < min(starts):
        return None
    return (max(ends) - min(starts)) / 1_000_000


def _failure(spans: list[Span]) -> str | None:
    """Why the whole failed: the last span that no other span is around ended in an error."""
    ids = {span.id for span in spans if span.id}
    roots = [span for span in spans if span.parent not in ids]
    if not roots or roots[-1].success is not False:
        return None
    return roots[-1].message or error_text(roots[-1].attributes.get("error.type")) or "it failed"
