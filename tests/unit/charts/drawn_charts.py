"""Reads a chart back from its markup, and checks what must hold for every chart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hypothesis import strategies as st

from assay.charts.markup import Chart
from assay.model.comparison_tables import PairCounts
from assay.stats.estimates import Estimate
from assay.stats.paired import Pairs, newcombe
from assay.stats.proportions import wilson
from assay.text import columns

#: Names that would do something if they were not escaped.
HOSTILE = (
    "<script>alert(1)</script>",
    "\" onload='alert(1)' x=\"",
    "&lt;b&gt; ]]> <!-- --> <?xml ?>",
    "\x1b[31mred\x00\x07 \u202egnp.exe \ud800",
    "</title></svg><img src=x onerror=alert(1)>",
    "天気" * 40,
    "line\nbreak\r\u2028and\ttab",
    "",
)
names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))
counts = st.one_of(st.integers(0, 8), st.integers(0, 100_000))
#: What a column of text takes at the size that the style sheet gives it.
_COLUMN = 6.3
_NUMBER = re.compile(r"-?[\d.]+|[A-Z]")
_ELEMENTS = {"svg", "g", "a", "title", "text", "tspan", "path", "circle", "rect"}
_ATTRIBUTES = {"class", "viewBox", "width", "height", "role", "aria-label", "href"}
_ATTRIBUTES |= {"x", "y", "d", "cx", "cy", "r"}


@st.composite
def pair_counts(draw: st.DrawFn) -> PairCounts:
    pairs = Pairs(draw(counts), draw(counts), draw(counts), draw(counts))
    cells = (pairs.both, pairs.lost, pairs.gained, pairs.neither)
    return PairCounts(draw(names), pairs.n, *cells, newcombe(pairs))


@st.composite
def rates(draw: st.DrawFn) -> tuple[int, int, Estimate]:
    """Passed, judged, and the rate."""
    judged = draw(st.integers(1, 100_000))
    passed = draw(st.one_of(st.sampled_from((0, judged)), st.integers(0, judged)))
    rate = wilson(passed, judged)
    assert rate is not None
    return passed, judged, rate


def checked(chart: Chart) -> Element:
    """The drawing of a chart, of which everything was checked that holds for all."""
    svg = ElementTree.fromstring(chart.svg)
    assert svg.get("role") in ("img", "group")
    assert svg.get("aria-label")
    start, top, width, height = map(float, (svg.get("viewBox") or "").split())
    assert (start, top) == (0, 0)
    for element in svg.iter():
        assert element.tag in _ELEMENTS
        assert set(element.keys()) <= _ATTRIBUTES
        for x, y in _corners(element):
            assert -0.5 <= x <= width + 0.5, (ElementTree.tostring(element), x)
            assert -0.5 <= y <= height + 0.5, (ElementTree.tostring(element), y)
    for value in re.findall(r"\s(?:x|y|d|cx|cy|r|width|height)=\"([^\"]*)\"", chart.svg):
        assert not re.search("nan|inf|e[+-]", value), value
    rows = table_of(chart)
    assert len({len(row) for row in rows}) == 1
    return svg


def table_of(chart: Chart) -> list[list[str]]:
    """The cells of its table, with the row of heads."""
    found = ElementTree.fromstring(chart.table)
    return [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]


def titles(svg: Element) -> list[str]:
    return [element.text or "" for element in svg.iter("title")]


def marks(svg: Element, cls: str) -> list[Element]:
    """The elements with a class."""
    return [element for element in svg.iter() if cls in (element.get("class") or "").split()]


def texts(svg: Element) -> list[str]:
    return [element.text or "" for element in svg.iter("text")]


def _corners(element: Element) -> Iterator[tuple[float, float]]:
    def value(name: str) -> float:
        found = float(element.get(name) or 0)
        assert math.isfinite(found)
        return found

    if element.tag == "circle":
        for sign in (-1, 1):
            yield value("cx") + sign * value("r"), value("cy") + sign * value("r")
    elif element.tag == "rect":
        yield value("x"), value("y")
        yield value("x") + value("width"), value("y") + value("height")
    elif element.tag in ("text", "tspan"):
        long = _COLUMN * columns(element.text or "")
        classes = (element.get("class") or "").split()
        if "end" in classes or "number" in classes or element.tag == "tspan":
            left = value("x") - long
        else:
            left = value("x") - (long / 2 if "mid" in classes else 0)
        yield left, value("y")
        yield left + long, value("y")
    elif element.tag == "path":
        yield from _path(element.get("d") or "")


def _path(path: str) -> Iterator[tuple[float, float]]:
    """The points of a path of absolute M, L and H."""
    y = 0.0
    tokens = _NUMBER.findall(path)
    assert "".join(tokens) == path.replace(" ", "")
    for before, token in pairwise(["", *tokens, ""]):
        if before == "H":
            yield float(token), y
        elif before not in ("", "M", "L") and token not in ("", "M", "L", "H"):
            y = float(token)
            yield float(before), y
