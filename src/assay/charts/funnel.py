"""The funnel of a live run: its pass rate so far, and how the interval narrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.charts.intervals import rate_words
from assay.charts.markup import Chart, Html, dot, drawing, line, number, table, titled, words
from assay.charts.scale import Scale, of_rates
from assay.stats.estimates import Estimate
from assay.text import percent

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 440, 52, 14, 10, 96


def funnel(found: Sequence[tuple[int, Estimate]], planned: int) -> Chart:
    """`found` has the rate after some numbers of judged cases, in order; `planned` is the last."""
    caption = "Pass rate so far"
    ends = [end for _, rate in found[len(found) // 4 :] for end in (rate.low, rate.high)]
    scale = of_rates(ends, _TOP + _HEIGHT, _TOP)
    marks: list[Html] = []
    for value in scale.ticks():
        y = scale.place(value)
        marks.append(line(_LEFT, y, _WIDTH - _RIGHT, y, "axis"))
        marks.append(words(percent(round(value, 4)), _LEFT - 8, y + 4, "label end"))
    marks += _band(found, max(planned, 1), scale)
    bottom = _TOP + _HEIGHT + 18
    marks.append(words("0", _LEFT, bottom, "label mid"))
    marks.append(words(f"{planned:,} cases", _WIDTH - _RIGHT, bottom, "label end"))
    said = f"{rate_words(found[-1][1])} after {found[-1][0]:,} of {planned:,}" if found else "none"
    svg = drawing(f"{caption}: {said}", _WIDTH, bottom + 6, marks)
    rows = ((f"{done:,}", rate_words(rate)) for done, rate in found)
    return Chart(svg, table(caption, ("Judged cases", "Pass rate (interval)"), rows))


def _band(found: Sequence[tuple[int, Estimate]], planned: int, scale: Scale) -> Iterator[Html]:
    if not found:
        return

    def x(done: int) -> float:
        return _LEFT + min(done / planned, 1.0) * (_WIDTH - _RIGHT - _LEFT)

    low = [(x(done), scale.place(rate.low)) for done, rate in found]
    high = [(x(done), scale.place(rate.high)) for done, rate in found]
    middle = [(x(done), scale.place(rate.estimate)) for done, rate in found]
    yield _path("band", [*low, *reversed(high)])
    yield _path("line", middle)
    done, rate = found[-1]
    yield titled(f"{rate_words(rate)} after {done:,}", dot(*middle[-1], "dot"))


def _path(cls: str, places: Sequence[tuple[float, float]]) -> Html:
    steps = "L".join(f"{number(x)} {number(y)}" for x, y in places)
    return Html(f'<path class="{cls}" d="M{steps}"/>')
