"""Counts the pairs of two runs, by suite and by tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from assay.comparison.changes import change_of
from assay.comparison.pairs import pair
from assay.model.comparison import CaseOutcome
from assay.model.comparison_tables import ComparisonTables, PairCounts
from assay.stats.paired import Pairs, newcombe

_PAIRED = ("regressed", "fixed", "still-failing")
_BOTH = "both passed"


def tables(
    base: Iterable[CaseOutcome],
    candidate: Iterable[CaseOutcome],
    tags: Iterable[Sequence[str]],
) -> ComparisonTables:
    """The tables; `tags` are those of the candidate's cases, in their order."""
    total = Counter[str]()
    by_suite: dict[str, Counter[str]] = defaultdict(Counter)
    by_tag: dict[str, Counter[str]] = defaultdict(Counter)
    named = iter(tags)
    for before, now in pair(base, candidate):
        if now is None:
            continue
        own, cell = next(named, ()), _cell(before, now)
        if cell is not None:
            of_tags = [by_tag[tag] for tag in dict.fromkeys(own)]
            for counter in (total, by_suite[now.ref.suite], *of_tags):
                counter[cell] += 1
    return ComparisonTables(_counts("", total), _rows(by_suite), _rows(by_tag))


def _cell(before: CaseOutcome | None, now: CaseOutcome) -> str | None:
    """The cell of a pair; None if the case is not one."""
    change = change_of(before, now)
    if change is None and before is not None and before.outcome == now.outcome == "passed":
        return _BOTH
    return change if change in _PAIRED else None


def _rows(counters: dict[str, Counter[str]]) -> list[PairCounts]:
    return [_counts(name, counter) for name, counter in sorted(counters.items())]


def _counts(name: str, found: Counter[str]) -> PairCounts:
    pairs = Pairs(found[_BOTH], found["regressed"], found["fixed"], found["still-failing"])
    counts = (pairs.both, pairs.lost, pairs.gained, pairs.neither)
    return PairCounts(name, pairs.n, *counts, newcombe(pairs))
