"""The cases of a recorded run: one of them, or a list that is filtered and sorted.

Cases are addressed by their position, which counts all cases of the run's suites from 0, whether
the run asked them or not. So filters do not change it, nor does it depend on how far a run is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate

from assay.comparison.changes import change_of, changes
from assay.comparison.outcomes import Outcomes, outcomes_of, stored
from assay.comparison.pairs import partner
from assay.comparison.tally import fold
from assay.errors import AssayError, NotInStore
from assay.model.case_content import decode_content
from assay.model.case_filter import CaseFilter, Change
from assay.model.case_rows import (
    CasePage,
    CaseQuery,
    CaseRow,
    Facets,
    IndexedCase,
    Sort,
    count,
    read_cursor,
    select,
    with_positions,
    write_cursor,
)
from assay.model.case_view import CaseView, view_of
from assay.model.run import RunRecord, SuiteHeader, TrialRecord, only, place_of, positions_of
from assay.model.trial_rows import rows_of
from assay.model.trials import by_case
from assay.ports import Store
from assay.service.project import working_directory

_ALL = CaseFilter()
_IN_ORDER = Sort()
#: How many rows are read at once.
_AT_ONCE = 2000


def case_page(
    store: Store,
    record: RunRecord,
    where: CaseFilter = _ALL,
    *,
    sort: Sort = _IN_ORDER,
    limit: int = 50,
    skip: int = 0,
    after: str | None = None,
) -> CasePage:
    """A page of the cases that match; `after` is the `next` of the previous page."""
    cases = _Cases(store, record)
    rows = cases.page(where, sort, limit, skip, after)
    last = write_cursor(rows[-1], sort) if rows and len(rows) == limit else None
    return CasePage(rows, cases.facets(where), last)


def rows_of_page(
    store: Store,
    record: RunRecord,
    where: CaseFilter,
    sort: Sort,
    limit: int,
    *,
    skip: int = 0,
    after: str | None = None,
) -> list[CaseRow]:
    """The rows of `case_page` alone: counting all that match takes longer than a page of them."""
    return _Cases(store, record).page(where, sort, limit, skip, after)


def case_rows(store: Store, record: RunRecord, where: CaseFilter = _ALL) -> Iterator[CaseRow]:
    """All cases that match, in the order of the run."""
    cases, after = _Cases(store, record), None
    while rows := cases.page(where, _IN_ORDER, _AT_ONCE, 0, after):
        yield from rows
        after = write_cursor(rows[-1], _IN_ORDER)


def case_facets(store: Store, record: RunRecord, where: CaseFilter = _ALL) -> Facets:
    """How many of the cases that match have each outcome, suite, tag, evaluator and change."""
    return _Cases(store, record).facets(where)


def case_at(store: Store, record: RunRecord, position: int) -> CaseView:
    """The case at a position with all its trials; raises NotInStore if the run has none there."""
    cases = _Cases(store, record)
    trials = list(store.trials(record.id, positions=only(cases.positions.stored(position))))
    if not trials:
        raise NotInStore("case", str(position))
    content = decode_content(trials[0].content)
    (row,) = with_positions([cases.row(trials)], cases.positions.shown)
    return view_of(row, content, trials)


def trials_at(
    store: Store, record: RunRecord, positions: Iterable[int]
) -> dict[int, list[TrialRecord]]:
    """The trials of the cases at some positions."""
    known = _Cases(store, record).positions
    wanted = {known.stored(position): position for position in positions}
    return {
        wanted[trials[0].position]: trials
        for neighbours in _ranges(sorted(wanted))
        for trials in by_case(store.trials(record.id, positions=neighbours))
    }


def _ranges(positions: Iterable[int]) -> list[range]:
    """Ascending positions as ranges, so that neighbours are read by one query."""
    found: list[range] = []
    for at in positions:
        if found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(only(at))
    return found


def find_case(store: Store, record: RunRecord, suite: str, case_id: str) -> CaseView | None:
    """The case with this suite and id, as in another run; None if the run does not have it."""
    for trial in store.facts(record.id):
        if (trial.suite, trial.case_id) == (suite, case_id):
            return case_at(store, record, _Cases(store, record).positions.shown(trial.position))
    return None


def positions_in(store: Store, record: RunRecord) -> Positions:
    """How the positions of a run's trials and those that users see belong together."""
    return _Cases(store, record).positions


class Positions:
    """Converts between positions in the store and those that users see.

    `sizes` are the numbers of cases of all suites but the last.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        self._starts = [0, *accumulate(sizes)]

    def shown(self, position: int) -> int:
        suite, place = place_of(position)
        return self._starts[suite] + place

    def stored(self, position: int) -> int:
        """A position beyond the end is one that no case has."""
        suite = bisect_right(self._starts, position) - 1
        return positions_of(suite)[
            min(position - self._starts[suite], len(positions_of(suite)) - 1)
        ]


class _Cases:
    """The rows of a run: from the index of the store, or made anew for a run at work."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self._store, self._record = store, record

    @cached_property
    def positions(self) -> Positions:
        headers = self._record.suites[:-1]
        return Positions(self._size(index, header) for index, header in enumerate(headers))

    def _size(self, index: int, header: SuiteHeader) -> int:
        """How many cases a suite has; of a stream or an older run, as far as trials show it."""
        if header.cases is not None:
            return header.cases
        facts = self._store.facts(self._record.id, positions_of(index))
        return max((place_of(trial.position)[1] + 1 for trial in facts), default=0)

    def page(
        self, where: CaseFilter, sort: Sort, limit: int, skip: int, after: str | None
    ) -> list[CaseRow]:
        cursor = None
        if after is not None:
            value, position = read_cursor(after, sort)
            position = self.positions.stored(position)
            cursor = (position if sort.by == "position" else value, position)
        query = CaseQuery(where, sort, limit, skip, cursor)
        if self._is_indexed:
            rows = self._store.case_index.page(self._record.id, query)
        else:
            rows = select(self._rows, query)
        return with_positions(rows, self.positions.shown)

    def facets(self, where: CaseFilter) -> Facets:
        if self._is_indexed:
            return self._store.case_index.facets(self._record.id, where)
        return count(self._rows, where)

    def row(self, trials: list[TrialRecord]) -> CaseRow:
        """The row of the case with these trials."""
        position = trials[0].position
        if self._store.case_index.has(self._record.id):
            found = self._store.case_index.row(self._record.id, position)
            if found is not None:
                return found
        change = _change_of_case(self._store, self._record, trials)
        (case,) = rows_of(self._record, trials, [change])
        return case.row

    @cached_property
    def _is_indexed(self) -> bool:
        """Are the rows in the store? Those of an ended run are added when they are needed."""
        return index_cases(self._store, self._record)

    @cached_property
    def _rows(self) -> list[IndexedCase]:
        return list(make_rows(self._store, self._record))


def index_cases(store: Store, record: RunRecord) -> bool:
    """Compute the rows of an ended run, unless it has them; returns whether it has them now."""
    if record.status == "running":
        return False
    if store.case_index.has(record.id):
        return True
    return store.case_index.add(record, make_rows(store, record))


def make_rows(store: Store, record: RunRecord) -> Iterator[IndexedCase]:
    """The rows of a run, from its trials."""
    base = baseline_of(store, record)
    found = None if base is None else changes(base, stored(record, store))
    return rows_of(record, store.trials(record.id), found)


def baseline_of(store: Store, record: RunRecord) -> Outcomes | None:
    """The outcomes of the run that the run was compared with; None if there is none any more."""
    name = record.verdict.baseline
    try:
        return None if name is None else outcomes_of(name, store, working_directory())
    except AssayError:
        return None


def _change_of_case(store: Store, record: RunRecord, trials: list[TrialRecord]) -> Change | None:
    """What became of one case compared with the baseline of the run."""
    base = baseline_of(store, record)
    if base is None:
        return None
    (now,) = fold(trials)  # type: ignore[arg-type]
    return change_of(partner(base, now.ref), now)
