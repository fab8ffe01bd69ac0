"""The list of cases on the page of a run: its filter, order and page, and the rows with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import msgspec

from assay.errors import FilterError, UsageError
from assay.model.case_filter import CaseFilter, Term, parse_filter
from assay.model.case_rows import CaseRow, Facets, parse_sort, write_cursor
from assay.model.result import Outcome
from assay.model.run import RunRecord, TrialRecord
from assay.model.trials import shown_trial
from assay.ports import Store
from assay.redaction import cut
from assay.server.pages.places import DEFAULT_SORT, case_list
from assay.server.pages.places import case_page as page_of_case
from assay.service.cases import case_facets, rows_of_page, trials_at
from assay.text import duration, money
from assay.web.content import visible
from assay.web.environment import SIGNS

#: How many rows are on a page without JavaScript.
ROWS = 50
#: How many rows the script gets at once.
MORE_ROWS = 100
#: The most characters of an id and of a reason, and the most tags of a row.
MAX_ID, MAX_WHY, MAX_TAGS = 80, 240, 6
#: What chips choose; the other terms of a filter stay as they are.
_CHOSEN = frozenset({"outcome", "changed", "flaky"})
#: The columns that can be sorted by, with the order of the first click, and their heads.
COLUMNS = (
    ("outcome", "Outcome", ""),
    ("id", "Case", ""),
    ("", "Why", ""),
    ("", "Tags", "optional"),
    ("-score", "Score", "number"),
    ("-cost", "Cost", "number optional"),
    ("-latency", "Time", "number"),
)
Chip = tuple[str, int, str, bool]
CountCases = Callable[[Store, RunRecord, CaseFilter], Facets]


class Place(msgspec.Struct, frozen=True):
    """Which part of the list is wanted; `at` is the number of the first row, from 0."""

    run_id: str
    filter: str = ""
    sort: str = DEFAULT_SORT
    after: str | None = None
    at: int | None = None

    @property
    def first(self) -> int:
        """The number of the first row."""
        return self.at or 0

    def link(self, *, filter: CaseFilter | str | None = None, sort: str = "") -> str:  # noqa: A002
        """The first page of the list with another filter or order."""
        where = self.filter if filter is None else filter
        return case_list(self.run_id, where, sort or self.sort)


class ListedCase(msgspec.Struct, frozen=True):
    """A row in words, for the page and for its script. `sign` is its outcome or change."""

    address: str
    sign: str
    mark: str
    label: str
    id: str
    source: str
    why: str
    tags: list[str]
    score: str
    cost: str
    time: str


class Head(msgspec.Struct, frozen=True):
    """The head of a column; `order` is that of the list if it is sorted by the column."""

    label: str
    cls: str
    address: str
    order: str


class CaseList(msgspec.Struct, frozen=True):
    """A page of the list. With `mistake`, the filter cannot be read, and there are no rows."""

    place: Place
    rows: list[ListedCase]
    total: int
    chips: list[Chip]
    heads: list[Head]
    next: str
    first: str
    mistake: str = ""


def list_cases(
    place: Place, store: Store, record: RunRecord, facets_of: CountCases = case_facets
) -> CaseList:
    """The page of the list at a place; raises UsageError for a wrong order or cursor.

    `facets_of` counts the cases that match.
    """
    sort = parse_sort(place.sort)
    mistake, where = "", CaseFilter()
    try:
        where = parse_filter(place.filter)
    except FilterError as error:
        mistake = str(error)
    total = facets_of(store, record, where).total
    others = CaseFilter(tuple(term for term in where.terms if term.field not in _CHOSEN))
    facets = facets_of(store, record, others)
    listed = rows_of_page(store, record, where, sort, ROWS, after=place.after)
    rows = [] if mistake else list(_listed(listed, place, store, record))
    more = ""
    if rows and place.first + len(rows) < total:
        cursor = write_cursor(listed[-1], sort)
        more = case_list(
            record.id, place.filter, place.sort, after=cursor, at=place.first + len(rows)
        )
    return CaseList(
        place,
        rows,
        0 if mistake else total,
        list(_chips(place, where, others, facets)),
        list(_heads(place)),
        "" if mistake else more,
        place.link() if place.first else "",
        mistake,
    )


def _chips(place: Place, where: CaseFilter, others: CaseFilter, facets: Facets) -> Iterator[Chip]:
    """The outcomes and changes with their counts among the cases that the other terms match."""
    now = [term for term in where.terms if term.field in _CHOSEN]
    yield "All", facets.total, place.link(filter=others), not now
    choices = [
        (name, Term("outcome", values=(name,)), facets.outcome.get(name, 0))
        for name in get_args(Outcome)
    ]
    choices += [
        (name.replace("-", " "), Term("changed", values=(name,)), number)
        for name, number in facets.changed.items()
    ]
    choices.append(("flaky", Term("flaky"), facets.flaky))
    for label, term, number in choices:
        if number or now == [term]:
            chosen = CaseFilter((*others.terms, term))
            yield label.capitalize(), number, place.link(filter=chosen), now == [term]


def _heads(place: Place) -> Iterator[Head]:
    current = place.sort.removeprefix("-")
    for sort, label, cls in COLUMNS:
        name = sort.removeprefix("-")
        if not name:
            yield Head(label, cls, "", "")
        elif name != current:
            yield Head(label, cls, place.link(sort=sort), "")
        else:
            descending = place.sort.startswith("-")
            other = name if descending else f"-{name}"
            yield Head(
                label, cls, place.link(sort=other), "descending" if descending else "ascending"
            )


def _listed(
    rows: Sequence[CaseRow], place: Place, store: Store, record: RunRecord
) -> Iterator[ListedCase]:
    trials = trials_at(store, record, [row.position for row in rows])
    for number, row in enumerate(rows, place.first):
        why, source = why_and_source(trials[row.position])
        address = page_of_case(record.id, row.position, place.filter, place.sort, at=number)
        yield ListedCase(
            address,
            sign_of(row),
            SIGNS[sign_of(row)],
            label_of(row),
            visible(cut(row.id, MAX_ID)),
            visible(source or row.suite),
            visible(cut(why, MAX_WHY)),
            [visible(tag) for tag in row.tags[:MAX_TAGS]],
            "none" if row.score is None else f"{row.score:.2f}",
            "" if row.cost_usd is None else money(row.cost_usd),
            duration(row.latency_ms),
        )


def more_rows(place: Place, store: Store, record: RunRecord) -> list[ListedCase]:
    """The rows from the number `at` on, for the script that shows only those in sight."""
    where, sort = parse_filter(place.filter), parse_sort(place.sort)
    rows = rows_of_page(store, record, where, sort, MORE_ROWS, skip=place.first)
    return list(_listed(rows, place, store, record))


class _Details(msgspec.Struct):
    failures: list[str] = []
    source: str = ""


class _Result(msgspec.Struct):
    details: _Details
    error: str | None = None


_decode = msgspec.json.Decoder(_Result).decode


def why_and_source(trials: Sequence[TrialRecord]) -> tuple[str, str]:
    """The first reason why a case did not pass, and where it is written."""
    found = _decode(shown_trial(trials).result)
    failures = found.details.failures or [found.error or ""]
    return failures[0], found.details.source


def sign_of(row: CaseRow) -> str:
    """What the sign of a row shows: a change for the worse or better, or else its outcome."""
    if row.changed in ("regressed", "fixed"):
        return row.changed
    return "flaky" if row.flaky else row.outcome


def label_of(row: CaseRow) -> str:
    """The sign in words; of a flaky case, how often it passed."""
    sign = sign_of(row)
    return f"flaky, {row.passes} of {row.judged} passed" if sign == "flaky" else sign


def read_place(run_id: str, given: dict[str, str]) -> Place:
    """The place that the parameters of a page name; raises UsageError."""
    at = given.get("at")
    if at is not None and not (at.isascii() and at.isdigit() and len(at) < 10):
        raise UsageError(f"at={at!r} is not the number of a row")
    sort, after = given.get("sort") or DEFAULT_SORT, given.get("after") or None
    return Place(run_id, given.get("filter", ""), sort, after, None if at is None else int(at))


class Around(msgspec.Struct, frozen=True):
    """The pages of the cases before and after one in its list, and where it is in the list."""

    previous: str = ""
    next: str = ""
    place: str = ""


def around(
    place: Place,
    store: Store,
    record: RunRecord,
    position: int,
    facets_of: CountCases = case_facets,
) -> Around:
    """The neighbours of a case: in the list that it was reached from, else in the run."""
    if place.at is None:
        return _around_in_run(store, record, position)
    where, sort = parse_filter(place.filter), parse_sort(place.sort)
    start = max(place.at - 1, 0)
    found = rows_of_page(store, record, where, sort, 3, skip=start)
    numbered = {number: row.position for number, row in enumerate(found, start)}
    if numbered.get(place.at) != position:  # the list has changed
        return _around_in_run(store, record, position)
    links = {
        at: page_of_case(record.id, there, place.filter, place.sort, at=at)
        for at, there in numbered.items()
    }
    text = f"{place.at + 1:,} of {facets_of(store, record, where).total:,}"
    return Around(links.get(place.at - 1, ""), links.get(place.at + 1, ""), text)


def _around_in_run(store: Store, record: RunRecord, position: int) -> Around:
    links = []
    for order in ("-position", "position"):
        sort = parse_sort(order)
        rows = rows_of_page(store, record, CaseFilter(), sort, 1, after=str(position))
        links.append(page_of_case(record.id, rows[0].position) if rows else "")
    return Around(*links)
