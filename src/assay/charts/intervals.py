"""A dot with its interval, the mark that most charts share, and its words."""

from __future__ import annotations

from collections.abc import Iterator

from assay.charts.markup import Html, dot, line
from assay.charts.scale import Scale
from assay.stats.estimates import Estimate
from assay.text import percent, points


def across(scale: Scale, found: Estimate, y: float, cls: str) -> Iterator[Html]:
    """The interval as a line with a dot on it; what leaves the scale ends in an arrow."""
    low, high = scale.place(found.low), scale.place(found.high)
    yield line(low, y, high, y, f"interval {cls}".strip())
    if not scale.has(found.low):
        yield _arrow(low, y, 5, cls)
    if not scale.has(found.high):
        yield _arrow(high, y, -5, cls)
    yield dot(scale.place(found.estimate), y, f"dot {cls}".strip())


def _arrow(x: float, y: float, depth: float, cls: str) -> Html:
    head = f"M{x + depth:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{x + depth:.1f} {y + 4:.1f}"
    return Html(f'<path class="{f"interval {cls}".strip()}" d="{head}"/>')


def direction(found: Estimate) -> str:
    """The class of a difference: `worse` or `better` if its interval leaves 0 out, else empty."""
    if found.high < 0:
        return "worse"
    return "better" if found.low > 0 else ""


def rate_words(found: Estimate | None) -> str:
    """`83.3 % (55.2 to 95.3)`, as in every report."""
    if found is None:
        return "no rate"
    low, high = (percent(end).removesuffix(" %") for end in (found.low, found.high))
    return f"{percent(found.estimate)} ({low} to {high})"


def difference_words(found: Estimate | None) -> str:
    """`-1.5 points (-3.2 to +0.1)`."""
    if found is None:
        return "no difference"
    low, value, high = (points(x, "+") for x in (found.low, found.estimate, found.high))
    return f"{value} points ({low} to {high})"
