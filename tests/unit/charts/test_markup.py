"""Markup: what comes from outside is escaped, and numbers are short."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given

from assay.charts.markup import Chart, Html, drawing, element, linked, number, table, text, words
from unit.charts.drawn_charts import HOSTILE, names


@given(names)
def test_any_text_is_one_text_node(name: str) -> None:
    found = ElementTree.fromstring(element("p", text(name), id=name))
    assert len(found) == 0
    assert found.text == found.get("id") or not name
    assert (found.text or "").isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_cells_of_a_table_are_escaped(name: str) -> None:
    found = ElementTree.fromstring(table(name, (name, "Cases"), [(name, "1")]))
    assert {cell.tag for cell in found.iter()} == {
        "table", "caption", "thead", "tbody", "tr", "th", "td"
    }  # fmt: skip


def test_a_chart_is_a_figure_with_its_table() -> None:
    chart = Chart(drawing("label", 10, 10, []), table("caption", ("",), [("a",)]))
    figure = ElementTree.fromstring(chart.__html__())
    assert [part.tag for part in figure] == ["svg", "details"]
    assert figure.find(".//table") is not None


def test_html_is_not_escaped_again() -> None:
    jinja = pytest.importorskip("jinja2")
    template = jinja.Environment(autoescape=True).from_string("{{ safe }} {{ unsafe }}")
    assert template.render(safe=Html("<b/>"), unsafe="<b/>") == "<b/> &lt;b/&gt;"


def test_a_drawing_with_links_is_not_one_image() -> None:
    mark = words("<a href=x>", 1, 1)
    assert ElementTree.fromstring(drawing("x", 9, 9, [mark])).get("role") == "img"
    link = linked(mark, "/runs/1?x=<&y")
    svg = ElementTree.fromstring(drawing("x", 9, 9, [link]))
    assert svg.get("role") == "group"
    assert svg[0].get("href") == "/runs/1?x=<&y"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.04, "0"), (-0.04, "0"), (12.0, "12"), (3.26, "3.3"), (-1.5, "-1.5")]
)
def test_a_coordinate_has_one_decimal_place_at_most(value: float, shown: str) -> None:
    assert number(value) == shown
