"""Combines the trials of a case: its outcome, and its entry in a result file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec

from assay.model.result import JUDGED, Outcome
from assay.model.run import TrialRecord
from assay.model.score import reaches
from assay.text import exact_percent


class Counted(Protocol):
    """The part of a trial that decides the outcome."""

    @property
    def position(self) -> int: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def score(self) -> float | None: ...
    @property
    def min_pass_rate(self) -> float: ...
    @property
    def confirms(self) -> bool: ...


T = TypeVar("T", bound=Counted)


_position: Callable[[Counted], int] = attrgetter("position")


def by_case(trials: Iterable[T]) -> Iterator[list[T]]:
    """Group trials by case; they must be ordered by position and repeat."""
    return (list(group) for _, group in groupby(trials, _position))


def repeats_of(trials: Sequence[T]) -> Sequence[T]:
    """The trials that count: those that confirm a regression do not, unless there are no others."""
    return [trial for trial in trials if not trial.confirms] or trials


def outcome_of(trials: Sequence[Counted]) -> Outcome:
    """The combined outcome of the repeats of a case; if any was judged, errors are ignored."""
    if len(trials) == 1 and trials[0].min_pass_rate > 0:
        return trials[0].outcome
    outcomes = [trial.outcome for trial in trials]
    passed = outcomes.count("passed")
    judged = passed + outcomes.count("failed")
    if judged:
        return "passed" if reaches(passed / judged, trials[0].min_pass_rate) else "failed"
    return "errored" if "errored" in outcomes else "skipped"


def mean_score(trials: Iterable[Counted]) -> float | None:
    """The mean score of the judged trials; None if none has a score."""
    scores = [t.score for t in trials if t.score is not None and t.outcome in JUDGED]
    return sum(scores) / len(scores) if scores else None


def entry_of(trials: Sequence[TrialRecord]) -> bytes:
    """The JSON of a case in a result file."""
    if len(trials) == 1 and trials[0].min_pass_rate > 0:
        return trials[0].entry
    repeats = repeats_of(trials)
    outcome = outcome_of(repeats)
    entries: list[dict[str, Any]] = [msgspec.json.decode(trial.entry) for trial in repeats]
    matching = (e for e, t in zip(entries, repeats, strict=True) if t.outcome == outcome)
    shown = next(matching, entries[0])  # none matches if no trial passed, and none had to
    entry = shown | {
        "passed": outcome == "passed",
        "durationMs": sum(trial.duration_ms for trial in repeats),
        "details": shown["details"] | _combined(repeats, entries, outcome, _attempts(trials)),
    }
    if outcome == "passed":
        entry.pop("error", None)
    elif outcome == "failed" and len(repeats) > 1:
        _prepend_pass_count(entry, repeats)
    return msgspec.json.encode(entry)


def _attempts(trials: Sequence[TrialRecord]) -> list[dict[str, Any]]:
    """All attempts, including those that confirm a regression."""
    return [entry for t in trials for entry in msgspec.json.decode(t.result)["details"]["trials"]]


def _combined(
    trials: Sequence[TrialRecord],
    entries: Sequence[dict[str, Any]],
    outcome: Outcome,
    attempts: list[dict[str, Any]],
) -> dict[str, Any]:
    details: dict[str, Any] = {"outcome": outcome, "trials": attempts}
    details["score"] = mean_score(trials)
    if judged := sum(trial.outcome in JUDGED for trial in trials):
        details["passRate"] = sum(trial.outcome == "passed" for trial in trials) / judged
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    if costs:
        details["costUsd"] = sum(costs)
    usage: dict[str, int] = {}
    for entry in entries:
        for name, tokens in entry["details"].get("usage", {}).items():
            usage[name] = usage.get(name, 0) + tokens
    return details | ({"usage": usage} if usage else {})


def _prepend_pass_count(entry: dict[str, Any], trials: Sequence[TrialRecord]) -> None:
    """Put how often it passed before the reasons of the first trial that failed."""
    passed = sum(trial.outcome == "passed" for trial in trials)
    judged = passed + sum(trial.outcome == "failed" for trial in trials)
    least = trials[0].min_pass_rate
    share = "all" if least >= 1 else exact_percent(least)
    head = f"{passed} of {judged} trials passed, {share} must"
    reasons = [head, *entry["details"].get("failures", ())]
    entry["details"]["failures"] = reasons
    entry["error"] = "; ".join(reasons)
