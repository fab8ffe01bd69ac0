"""Counts the cases of several runs: pairs of any two of them, and the cases that tell apart."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heappush, heappushpop
from itertools import combinations

from assay.comparison.alignment import Row
from assay.comparison.decision import Finding, decide
from assay.comparison.gate import named
from assay.model.comparison import CaseOutcome, CaseRef
from assay.model.group import DifferingCase, GroupCase, GroupCell
from assay.model.result import JUDGED
from assay.results.statistics import few_clusters
from assay.stats.paired import Pairs
from assay.text import count

#: The most cases that are listed of those on which the targets differ.
MAX_DIFFERING = 1000
#: What a run shows of a case: whether it passed; None unless judged; and which of the versions of
#: the case it was, 0 if that is not known.
Code = tuple[bool | None, int]
_NOTHING: Code = (None, 0)


class GroupTable:
    """Counts rows of outcomes, one for each run.

    Rows that are alike are counted, not kept; two numbers are kept for each case.
    """

    def __init__(self, runs: int) -> None:
        self.cases = self.compared = self.differing_count = 0
        self.not_comparable: list[GroupCase] = []
        self._runs = runs
        self._missing: list[CaseRef] = []
        #: The cases that were skipped for some targets, such as rubrics after a failed golden case.
        self._skipped: list[CaseRef] = []
        self._repeated = 0
        self._kinds: dict[tuple[Code, ...], int] = {}
        self._kind_of = array("l")
        self._counts: list[int] = []
        self._clusters = array("l")
        #: A number for each named cluster.
        self._numbers: dict[str, int] = {}
        #: A heap of the cases that tell the most apart: how much, the place in order, the case.
        self._differing: list[tuple[float, int, DifferingCase]] = []

    def add(self, row: Row) -> None:
        self.cases += 1
        found = [case for case in row if case is not None]
        ref = found[0].ref
        if len(found) < self._runs:
            self._missing.append(ref)
        if len({case.outcome == "skipped" for case in found}) > 1:
            self._skipped.append(ref)
        self._repeated += any(case.judged > 1 for case in found)
        self._count(row, next((case.cluster for case in found if case.cluster is not None), None))
        if len({case.comparability for case in found} - {""}) > 1:
            self.not_comparable.append(GroupCase(*ref))
            return
        self.compared += all(case is not None and case.outcome in JUDGED for case in row)
        self._watch(row, ref)

    def _count(self, row: Row, cluster: str | None) -> None:
        kind = self._kinds.setdefault(_kind(row), len(self._kinds))
        if kind == len(self._counts):
            self._counts.append(0)
        self._counts[kind] += 1
        self._kind_of.append(kind)
        if cluster is None:  # a cluster of its own, with a negative number; named ones have 0 up
            self._clusters.append(-self.cases)
        else:
            self._clusters.append(self._numbers.setdefault(cluster, len(self._numbers)))

    def _watch(self, row: Row, ref: CaseRef) -> None:
        """Keep the case if it tells more targets apart than those that are kept."""
        shares = [case.passes / case.judged for case in row if case is not None and case.judged]
        if len(set(shares)) < 2:
            return
        self.differing_count += 1
        apart = sum(abs(one - other) for one, other in combinations(shares, 2))
        entry = (apart, -self.cases, DifferingCase(*ref, tuple(map(_cell, row))))
        if len(self._differing) < MAX_DIFFERING:
            heappush(self._differing, entry)
        else:
            heappushpop(self._differing, entry)

    @property
    def differing(self) -> tuple[DifferingCase, ...]:
        """The cases that do not pass equally often, those first that tell the most apart."""
        return tuple(case for *_, case in sorted(self._differing, reverse=True))

    def finding(self, a: int, b: int) -> Finding:
        """The paired comparison of two runs, `a` being the base."""
        changes = [_change(kind[a], kind[b]) for kind in self._kinds]
        cells = Counter[tuple[bool | None, int | None]]()
        for kind, change, n in zip(self._kinds, changes, self._counts, strict=True):
            cells[kind[a][0], change] += n
        pairs = Pairs(cells[True, 0], cells[True, -1], cells[False, 1], cells[False, 0])
        if not self._numbers:
            return decide(pairs, 0.0)
        return decide(pairs, 0.0, *self._clustered(changes))

    def _clustered(self, changes: Sequence[int | None]) -> tuple[array[int], array[int]]:
        """The changes and the clusters of all pairs."""
        changed, clusters = array("b"), array("l")
        for kind, cluster in zip(self._kind_of, self._clusters, strict=True):
            change = changes[kind]
            if change is not None:
                changed.append(change)
                clusters.append(cluster)
        return changed, clusters

    def notes(self) -> Iterator[str]:
        """What a reader should know about the cases."""
        if self._missing:
            yield f"not asked of every target: {named(self._missing)}"
        if self._skipped:
            for_some = "skipped for some of the targets, so not compared for these"
            yield f"{for_some}: {named(self._skipped)}"
        if self.not_comparable:
            changed = [CaseRef(case.suite, case.id) for case in self.not_comparable]
            yield f"changed between the runs, so not compared: {named(changed)}"
        if self._repeated:
            yield (
                f"{count(self._repeated, 'case')} asked several times; each counts once, as passed"
                " when enough of its trials passed"
            )
        if self._numbers and (warning := few_clusters(len(set(self._clusters)))):
            yield warning


def _kind(row: Row) -> tuple[Code, ...]:
    """All that counts of a row; rows of different cases may be alike."""
    versions = {"": 0}
    return tuple(
        _NOTHING
        if case is None or case.outcome not in JUDGED
        else (
            case.outcome == "passed",
            versions.setdefault(case.comparability, len(versions)),
        )
        for case in row
    )


def _change(before: Code, now: Code) -> int | None:
    """-1 if the case passes only before, 1 if only now, else 0; None if it is not a pair."""
    if before[0] is None or now[0] is None:
        return None
    if before[1] != now[1] and before[1] and now[1]:
        return None
    return now[0] - before[0]


def _cell(case: CaseOutcome | None) -> GroupCell | None:
    if case is None:
        return None
    return GroupCell(case.outcome, case.passes, case.judged, case.score)
