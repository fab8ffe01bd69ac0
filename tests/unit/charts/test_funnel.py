"""The funnel of a live run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.charts.funnel import funnel
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson
from unit.charts.drawn_charts import checked, marks, rates, table_of


@given(st.lists(rates(), max_size=30), st.integers(0, 100_000))
def test_everything_is_drawn_inside(found: list[tuple[int, int, Estimate]], planned: int) -> None:
    svg = checked(funnel([(judged, rate) for _, judged, rate in found], planned))
    assert len(marks(svg, "dot")) == bool(found)


def test_the_table_has_what_is_drawn() -> None:
    rates = [(n, rate) for n in (10, 20) if (rate := wilson(n // 2, n)) is not None]
    chart = funnel(rates, 40)
    assert [row[0] for row in table_of(chart)[1:]] == ["10", "20"]
    assert "50 % (29.9 to 70.1) after 20 of 40" in str(checked(chart).get("aria-label"))
