"""ATIF, the trajectories of Harbor: steps, each with its calls and their results."""

from __future__ import annotations

from typing import Any

from assay.model.message import Role
from assay.model.observation import Observation, Usage
from assay.observations.blocks import read_blocks
from assay.observations.calls import read_chat_call
from assay.observations.measures import Measures, read_usage, total
from assay.observations.pairing import Result, Turn, observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, broken, joined, outcome

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}


def read(value: Any) -> Observation:
    record = RecordReader(value)
    steps = record.records("steps")
    return observe(
        [_turn(step) for step in steps], _measures(record, steps), value, llm_calls=_replies(steps)
    )


def _turn(step: RecordReader) -> Turn:
    source = step.needed("source")
    if source not in _ROLES:
        known = ", ".join(_ROLES)
        raise broken(step.place("source"), f"is {source!r}; known: {known}")
    message = step.get("message")
    notes: tuple[str, ...] = ()
    if isinstance(message, list):
        blocks = read_blocks(message, step.place("message"))
        message, notes = blocks.content, tuple(blocks.notes)
    calls = tuple(map(read_chat_call, step.records("tool_calls")))
    observed = step.record("observation")
    results = tuple(map(_result, observed.records("results"))) if observed else ()
    return Turn(_ROLES[source], message, calls, results, notes=notes)


def _result(record: RecordReader) -> Result:
    return Result(outcome(joined(record.get("content"))), record.identity("source_call_id"))


def _replies(steps: list[RecordReader]) -> int:
    """The number of model replies; a step without one has an `llm_call_count` of 0."""
    return sum(step.get("source") == "agent" and step.get("llm_call_count") != 0 for step in steps)


def _measures(record: RecordReader, steps: list[RecordReader]) -> Measures:
    """The totals of the trajectory; without them, the sums over its steps."""
    final = record.record("final_metrics") or RecordReader({})
    metrics = [found for step in steps if (found := step.record("metrics")) is not None]
    usage: Usage | None = Usage(
        final.count("total_prompt_tokens"), final.count("total_completion_tokens")
    )
    if usage == Usage():
        usage = total(map(read_usage, metrics))
    cost = final.number("total_cost_usd")
    costs = [each.number("cost_usd") for each in metrics]
    known = [each for each in costs if each is not None]
    if cost is None and known and len(known) == len(costs):
        cost = sum(known)
    return Measures(usage=usage, cost_usd=cost)


def _has_version(value: Any) -> bool:
    version = value.get("schema_version") if isinstance(value, dict) else None
    return isinstance(version, str) and version.upper().startswith("ATIF")


FORMAT = RecordFormat(
    "ATIF",
    (
        Need("'schema_version': 'ATIF-...'", _has_version),
        Need("'steps'", lambda value: isinstance(value, dict) and "steps" in value),
    ),
    read,
)
