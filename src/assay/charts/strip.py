"""The decision strip: the difference of two pass rates, its interval, and the margin."""

from __future__ import annotations

from assay.charts.intervals import across, difference_words, direction
from assay.charts.markup import Chart, Html, box, drawing, line, table, titled, words
from assay.charts.scale import difference_axis, of_differences
from assay.stats.estimates import Estimate
from assay.text import exact_points, points

_WIDTH, _HEIGHT, _SIDE, _Y, _AXIS = 360, 84, 34, 36, 58


def decision_strip(difference: Estimate, margin: float, pairs: int) -> Chart:
    """How the pass rate of `pairs` cases changed; within the margin, a difference does not count.

    The line is red or green only if the interval leaves out 0.
    """
    limits = (difference.low, difference.high, 1.25 * margin)
    scale = of_differences(limits, _SIDE, _WIDTH - _SIDE)
    low, zero, high = map(scale.place, (-margin, 0.0, margin))
    found = difference_words(difference)
    allowed = f"margin ±{exact_points(margin)}"
    marks: list[Html] = []
    if margin:
        band = box(low, 20, high - low, 32, "band")
        marks += [titled(f"{allowed} points", band), words(allowed, zero, 13, "label mid")]
    marks.append(line(zero, 20, zero, _AXIS, "zero"))
    marks.append(titled(found, *across(scale, difference, _Y, direction(difference))))
    marks += difference_axis(scale, _AXIS)
    label = f"Difference of the pass rates in points, over {pairs:,} cases: {found}; {allowed}"
    ends = (difference.low, difference.estimate, difference.high)
    row = (f"{pairs:,}", *(points(end, "+") for end in ends), exact_points(margin))
    heads = ("Compared cases", "Low", "Difference", "High", "Margin")
    caption = "Difference of the pass rates in points"
    return Chart(drawing(label, _WIDTH, _HEIGHT, marks), table(caption, heads, [row]))
