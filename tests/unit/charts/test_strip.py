"""The decision strip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.charts.strip import decision_strip
from assay.stats.estimates import Estimate
from assay.stats.paired import Pairs, newcombe
from unit.charts.drawn_charts import checked, marks, table_of, titles


def difference(*counts: int) -> Estimate:
    found = newcombe(Pairs(*counts))
    assert found is not None
    return found


@given(st.tuples(*[st.integers(0, 10**5)] * 4).filter(any), st.sampled_from((0, 0.001, 0.02, 1)))
def test_everything_is_drawn_inside(counts: tuple[int, ...], margin: float) -> None:
    svg = checked(decision_strip(difference(*counts), margin, sum(counts)))
    assert len(marks(svg, "band")) == (margin > 0)
    assert len(marks(svg, "dot")) == 1


@pytest.mark.parametrize(
    ("counts", "cls"),
    [((100, 30, 0, 0), "worse"), ((100, 0, 30, 0), "better"), ((99, 1, 1, 9), "")],
)
def test_colour_only_when_the_interval_leaves_out_zero(counts: tuple[int, ...], cls: str) -> None:
    svg = checked(decision_strip(difference(*counts), 0.02, sum(counts)))
    assert marks(svg, "dot")[0].get("class") == f"dot {cls}".strip()


def test_the_table_has_what_is_drawn() -> None:
    chart = decision_strip(difference(181, 3, 2, 12), 0.02, 198)
    assert table_of(chart)[1] == ["198", "-3.5", "-0.5", "+2.3", "2"]
    assert "-0.5 points (-3.5 to +2.3)" in titles(checked(chart))
    assert "over 198 cases: -0.5 points" in str(checked(chart).get("aria-label"))
