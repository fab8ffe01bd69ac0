"""What each evaluator said of an answer, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.model.case_content import CaseContent
from assay.model.diff import render_diff
from assay.model.score import EvaluatorEntry
from assay.text import count

_NO_SCORE = EvaluatorEntry("", "", 1.0, None, None, (), ())
#: The most steps of a trajectory.
MAX_STEPS = 40


class Check(msgspec.Struct, frozen=True):
    """An evaluator and what it found. `criterion` is what a judge was to judge.

    `diffs` has the lines of each trajectory diff, with the name of its evaluator.
    """

    name: str
    verdict: str
    criterion: str
    judge: str
    reasoning: str
    hits: Sequence[str]
    misses: Sequence[str]
    diffs: tuple[tuple[str, tuple[str, ...]], ...]


def check_of(entry: EvaluatorEntry, content: CaseContent) -> Check:
    judge = entry.details.get("judge") or {}
    return Check(
        entry.name if entry.name == entry.type else f"{entry.name} ({entry.type})",
        _verdict(entry),
        criterion_of(entry, content),
        str(judge.get("target", "")),
        entry.reasoning,
        entry.hits,
        entry.misses,
        tuple(diffs_of(entry.name, entry.type, entry.details)),
    )


def _verdict(entry: EvaluatorEntry) -> str:
    """`fail, score 0.2`; why there is no score, if there is none."""
    if entry.error:
        return f"errored: {entry.error}"
    if entry.skipped:
        return f"skipped: {entry.skipped}"
    words = f"{entry.verdict}, score {entry.score:.3g}" if entry.score is not None else "no score"
    if entry.weight != 1:
        words += f", weight {entry.weight:g}"
    return f"{words}; {entry.failed_gate}" if entry.failed_gate else words


def failing_judges(entry: EvaluatorEntry) -> Iterator[EvaluatorEntry]:
    """The judges that did not let a case pass: the evaluator itself, or members of a composite."""
    for member in entry.details.get("members", ()) if entry.type == "composite" else ():
        known = {key: member[key] for key in ("score", "verdict", "reasoning") if key in member}
        given = {"name": f"{entry.name}: {member['name']}", "type": member["type"]}
        details = {"details": member.get("details", {})}
        yield from failing_judges(replace(_NO_SCORE, **given | known | details))
    if "judge" in entry.details and entry.verdict not in (None, "pass"):
        yield entry


def criterion_of(entry: EvaluatorEntry, content: CaseContent) -> str:
    """What a judge was to judge; empty if it is not a judge, or says it with each miss."""
    if "judge" not in entry.details or "checks" in entry.details:
        return ""
    given = (spec for spec in content.evaluators if spec.get("name") == entry.name)
    prompt = next((str(spec["prompt"]) for spec in given if spec.get("prompt")), "")
    return "; ".join(filter(None, (content.expected_outcome, prompt)))


def diffs_of(
    name: str,
    type: str,  # noqa: A002 - the key's name
    details: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The diff of a trajectory that does not match, also of members of composites."""
    if type == "composite":
        for member in details.get("members", ()):
            own = (member["type"], member.get("details", {}))
            yield from diffs_of(f"{name}: {member['name']}", *own)
    elif type == "tool_trajectory":
        steps = details.get("diff", ())
        if any(step["status"] != "matched" for step in steps):
            yield name, tuple(_diff_lines(steps))


def _diff_lines(steps: list[dict[str, Any]]) -> Iterator[str]:
    yield from (line.removeprefix("  ") for line in render_diff(islice(steps, MAX_STEPS)))
    if len(steps) > MAX_STEPS:
        yield f"and {count(len(steps) - MAX_STEPS, 'more step')}"
