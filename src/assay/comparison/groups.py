"""Compares the runs of several targets: which are best, and on which cases they differ."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
from msgspec.structs import replace

from assay.comparison.alignment import align
from assay.comparison.decision import ALPHA, Finding
from assay.comparison.group_table import GroupTable
from assay.comparison.tally import case_outcome
from assay.model.comparison import CaseOutcome
from assay.model.group import GroupComparison, GroupPair, GroupTarget
from assay.model.result import JUDGED
from assay.model.run import TrialFacts
from assay.model.trials import by_case
from assay.results.run import Totals
from assay.results.statistics import LEVEL
from assay.stats.distributions import interval_z
from assay.stats.means import mean, percentile
from assay.stats.paired import holm
from assay.stats.shrinkage import shrunken
from assay.text import count, percent


class GroupRun(msgspec.Struct, frozen=True):
    """The run of one target: its trials in order. `partial` says why it lacks cases, if it does."""

    run_id: str
    target: str
    facts: Iterable[TrialFacts]
    partial: str = ""


def compare_group(group_id: str, runs: Sequence[GroupRun]) -> GroupComparison:
    """Compare the targets of a group, each with each. No two runs may have the same target."""
    measured = [_Measured(run) for run in runs]
    table = GroupTable(len(runs))
    for row in align([each.outcomes() for each in measured]):
        table.add(row)
    places = combinations(range(len(runs)), 2)
    findings = {(a, b): table.finding(a, b) for a, b in places}
    pairs = _pairs([run.target for run in runs], findings)
    beaten = {
        name for pair in pairs for name in (pair.a, pair.b) if pair.better not in (None, name)
    }
    targets = _with_shrunken([each.target(beaten) for each in measured], findings.values())
    return GroupComparison(
        group_id,
        table.cases,
        table.compared,
        targets,
        pairs,
        table.differing,
        table.differing_count,
        tuple(table.not_comparable),
        (*_notes(runs, targets), *table.notes()),
    )


class _Measured:
    """What a run measured, known once its outcomes have been read."""

    def __init__(self, run: GroupRun) -> None:
        self._run, self._totals, self._durations = run, Totals(), array("d")

    def outcomes(self) -> Iterator[CaseOutcome]:
        for trials in by_case(self._run.facts):
            self._totals.add(trials)
            self._durations.extend(t.duration_ms for t in trials if t.outcome in JUDGED)
            yield case_outcome(trials)

    def target(self, beaten: Collection[str]) -> GroupTarget:
        run, found = self._run, self._totals.summary(None)
        durations = sorted(self._durations)
        return GroupTarget(
            run.run_id,
            run.target,
            rate=self._totals.measure.pass_rate(),
            shrunken=None,
            passed=found.passed,
            judged=found.judged,
            errored=found.errored,
            skipped=found.skipped,
            cost_usd=found.estimated_cost_usd,
            judge_cost_usd=found.judge_cost_usd,
            p50_ms=percentile(durations, 0.5) if durations else None,
            p95_ms=percentile(durations, 0.95) if durations else None,
            best=bool(found.judged) and run.target not in beaten,
        )


def _pairs(
    names: Sequence[str], findings: Mapping[tuple[int, int], Finding]
) -> tuple[GroupPair, ...]:
    """The pairs, with p-values adjusted by Holm's method."""
    tested = {pair: found.test.value for pair, found in findings.items() if found.test is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return tuple(
        _pair(names[a], names[b], found, adjusted.get((a, b))) for (a, b), found in findings.items()
    )


def _pair(a: str, b: str, found: Finding, adjusted: float | None) -> GroupPair:
    test, difference = found.test, found.difference
    if test is None or difference is None or adjusted is None:
        return GroupPair(a, b, found.pairs.n)
    better = None
    if adjusted < ALPHA:
        better = b if difference.estimate > 0 else a
    return GroupPair(a, b, found.pairs.n, difference, test.method, test.value, adjusted, better)


def _with_shrunken(
    targets: Sequence[GroupTarget], findings: Iterable[Finding]
) -> tuple[GroupTarget, ...]:
    """The targets with their shrunken rates.

    Targets of the same cases share most of the error of their rates. What they do not share is
    half of the variance of a paired difference.
    """
    known = {target.run_id: target.rate.estimate for target in targets if target.rate is not None}
    widths = [f.difference.interval.width for f in findings if f.difference is not None]
    variance = mean([(width / (2 * interval_z(LEVEL))) ** 2 / 2 for width in widths])
    if variance is None:
        return tuple(targets)
    moved = dict(zip(known, shrunken(list(known.values()), variance), strict=True))
    return tuple(replace(target, shrunken=moved.get(target.run_id)) for target in targets)


def _notes(runs: Sequence[GroupRun], targets: Sequence[GroupTarget]) -> Iterator[str]:
    """What a reader should know about the targets."""
    for run in runs:
        if run.partial:
            yield f"the run of {run.target} is partial: {run.partial}"
    for target in targets:
        if not target.judged:
            yield f"{target.target} has no judged case, so nothing is known about it"
        elif target.errored:
            errored = count(target.errored, "errored case")
            not_compared = "which is" if target.errored == 1 else "which are"
            yield f"{target.target} has {errored}, {not_compared} not compared"
    rated = [(target.rate.estimate, target) for target in targets if target.rate is not None]
    highest = max((rate for rate, _ in rated), default=0.0)
    leading = [target for rate, target in rated if rate == highest]
    if len(rated) > 1 and percent(highest) != (moved := percent(leading[0].shrunken or 0.0)):
        names = " and ".join(target.target for target in leading)
        yield (
            f"the highest of {len(rated)} pass rates is too high on average, as chance decides"
            f" which one it is: corrected for that, the pass rate of {names} is {moved},"
            f" not {percent(highest)}"
        )
