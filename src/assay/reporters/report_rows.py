"""The rows of all cases as compressed columns, for the list of an HTML report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TextIO, get_args

from assay.model.case_filter import Change
from assay.model.case_rows import CaseKind, CaseRow
from assay.model.result import Outcome
from assay.reporters.data_blocks import Column

#: Outcomes and changes are numbers in the columns: their places in these.
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CHANGES: tuple[Change, ...] = get_args(Change)
#: The columns: what a list shows, sorts and filters by.
COLUMNS = (
    *("position", "id", "kind", "outcome", "changed", "passes", "judged", "score", "cost"),
    *("latency", "tokens", "why", "group", "details"),
)
#: The number of a case in its details is doubled; odd numbers are of those that just passed.
NO_DETAILS = -1


class ReportRows:
    """Collects the rows; nothing of them stays in memory but their kinds."""

    def __init__(self, stack: ExitStack) -> None:
        self._columns = {name: Column(f"rows-{name}", stack) for name in COLUMNS}
        self._kinds: dict[CaseKind, int] = {}
        self._by_kind: dict[int, Counter[str]] = defaultdict(Counter)
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.changes = dict.fromkeys(CHANGES, 0)
        self.flaky = self.count = 0

    def add(
        self,
        row: CaseRow,
        kind: CaseKind,
        *,
        tokens: int | None = None,
        why: str = "",
        group: int = 0,
        details: int = NO_DETAILS,
    ) -> None:
        number = self._kinds.setdefault(kind, len(self._kinds))
        self._count(row, number)
        values = (
            *(row.position, row.id, number),
            OUTCOMES.index(row.outcome),
            -1 if row.changed is None else CHANGES.index(row.changed),
            *(row.passes, row.judged, row.score, row.cost_usd, row.latency_ms),
            *(tokens, why, group, details),
        )
        for column, value in zip(self._columns.values(), values, strict=True):
            column.add(value)

    def kinds(self) -> Iterator[dict[str, object]]:
        """What the kinds of the cases have in common, in the order of their numbers."""
        for kind in self._kinds:
            names = [*dict.fromkeys((*kind.evaluators, *kind.evaluator_types))]
            yield {
                "suite": kind.suite,
                "suites": kind.suites,
                "tags": kind.tags,
                "evaluators": names,
            }

    def tags(self) -> dict[str, Counter[str]]:
        """How many cases with each tag have each outcome."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for kind, number in self._kinds.items():
            for tag in dict.fromkeys(kind.tags):
                found[tag].update(self._by_kind[number])
        return found

    def suites(self) -> dict[str, Counter[str]]:
        """How many cases of each suite have each outcome."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for kind, number in self._kinds.items():
            found[kind.suite].update(self._by_kind[number])
        return found

    def close(self) -> int:
        """End the columns; returns how many characters they take."""
        return sum(column.close() for column in self._columns.values())

    def write(self, out: TextIO) -> None:
        for column in self._columns.values():
            column.write(out)

    def _count(self, row: CaseRow, kind: int) -> None:
        self.count += 1
        self._by_kind[kind][row.outcome] += 1
        self.outcomes[row.outcome] += 1
        self.flaky += row.flaky
        if row.changed is not None:
            self.changes[row.changed] += 1
