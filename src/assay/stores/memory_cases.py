"""The rows of ended runs, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from assay.errors import NotInStore
from assay.model.case_filter import CaseFilter
from assay.model.case_rows import (
    MAX_COMPARISONS,
    CaseQuery,
    CaseRow,
    Facets,
    IndexedCase,
    count,
    select,
)
from assay.model.run import RunRecord


class MemoryCaseIndex:
    """Behaves like an index in a database. `open_` returns the lock, if the store is open."""

    def __init__(
        self,
        open_: Callable[[], AbstractContextManager[object]],
        run: Callable[[str], RunRecord],
    ) -> None:
        self._open, self._run = open_, run
        self._cases: dict[str, list[IndexedCase]] = {}
        self._comparisons: dict[tuple[str, str, str], bytes] = {}

    def has(self, run_id: str) -> bool:
        with self._open():
            return run_id in self._cases

    def add(self, run: RunRecord, cases: Iterable[IndexedCase]) -> bool:
        found = list(cases)
        with self._open():
            try:
                unchanged = run.status != "running" and self._run(run.id) == run
            except NotInStore:
                return False
            if unchanged:
                self._cases[run.id] = found
            return unchanged

    def page(self, run_id: str, query: CaseQuery) -> list[CaseRow]:
        return select(self._of(run_id), query)

    def row(self, run_id: str, position: int) -> CaseRow | None:
        rows = (case.row for case in self._of(run_id))
        return next((row for row in rows if row.position == position), None)

    def facets(self, run_id: str, where: CaseFilter) -> Facets:
        return count(self._of(run_id), where)

    def comparison(self, base: str, candidate: str, rules: str) -> bytes | None:
        with self._open():
            return self._comparisons.get((base, candidate, rules))

    def keep_comparison(self, base: str, candidate: str, rules: str, value: bytes) -> None:
        with self._open():
            try:
                finished = all(self._run(run).status == "finished" for run in (base, candidate))
            except NotInStore:
                return
            if finished:
                pair = [key for key in self._comparisons if key[:2] == (base, candidate)]
                for key in pair if len(pair) >= MAX_COMPARISONS else ():
                    del self._comparisons[key]
                self._comparisons[base, candidate, rules] = value

    def forget(self, run_id: str) -> None:
        """Forget what was computed of a run."""
        self._cases.pop(run_id, None)
        for key in [key for key in self._comparisons if run_id in key[:2]]:
            del self._comparisons[key]

    def _of(self, run_id: str) -> list[IndexedCase]:
        with self._open():
            return self._cases.get(run_id, [])
