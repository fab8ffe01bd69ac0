"""GroupComparison: the runs of several targets over the same cases, and which targets are best."""

from __future__ import annotations

from typing import Any

import msgspec

from assay.model.json_encoding import as_dict
from assay.model.result import Count, Outcome
from assay.model.score import Amount, Share
from assay.record import Record
from assay.stats.estimates import Estimate


class GroupTarget(msgspec.Struct, frozen=True, rename="camel"):
    """A target of a group, and what its run measured.

    `rate` is the pass rate; None if no case was judged. `shrunken` is the same moved towards the
    mean of all targets, as far as their differences may be chance. Latencies are those of all
    attempts. A target is among the `best` unless another target is significantly better.
    """

    run_id: str
    target: str
    rate: Estimate | None
    shrunken: Share | None
    passed: Count
    judged: Count
    errored: Count
    skipped: Count
    cost_usd: Amount | None
    judge_cost_usd: Amount | None
    p50_ms: Amount | None
    p95_ms: Amount | None
    best: bool


class GroupPair(msgspec.Struct, frozen=True, rename="camel"):
    """Two targets of a group, over the cases that both judged and that compare.

    `difference` is the pass rate of `b` minus that of `a`. `adjusted` is the p-value adjusted for
    the number of pairs of the group. `better` is the target that is significantly better. All are
    None if there is nothing to compare, `better` also if the difference is not significant.
    """

    a: str
    b: str
    pairs: Count
    difference: Estimate | None = None
    test: str | None = None
    p_value: float | None = None
    adjusted: float | None = None
    better: str | None = None


class GroupCell(msgspec.Struct, frozen=True):
    """The outcome of a case for one target: `passes` of `judged` attempts passed."""

    outcome: Outcome
    passes: Count
    judged: Count
    score: Share | None


class GroupCase(msgspec.Struct, frozen=True):
    """A case of a group: its eval file and its id."""

    suite: str
    id: str


class DifferingCase(GroupCase, frozen=True):
    """A case that does not pass equally often for all targets.

    `cells` are in the order of the targets; None for a target that was not asked.
    """

    cells: tuple[GroupCell | None, ...]


class GroupComparison(Record, frozen=True, rename="camel"):
    """The targets of a group compared over the same cases.

    `cases` counts the cases that any target was asked, `compared` those that every target judged
    and that compare. `differing` has the first of the `differing_count` cases on which the targets
    differ, those first that tell the most targets apart. `not_comparable` are cases that changed
    between the runs.
    """

    group_id: str
    cases: Count
    compared: Count
    targets: tuple[GroupTarget, ...]
    pairs: tuple[GroupPair, ...]
    differing: tuple[DifferingCase, ...] = ()
    differing_count: Count = 0
    not_comparable: tuple[GroupCase, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[GroupTarget, ...]:
        """The targets that no other target beats."""
        return tuple(target for target in self.targets if target.best)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the comparison."""
        return as_dict(self)
