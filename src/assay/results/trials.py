"""The trials of a case together: what a result file says of it, and what it counts as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec

from assay.model.result import JUDGED, Outcome
from assay.model.run import TrialRecord
from assay.model.score import reaches


class Counted(Protocol):
    """As much of a trial as deciding needs."""

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
    """The trials of each case; they come by position and repeat."""
    return (list(group) for _, group in groupby(trials, _position))


def repeats_of(trials: Sequence[T]) -> Sequence[T]:
    """The trials that count: those that only confirm a regression do not, unless all do."""
    return [trial for trial in trials if not trial.confirms] or trials


def outcome_of(trials: Sequence[Counted]) -> Outcome:
    """What the repeats of a case come to: errored ones are left out while others were judged."""
    if len(trials) == 1 and trials[0].min_pass_rate > 0:
        return trials[0].outcome
    outcomes = [trial.outcome for trial in trials]
    passed = outcomes.count("passed")
    judged = passed + outcomes.count("failed")
    if judged:
        return "passed" if reaches(passed / judged, trials[0].min_pass_rate) else "failed"
    return "errored" if "errored" in outcomes else "skipped"


def mean_score(trials: Iterable[Counted]) -> float | None:
    """The mean score of those that were judged; None when none of them has one."""
    scores = [t.score for t in trials if t.score is not None and t.outcome in JUDGED]
    return sum(scores) / len(scores) if scores else None


def entry_of(trials: Sequence[TrialRecord]) -> bytes:
    """The JSON of a case in a result file."""
    if len(trials) == 1 and trials[0].min_pass_rate > 0:
        return trials[0].entry
    repeats = repeats_of(trials)
    outcome = outcome_of(repeats)
    entries: list[dict[str, Any]] = [msgspec.json.decode(trial.entry) for trial in repeats]
    fitting = (e for e, t in zip(entries, repeats, strict=True) if t.outcome == outcome)
    shown = next(fitting, entries[0])  # none fits when no trial passed and none had to
    entry = shown | {
        "passed": outcome == "passed",
        "durationMs": sum(trial.duration_ms for trial in repeats),
        "details": shown["details"] | _together(repeats, entries, outcome, _listed(trials)),
    }
    if outcome == "passed":
        entry.pop("error", None)
    elif outcome == "failed" and len(repeats) > 1:
        _blame(entry, repeats)
    return msgspec.json.encode(entry)


def _listed(trials: Sequence[TrialRecord]) -> list[dict[str, Any]]:
    """Every attempt, those that confirm included."""
    return [entry for t in trials for entry in msgspec.json.decode(t.result)["details"]["trials"]]


def _together(
    trials: Sequence[TrialRecord],
    entries: Sequence[dict[str, Any]],
    outcome: Outcome,
    listed: list[dict[str, Any]],
) -> dict[str, Any]:
    details: dict[str, Any] = {"outcome": outcome, "trials": listed}
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


def _blame(entry: dict[str, Any], trials: Sequence[TrialRecord]) -> None:
    """Says how often it passed, before the reasons of the first trial that failed."""
    passed = sum(trial.outcome == "passed" for trial in trials)
    judged = passed + sum(trial.outcome == "failed" for trial in trials)
    least = trials[0].min_pass_rate
    share = "all" if least >= 1 else f"{least:.0%}"
    head = f"{passed} of {judged} trials passed, {share} must"
    reasons = [head, *entry["details"].get("failures", ())]
    entry["details"]["failures"] = reasons
    entry["error"] = "; ".join(reasons)
