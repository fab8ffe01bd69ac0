"""OpenTelemetry `gen_ai.*` spans: messages come from model spans, results of calls from tool spans.

Every model call repeats the conversation so far, so duplicate messages are dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.observations.measures import Measures, total
from assay.observations.otel_messages import inputs, outputs
from assay.observations.pairing import Turn, observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, arguments, as_text, broken, error_text, outcome
from assay.observations.spans import Span, has_span_keys, is_span, read_spans

_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
_AGENT_OPERATIONS = ("invoke_agent", "invoke_workflow")
_WRAPPERS = ("resourceSpans", "resource_spans", "spans")


_HIDDEN = "the spans have no messages (was content capture switched off?)"


def _has_spans(value: Any) -> bool:
    if isinstance(value, dict):
        return has_span_keys(value) or any(name in value for name in _WRAPPERS)
    return isinstance(value, list) and any(map(has_span_keys, value))


def _has_attributes(value: Any) -> bool:
    if isinstance(value, dict):
        return "attributes" in value or any(name in value for name in _WRAPPERS)
    return isinstance(value, list) and any(map(is_span, value))


def read(value: Any) -> Observation:
    spans = read_spans(value)
    transcript = _Transcript()
    for span in spans:
        transcript.add(span)
    models, agents, tools = transcript.models, transcript.agents, transcript.tools
    if not (models or agents or tools):
        raise broken("", "has spans, but none of a model, an agent or a tool (gen_ai.*)")
    measured = Measures(
        usage=total(map(_usage, models)) or total(map(_usage, agents)),
        duration_ms=_duration(spans),
        error=_error([span for span in spans if span not in tools]),
    )
    unknown = _HIDDEN if transcript.hidden or not transcript.turns else None
    observation = observe(transcript.turns, measured, value, unknown=unknown)
    # Without messages, it is not known whether tools were called.
    calls = observation.tool_calls if transcript.turns else None
    return observation.replace(tool_calls=calls, llm_calls=len(models) or None)


class _Transcript(msgspec.Struct):
    """The turns of a conversation, assembled from spans in the order in which those ended."""

    turns: list[Turn] = []
    models: list[Span] = []
    agents: list[Span] = []
    tools: list[Span] = []
    #: Has the last span of a model no reply in it, though the model gave one?
    hidden: bool = False
    #: How often each turn was seen, by its key.
    seen: Counter[Any] = msgspec.field(default_factory=Counter)
    #: The calls that have a tool span, as indices of turn and call.
    executed: set[tuple[int, int]] = set()
    #: The ids of calls whose result came from a tool span.
    answered: set[str] = set()

    def add(self, span: Span) -> None:
        operation = span.attributes.get("gen_ai.operation.name")
        if operation == "execute_tool" or (not operation and "gen_ai.tool.name" in span.attributes):
            self.tools.append(span)
            self._add_execution(span)
        elif operation in _AGENT_OPERATIONS:
            self.agents.append(span)
            replies = outputs(span)
            self.hidden = self.hidden and not _says_anything(replies)
            # Skip what its model spans have reported: their inputs may be worded differently.
            known = self.models and self.turns and all(self.seen[_key(t)] for t in replies)
            if not known:
                self._add_new([*inputs(span), *replies])
        elif operation in _MODEL_OPERATIONS or (not operation and _has_gen_ai(span)):
            self.models.append(span)
            self._add_new(inputs(span))
            replies = outputs(span)
            if span.success is not False and _is_of_model(span):
                self.hidden = not _says_anything(replies)
            for turn in replies:  # a reply is always new, even if it equals another
                self.seen[_key(turn)] += 1
                self._append(turn)

    def _add_new(self, turns: list[Turn]) -> None:
        """Add the turns that were not seen before; equal turns of one list are different turns."""
        here: Counter[Any] = Counter()
        for turn in turns:
            key = _key(turn)
            here[key] += 1
            if here[key] > self.seen[key]:
                self.seen[key] = here[key]
                self._append(turn)

    def _append(self, turn: Turn) -> None:
        """Append a turn without the calls and results that tool spans have reported already."""
        calls = tuple(call for call in turn.calls if call.id not in self.answered)
        results = tuple(result for result in turn.results if result.id not in self.answered)
        left = replace(turn, calls=calls, results=results)
        if left == turn or left.content is not None or calls or results:
            self.turns.append(left)

    def _add_execution(self, span: Span) -> None:
        """Add the outcome of a tool span to its call; without one, it becomes a turn itself."""
        executed = _executed(span)
        if executed.id and executed.output is not None:
            self.answered.add(executed.id)
        found = self._find(executed)
        if found is None:
            self.executed.add((len(self.turns), 0))
            self.turns.append(Turn("assistant", calls=(executed,)))
            return
        self.executed.add(found)
        turn_index, call_index = found
        turn = self.turns[turn_index]
        calls = list(turn.calls)
        call = calls[call_index]
        if call.input is not None:
            executed = executed.replace(input=call.input, notes=call.notes)
        calls[call_index] = executed.replace(id=call.id or executed.id)
        self.turns[turn_index] = replace(turn, calls=tuple(calls))

    def _find(self, executed: ToolCall) -> tuple[int, int] | None:
        """The indices of the executed call: by its id, else the first open call of the tool."""
        candidates = [
            ((t, c), call)
            for t, turn in enumerate(self.turns)
            for c, call in enumerate(turn.calls)
            if (t, c) not in self.executed
        ]
        same_id = [at for at, call in candidates if executed.id and call.id == executed.id]
        same_tool = [
            at
            for at, call in candidates
            if call.tool == executed.tool and not (executed.id and call.id)
        ]
        return next(iter(same_id or same_tool), None)


def _key(turn: Turn) -> Any:
    """Identifies a turn that is repeated in the history of a later call."""
    calls = tuple(call.id or call.tool for call in turn.calls)
    results = tuple(result.id or as_text(result.output) for result in turn.results)
    return turn.role, as_text(turn.content), calls, results


def _says_anything(replies: list[Turn]) -> bool:
    return any(turn.content is not None or turn.calls for turn in replies)


def _is_of_model(span: Span) -> bool:
    """Is it certainly the span of a model? Spans of frameworks have `gen_ai` attributes too."""
    names = ("gen_ai.request.model", "gen_ai.response.model")
    operation = span.attributes.get("gen_ai.operation.name")
    return operation in _MODEL_OPERATIONS or any(name in span.attributes for name in names)


def _has_gen_ai(span: Span) -> bool:
    return any(name.startswith("gen_ai.") for name in span.attributes)


def _executed(span: Span) -> ToolCall:
    """The call that a tool span reports."""
    record = RecordReader(span.attributes, span.at)
    name = record.text("gen_ai.tool.name") or span.name.removeprefix("execute_tool").strip()
    given, notes = arguments(record.get("gen_ai.tool.call.arguments"))
    error = span.message or record.text("error.type") or "the tool failed"
    return ToolCall(
        tool=name or "unknown",
        input=given,
        output=outcome(record.get("gen_ai.tool.call.result")),
        id=record.identity("gen_ai.tool.call.id"),
        duration_ms=span.duration_ms,
        success=span.success,
        error=error if span.success is False else None,
        notes=notes,
    )


# Measures


def _usage(span: Span) -> Usage | None:
    record = RecordReader(span.attributes, span.at)
    sent = record.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    generated = record.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    return None if sent is None and generated is None else Usage(sent, generated)


def _duration(spans: list[Span]) -> float | None:
    starts = [span.start for span in spans if span.start is not None]
    ends = [span.end for span in spans if span.end is not None]
    if not starts or not ends or max(ends) < min(starts):
        return None
    return (max(ends) - min(starts)) / 1_000_000


def _error(spans: list[Span]) -> str | None:
    """The error of the last root span; None if that did not fail."""
    ids = {span.id for span in spans if span.id}
    roots = [span for span in spans if span.parent not in ids]
    if not roots or roots[-1].success is not False:
        return None
    return roots[-1].message or error_text(roots[-1].attributes.get("error.type")) or "it failed"


FORMAT = RecordFormat(
    "OpenTelemetry",
    (
        Need("'spans' or 'resourceSpans'", _has_spans),
        Need("'attributes'", _has_attributes),
    ),
    read,
)
