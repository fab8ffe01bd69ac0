"""The raw and the corrected rate of a judge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.charts.calibration import corrected_rates
from assay.stats.calibration import Confusion, corrected_rate
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson
from unit.charts.drawn_charts import checked, marks, rates, table_of


@given(rates(), st.none() | rates())
def test_everything_is_drawn_inside(
    raw: tuple[int, int, Estimate], other: tuple[int, int, Estimate] | None
) -> None:
    corrected = None if other is None else other[2]
    svg = checked(corrected_rates(raw[2], corrected, raw[1], 100))
    assert len(marks(svg, "dot")) == (1 if corrected is None else 2)


def test_the_table_has_what_is_drawn() -> None:
    raw, corrected = wilson(165, 200), corrected_rate(165, 200, Confusion(70, 9, 4, 17))
    assert raw is not None
    chart = corrected_rates(raw, corrected, 200, 100)
    assert table_of(chart)[1:] == [
        ["judge", "82.5 % (76.6 to 87.1)"],
        ["corrected", "79.8 % (65.8 to 92.7)"],
    ]
    assert "79.8 % (65.8 to 92.7)" in str(checked(chart).get("aria-label"))
