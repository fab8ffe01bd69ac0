"""Combines the trials of a case: its outcome, and its entry in a result file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Protocol, TypeVar

from msgspec.structs import replace

from assay.model.json_encoding import as_json
from assay.model.observation import Usage
from assay.model.result import JUDGED, Outcome, decode_case, decode_trial
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


def shown_trial(trials: Sequence[TrialRecord]) -> TrialRecord:
    """The trial whose answer stands for the case: the first with the outcome of the case."""
    repeats = repeats_of(trials)
    outcome = outcome_of(repeats)
    # None matches if no trial passed, and none had to.
    return next((trial for trial in repeats if trial.outcome == outcome), repeats[0])


def entry_of(trials: Sequence[TrialRecord]) -> bytes:
    """The JSON of a case in a result file."""
    if len(trials) == 1 and trials[0].min_pass_rate > 0:
        return trials[0].entry
    repeats = repeats_of(trials)
    outcome = outcome_of(repeats)
    entries = [decode_case(trial.entry) for trial in repeats]
    shown = entries[repeats.index(shown_trial(trials))]
    error, failures = shown.error, shown.failures
    if outcome == "passed":
        error = None
    elif outcome == "failed" and len(repeats) > 1:
        failures = [_pass_count(repeats), *failures]
        error = "; ".join(failures)
    judged = [trial.outcome for trial in repeats if trial.outcome in JUDGED]
    costs = [trial.cost_usd for trial in repeats if trial.cost_usd is not None]
    details = replace(
        shown.details,
        outcome=outcome,
        score=mean_score(repeats),
        failures=failures,
        # All attempts, including those that confirm a regression.
        trials=[entry for t in trials for entry in decode_trial(t.result).details.trials],
        pass_rate=judged.count("passed") / len(judged) if judged else None,
        cost_usd=sum(costs) if costs else None,
        usage=_total_usage([entry.details.usage for entry in entries]),
    )
    passed, duration = outcome == "passed", sum(trial.duration_ms for trial in repeats)
    return as_json(
        replace(shown, passed=passed, duration_ms=duration, error=error, details=details)
    )


def _total_usage(found: Iterable[Usage | None]) -> Usage | None:
    """The tokens of all repeats; None if none reported any."""
    known = [usage for usage in found if usage is not None]
    totals = {
        name: sum(tokens)
        for name in Usage.__struct_fields__
        if (tokens := [n for usage in known if (n := getattr(usage, name)) is not None])
    }
    return Usage(**totals) if known else None


def _pass_count(trials: Sequence[TrialRecord]) -> str:
    """How often a case passed, and how often it had to."""
    passed = sum(trial.outcome == "passed" for trial in trials)
    judged = passed + sum(trial.outcome == "failed" for trial in trials)
    least = trials[0].min_pass_rate
    share = "all" if least >= 1 else exact_percent(least)
    return f"{passed} of {judged} trials passed, {share} must"
