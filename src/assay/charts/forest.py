"""Forest plots: a row for each suite or tag, with a dot and its interval on a common scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from assay.charts.intervals import across, difference_words, rate_words
from assay.charts.markup import (
    Chart,
    Html,
    dot,
    drawing,
    element,
    line,
    linked,
    table,
    text,
    titled,
    words,
)
from assay.charts.scale import Scale, difference_axis, of_differences, of_rates, rate_axis
from assay.model.comparison_tables import PairCounts
from assay.stats.estimates import Estimate
from assay.stats.paired import holm, mcnemar
from assay.text import count, percent

#: Fewer cases than this say little about a suite or a tag: its row is grey.
MIN_CASES = 5
#: Differences with a p-value below this, after Holm's correction, are coloured.
SIGNIFICANT = 0.05
#: More rows of rates than this are in the table only; of differences, this many are shown.
MAX_ROWS, MAX_DIFFERENCES = 40, 20

_WIDTH, _TOP, _ROW = 540, 26, 26
_NAME, _COUNT, _MOVED, _START = 22, 230, 284, 308


class RateRow(msgspec.Struct, frozen=True):
    """The pass rate of a suite or a tag; `base` is that of the baseline."""

    name: str
    passed: int
    judged: int
    rate: Estimate | None
    base: float | None = None
    address: str = ""


class _Row(msgspec.Struct, frozen=True):
    """A row as it is drawn."""

    name: str
    cases: int
    found: Estimate | None
    said: str
    cls: str
    moved: str = ""
    base: float | None = None
    address: str = ""


def difference_forest(
    counts: Sequence[PairCounts], caption: str, addresses: Mapping[str, str] | None = None
) -> Chart:
    """How the pass rate of each suite or tag changed, the worst first.

    Of many rows, those in which most moved are shown. Red and green are for differences that are
    significant even though there are many rows. `addresses` are those of the cases, by name.
    """
    to, classes = addresses or {}, _classes(counts)
    listed = sorted(sorted(counts, key=_most_moved_first)[:MAX_DIFFERENCES], key=_worst_first)
    rows = [
        _Row(
            name=row.name,
            cases=row.pairs,
            found=row.difference,
            said=f"{difference_words(row.difference)}, {row.regressed:,} regressed, "
            f"{row.fixed:,} fixed of {row.pairs:,}",
            cls=classes.get(row.name, ""),
            moved=f"{row.regressed:,}/{row.fixed:,}",
            address=to.get(row.name, ""),
        )
        for row in listed
    ]
    scale = of_differences(_limits(rows), _START, _WIDTH - 20)
    marks = [line(scale.place(0), _TOP - 6, scale.place(0), _bottom(rows), "zero")]
    marks += [_numbers("", "\u2212/+", 12)]
    axis = difference_axis(scale, _bottom(rows))
    heads = ("", "Compared cases", "Regressed", "Fixed", "Difference in points (interval)")
    cells = (
        (row.name, f"{row.pairs:,}", f"{row.regressed:,}", f"{row.fixed:,}", _bare(row.difference))
        for row in listed
    )
    more = f"and {len(counts) - len(rows):,} more, in which less moved"
    rest = more if len(counts) > len(rows) else ""
    return _forest(caption, rows, scale, (*marks, *axis), table(caption, heads, cells), rest)


def rate_forest(found: Sequence[RateRow], caption: str) -> Chart:
    """The pass rate of each suite or tag, in the given order; the baseline's is a hollow dot."""
    rows = [
        _Row(
            name=row.name,
            cases=row.judged,
            found=row.rate,
            said=f"{rate_words(row.rate)}, {row.passed:,} of {row.judged:,}"
            + ("" if row.base is None else f"; {percent(row.base)} in the baseline"),
            cls="",
            base=row.base,
            address=row.address,
        )
        for row in found
    ]
    values = [*_limits(rows), *(row.base for row in rows if row.base is not None)]
    scale = of_rates(values, _START - 46, _WIDTH - 24)
    heads = ("", "Passed", "Judged cases", "Pass rate (interval)", "Baseline")
    cells = (
        (row.name, f"{row.passed:,}", f"{row.judged:,}", rate_words(row.rate), _percent(row.base))
        for row in found
    )
    axis = rate_axis(scale, _bottom(rows))
    more = f"and {len(rows) - MAX_ROWS:,} more, in the table" if len(rows) > MAX_ROWS else ""
    return _forest(caption, rows, scale, axis, table(caption, heads, cells), more)


def _classes(rows: Sequence[PairCounts]) -> dict[str, str]:
    """Which rows are `worse` or `better`: of twenty rows, one would be by chance alone."""
    enough = [row for row in rows if row.pairs >= MIN_CASES]
    adjusted = holm([mcnemar(row.regressed, row.fixed).value for row in enough])
    return {
        row.name: "worse" if row.regressed > row.fixed else "better"
        for row, p in zip(enough, adjusted, strict=True)
        if p < SIGNIFICANT
    }


def _most_moved_first(row: PairCounts) -> tuple[int, int, str]:
    return -(row.regressed + row.fixed), -row.pairs, row.name


def _worst_first(row: PairCounts) -> tuple[bool, float, str]:
    few = row.pairs < MIN_CASES or row.difference is None
    return few, 0.0 if row.difference is None else row.difference.estimate, row.name


def _limits(rows: Sequence[_Row]) -> list[float]:
    """What the scale must hold: rows of few cases would make it too wide for the others."""
    enough = [row.found for row in rows if row.found is not None and row.cases >= MIN_CASES]
    known = enough or [row.found for row in rows if row.found is not None]
    return [end for found in known for end in (found.low, found.high)]


def _bottom(rows: Sequence[_Row]) -> float:
    return _TOP + _ROW * min(len(rows), MAX_ROWS) + 4


def _forest(
    caption: str,
    rows: Sequence[_Row],
    scale: Scale,
    around: Sequence[Html] | Iterator[Html],
    numbers: Html,
    more: str,
) -> Chart:
    marks = [_numbers("cases", "", 12), *around]
    for index, row in enumerate(rows[:MAX_ROWS]):
        marks.append(_drawn(row, _TOP + _ROW * index + _ROW / 2, scale))
    bottom = _bottom(rows) + 26
    if more:
        marks.append(words(more, 0, bottom + 8, "label"))
        bottom += 16
    return Chart(drawing(f"{caption}: {count(len(rows), 'row')}", _WIDTH, bottom, marks), numbers)


def _drawn(row: _Row, y: float, scale: Scale) -> Html:
    cls = "few" if row.cases < MIN_CASES else row.cls
    name = linked(words(row.name, 0, y + 4, room=_NAME), row.address)
    marks = [name, _numbers(f"{row.cases:,}", row.moved, y + 4)]
    if row.base is not None:
        marks.append(dot(scale.place(row.base), y, "hollow"))
    if row.found is not None:
        marks += across(scale, row.found, y, cls)
    return titled(f"{row.name}: {row.said}", *marks)


def _numbers(cases: str, moved: str, y: float) -> Html:
    """How many cases, and how many of them moved; in one element, as there are many rows."""
    second = [element("tspan", text(moved), x=_MOVED)] if moved else []
    return element("text", text(cases), *second, cls="number", x=_COUNT, y=y)


def _bare(found: Estimate | None) -> str:
    return difference_words(found).replace(" points", "")


def _percent(rate: float | None) -> str:
    return "" if rate is None else percent(rate)
