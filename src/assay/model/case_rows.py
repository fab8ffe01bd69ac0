"""CaseRow: a case of a run in a list, which is filtered, sorted and counted.

`select` and `count` do that for rows in memory; databases do the same in SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from assay.errors import UsageError, nearest
from assay.model.case_filter import CaseFilter, Change, FilterRow
from assay.model.result import Outcome
from assay.model.test_case import storable

Sortable = Literal[
    "position", "id", "suite", "outcome", "score", "cost", "latency", "flaky", "changed"
]
#: How many comparisons of two runs are kept; with one more, only that one is kept. There are as
#: many as margins, and readers can ask for any.
MAX_COMPARISONS = 10


class CaseRow(msgspec.Struct, frozen=True, rename="camel"):
    """A case of a run over all its repeats: `passes` of `judged` trials passed.

    `cost_usd` is that of all repeats, `latency_ms` the mean of them. `changed` is None if the run
    has no baseline, or if the case passed in both or was skipped in one.
    """

    position: int
    suite: str
    id: str
    tags: tuple[str, ...]
    evaluators: tuple[str, ...]
    outcome: Outcome
    passes: int
    judged: int
    score: float | None
    cost_usd: float | None
    latency_ms: float
    flaky: bool
    changed: Change | None


class CaseKind(msgspec.Struct, frozen=True):
    """What many cases of a run have in common, and filters compare with names.

    `suite` is the file, `suites` all names of it. `evaluator_types` are those of `evaluators`.
    """

    suite: str
    suites: tuple[str, ...]
    tags: tuple[str, ...]
    evaluators: tuple[str, ...]
    evaluator_types: tuple[str, ...]

    def filter_row(self) -> FilterRow:
        """The part of a case that its kind decides, as filters read it."""
        evaluators = (*self.evaluators, *self.evaluator_types)
        return FilterRow(id="", suites=self.suites, tags=self.tags, evaluators=evaluators)


class IndexedCase(msgspec.Struct, frozen=True):
    """A row, its kind, and its folded text, in which texts are searched."""

    row: CaseRow
    kind: CaseKind
    text: str

    def filter_row(self) -> FilterRow:
        """The same as filters read it."""
        row = self.row
        return replace(
            self.kind.filter_row(),
            id=row.id,
            text=self.text,
            outcome=row.outcome,
            changed=row.changed,
            flaky=row.flaky,
            score=row.score,
            cost=row.cost_usd,
            latency=row.latency_ms,
        )


class Sort(msgspec.Struct, frozen=True):
    """The order of a list. Cases without a value are last in both directions."""

    by: Sortable = "position"
    descending: bool = False

    def __str__(self) -> str:
        return f"-{self.by}" if self.descending else self.by


class CaseQuery(msgspec.Struct, frozen=True):
    """Which rows to return: those after the one with the value and the position of `after`."""

    where: CaseFilter = CaseFilter()
    sort: Sort = Sort()
    limit: int = 50
    skip: int = 0
    after: tuple[Any, int] | None = None


class Facets(msgspec.Struct, frozen=True, rename="camel"):
    """How many of the matching cases have each value. A case may have several tags.

    `evaluator` counts names.
    """

    total: int
    outcome: dict[str, int]
    suite: dict[str, int]
    tag: dict[str, int]
    evaluator: dict[str, int]
    flaky: int
    changed: dict[str, int]


class CasePage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of rows with the facets of all matches; `next` is the cursor of the next page."""

    rows: list[CaseRow]
    facets: Facets
    next: str | None

    @property
    def total(self) -> int:
        """How many cases match."""
        return self.facets.total


def parse_sort(text: str) -> Sort:
    """Read a sort order such as `-score`; raises UsageError."""
    by = text.removeprefix("-")
    if by not in get_args(Sortable):
        known = nearest(by, get_args(Sortable)) or f"known: {', '.join(get_args(Sortable))}"
        raise UsageError(f"cases cannot be sorted by {by!r}: {known}")
    return Sort(by, text.startswith("-"))  # type: ignore[arg-type]


def sort_value(row: CaseRow, by: Sortable) -> Any:
    """The value of a row that the order compares; None if it has none."""
    match by:
        case "cost":
            return row.cost_usd
        case "latency":
            return row.latency_ms
        case "flaky":
            return int(row.flaky)
    return getattr(row, by)


def write_cursor(row: CaseRow, sort: Sort) -> str:
    """The cursor of the page after a row: its position, and its value if not sorted by that."""
    if sort.by == "position":
        return str(row.position)
    return f"{row.position}:{msgspec.json.encode(sort_value(row, sort.by)).decode()}"


_NUMBERS = ("score", "cost", "latency", "flaky")


def read_cursor(text: str, sort: Sort) -> tuple[Any, int]:
    """The value and the position of a cursor; raises UsageError if it is not one of this order."""
    position, colon, value = text.partition(":")
    if position.isascii() and position.isdigit() and len(position) < 19:
        if sort.by == "position" and not colon:
            return int(position), int(position)
        kind = float | None if sort.by in _NUMBERS else str | None
        try:
            if sort.by != "position":
                found = msgspec.json.decode(value, type=kind)
                if not isinstance(found, str) or storable(found):
                    return found, int(position)
        except msgspec.DecodeError:
            pass
    raise UsageError(f"{text!r} is not a cursor of a page sorted by {sort}")


def select(cases: Iterable[IndexedCase], query: CaseQuery) -> list[CaseRow]:
    """The rows of a page."""
    rows = [case.row for case in cases if query.where.matches(case.filter_row())]
    key = _key(query.sort)
    rows.sort(key=lambda row: key(sort_value(row, query.sort.by), row.position))
    if query.after is not None:
        last = key(*query.after)
        rows = [row for row in rows if key(sort_value(row, query.sort.by), row.position) > last]
    return rows[query.skip : query.skip + query.limit]


class _Reversed:
    """Compares the other way round."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(other.value == self.value)

    __hash__ = None  # type: ignore[assignment]


def _key(sort: Sort) -> Callable[[Any, int], tuple[Any, ...]]:
    """The sort key; rows with the same value are in the order of the run."""

    def key(value: Any, position: int) -> tuple[Any, ...]:
        if value is None:
            return (True, 0, position)
        return (False, _Reversed(value) if sort.descending else value, position)

    return key


def count(cases: Iterable[IndexedCase], where: CaseFilter) -> Facets:
    """The facets of the cases that match."""
    matching = (case for case in cases if where.matches(case.filter_row()))
    groups = Counter((c.kind, c.row.outcome, c.row.flaky, c.row.changed) for c in matching)
    return facets_of((*group, number) for group, number in groups.items())


def facets_of(
    groups: Iterable[tuple[CaseKind, Outcome, bool, Change | None, int]],
) -> Facets:
    """The facets, from counts of cases that are alike."""
    counters = {
        name: Counter[str]() for name in ("outcome", "suite", "tag", "evaluator", "changed")
    }
    total = flaky_total = 0
    for kind, outcome, flaky, changed, number in groups:
        total += number
        flaky_total += number if flaky else 0
        counters["outcome"][outcome] += number
        counters["suite"][kind.suite] += number
        if changed is not None:
            counters["changed"][changed] += number
        for tag in dict.fromkeys(kind.tags):
            counters["tag"][tag] += number
        for name in dict.fromkeys(kind.evaluators):
            counters["evaluator"][name] += number
    found = {name: dict(sorted(counter.items())) for name, counter in counters.items()}
    return Facets(total=total, flaky=flaky_total, **found)


def with_positions(rows: Sequence[CaseRow], shown: Callable[[int], int]) -> list[CaseRow]:
    """The rows with positions as users see them."""
    return [replace(row, position=shown(row.position)) for row in rows]
