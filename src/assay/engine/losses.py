"""Losses: which cases of a run are asked again, how often, and when that is enough.

A loss is a case that passed in the baseline and fails now. What asking again showed is recorded as
trials that `confirms`; the gate reads them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from assay.engine.plan import Plan, PlannedCase
from assay.model.comparison import CaseRef, Comparison, Reasks
from assay.model.result import Outcome
from assay.model.run import TrialFacts

#: The most lost cases that are asked again.
MAX_CASES = 50


class LostCase(NamedTuple):
    """A lost case that is asked again, at most `times` times."""

    planned: PlannedCase
    times: int

    @property
    def repeats(self) -> range:
        """The numbers of its re-asks, which follow those of its planned trials."""
        return range(self.planned.repeats, self.planned.repeats + self.times)

    def is_settled(self, made: Mapping[int, Outcome]) -> bool:
        """Were all re-asks made, or enough to decide if the loss is excused?"""
        found = Reasks.of(made.values())
        all_made = all(repeat in made for repeat in self.repeats)
        return all_made or found.settle(self.times, critical=self.planned.case.critical)


def open_losses(
    comparison: Comparison,
    plan: Plan,
    file_of: Callable[[int], str],
    times_of: Callable[[PlannedCase], int],
) -> list[LostCase]:
    """The losses that can be asked again and are not excused yet, critical ones first."""
    lost = {loss.ref for loss in comparison.losses if loss.status != "excused"}
    if not lost:
        return []
    found = [
        LostCase(planned, times)
        for planned in plan
        if CaseRef(file_of(planned.suite), planned.case.id) in lost and (times := times_of(planned))
    ]
    return sorted(found, key=lambda loss: not loss.planned.case.critical)


def expected_cost(
    left: Iterable[tuple[LostCase, int]], facts_of: Callable[[int], Iterator[TrialFacts]]
) -> float:
    """The most that asking again costs, if each re-ask costs what a trial of the case did.

    `left` is how often each loss may still be asked.
    """
    total = 0.0
    for loss, times in left:
        costs = [
            (trial.cost_usd or 0.0) + (trial.judge_cost_usd or 0.0)
            for trial in facts_of(loss.planned.position)
        ]
        total += times * max(costs, default=0.0)
    return total
