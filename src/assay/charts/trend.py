"""Trends: pass rates over runs with their intervals and baselines, and what runs cost and took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from assay.charts.intervals import rate_words
from assay.charts.markup import Chart, Html, dot, drawing, line, linked, table, titled, words
from assay.charts.scale import Scale, of_amounts, of_rates
from assay.model.comparison import comparable
from assay.stats.estimates import Estimate
from assay.text import count, percent

_WIDTH, _LEFT, _RIGHT, _TOP = 540, 76, 14, 16
_RATES, _AMOUNTS, _LABELS = 190, 84, 22
#: Names of runs closer than this would touch.
_APART = 88
_NAME = 10
#: Half of what such a name takes.
_HALF_NAME = 34


class TrendPoint(msgspec.Struct, frozen=True):
    """A run. Its `name` is drawn below the dot: its commit, or else its day.

    Runs with different `comparability` are not about the same questions. `is_baseline` says that it
    became the baseline. `detail` is added to the title of the dot.
    """

    name: str
    passed: int
    judged: int
    rate: Estimate
    comparability: str | None = None
    is_complete: bool = True
    is_baseline: bool = False
    detail: str = ""
    address: str = ""

    @property
    def said(self) -> str:
        rest = "" if self.is_complete else "; incomplete"
        rest += "; it became the baseline" if self.is_baseline else ""
        rest += f"; {self.detail}" if self.detail else ""
        return f"{rate_words(self.rate)}, {self.passed:,} of {self.judged:,}{rest}"


class Amount(msgspec.Struct, frozen=True):
    """What a run cost or took; None if that is not known."""

    name: str
    value: float | None
    address: str = ""


def rate_trend(points: Sequence[TrendPoint], caption: str) -> Chart:
    """A dot for each run in their order, hollow if the run is incomplete, with its interval.

    No line joins runs that are about different questions; a mark stands between them.
    """
    ends = [end for point in points for end in (point.rate.low, point.rate.high)]
    scale = of_rates(ends, _TOP + _RATES, _TOP)
    places = _places(len(points))
    marks = [*_grid(scale, percent), *_baselines(points, places, scale)]
    for (before, now), (left, right) in zip(pairwise(points), pairwise(places), strict=True):
        if _joined(before, now):
            ys = (scale.place(before.rate.estimate), scale.place(now.rate.estimate))
            marks.append(line(left, ys[0], right, ys[1], "line"))
        else:
            x = (left + right) / 2
            mark = line(x, _TOP, x, _TOP + _RATES, "break")
            marks.append(titled("the questions changed: not comparable", mark))
    marks += (_run(point, x, scale) for point, x in zip(points, places, strict=True))
    marks += _names([point.name for point in points], places, _TOP + _RATES + _LABELS)
    heads = ("Run", "Passed", "Judged cases", "Pass rate (interval)", "Notes")
    rows = (_cells(points, index) for index in range(len(points)))
    height = _TOP + _RATES + _LABELS + 8
    label = f"{caption}: {count(len(points), 'run')}"
    return Chart(drawing(label, _WIDTH, height, marks), table(caption, heads, rows))


def amount_trend(
    amounts: Sequence[Amount], caption: str, unit: Callable[[float], str], least: float = 0.0
) -> Chart:
    """What each run cost or took, at the same places as in `rate_trend`.

    `unit` writes an amount, and tells two of them apart that differ by `least`.
    """
    known = [found.value for found in amounts if found.value is not None]
    scale = of_amounts(known, _TOP + _AMOUNTS, _TOP, least)
    places = _places(len(amounts))
    marks = list(_grid(scale, unit))
    for (before, now), (left, right) in zip(pairwise(amounts), pairwise(places), strict=True):
        if before.value is not None and now.value is not None:
            ys = (scale.place(before.value), scale.place(now.value))
            marks.append(line(left, ys[0], right, ys[1], "line"))
    for found, x in zip(amounts, places, strict=True):
        if found.value is not None:
            mark = dot(x, scale.place(found.value), "dot", 3)
            marks.append(linked(titled(f"{found.name}: {unit(found.value)}", mark), found.address))
    rows = (
        (found.name, "not known" if found.value is None else unit(found.value)) for found in amounts
    )
    label = f"{caption}: {count(len(amounts), 'run')}"
    svg = drawing(label, _WIDTH, _TOP + _AMOUNTS + 10, marks)
    return Chart(svg, table(caption, ("Run", caption), rows))


def _places(number: int) -> list[float]:
    """Where the runs stand: at equal distances, whenever they ran."""
    step = (_WIDTH - _RIGHT - _LEFT) / max(number, 1)
    return [_LEFT + step * (index + 0.5) for index in range(number)]


def _grid(scale: Scale, label: Callable[[float], str]) -> Iterator[Html]:
    for value in scale.ticks():
        y = scale.place(value)
        yield line(_LEFT, y, _WIDTH - _RIGHT, y, "axis")
        yield words(label(round(value, 6)), _LEFT - 8, y + 4, "label end")


def _baselines(
    points: Sequence[TrendPoint], places: Sequence[float], scale: Scale
) -> Iterator[Html]:
    """The pass rate of each baseline, until it is replaced or the questions change."""
    end: float = _WIDTH - _RIGHT
    for index in reversed(range(len(points))):
        point, x = points[index], places[index]
        if point.is_baseline:
            y = scale.place(point.rate.estimate)
            title = f"baseline {point.name}: {percent(point.rate.estimate)}"
            yield titled(title, line(x, y, end, y, "limit"))
            end = x
        if index and not _joined(points[index - 1], point):
            end = (places[index - 1] + x) / 2


def _run(point: TrendPoint, x: float, scale: Scale) -> Html:
    rate = point.rate
    bar = line(x, scale.place(rate.low), x, scale.place(rate.high), "interval")
    mark = dot(x, scale.place(rate.estimate), "dot" if point.is_complete else "hollow", 4.5)
    return linked(titled(f"{point.name}: {point.said}", bar, mark), point.address)


def _names(names: Sequence[str], places: Sequence[float], y: float) -> Iterator[Html]:
    """As many names as have room; that of the last run is always there."""
    last = float("inf")
    for name, x in zip(reversed(names), reversed(places), strict=True):
        if last - x >= _APART:
            last = x
            middle = min(x, _WIDTH - _HALF_NAME)  # the last of many runs is near the edge
            yield titled(name, words(name, middle, y, "label mid", room=_NAME))


def _cells(points: Sequence[TrendPoint], index: int) -> tuple[str, ...]:
    point = points[index]
    notes = [point.detail] if point.detail else []
    if not point.is_complete:
        notes.append("incomplete")
    if point.is_baseline:
        notes.append("became the baseline")
    if index and not _joined(points[index - 1], point):
        notes.append("the questions changed: not comparable with the run before")
    counts = (f"{point.passed:,}", f"{point.judged:,}")
    return (point.name, *counts, rate_words(point.rate), "; ".join(notes))


def _joined(before: TrendPoint, now: TrendPoint) -> bool:
    return comparable(before.comparability or "", now.comparability or "")
