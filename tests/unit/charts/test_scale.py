"""Scales: what they hold, and that a value has one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.charts.scale import of_amounts, of_differences, of_rates

shares = st.floats(0, 1)
differences = st.floats(-1, 1) | st.sampled_from((float("inf"), float("-inf")))


@given(st.lists(shares))
def test_a_scale_of_rates_holds_them_within_0_and_100_percent(values: list[float]) -> None:
    scale = of_rates(values, 100, 300)
    assert 0 <= scale.low < scale.high <= 1
    assert all(scale.low - 1e-9 <= value <= scale.high + 1e-9 for value in values)
    assert all(100 <= scale.place(value) <= 300 for value in values)
    assert 2 <= len(list(scale.ticks())) <= 7


@given(st.lists(differences))
def test_zero_is_in_the_middle_of_a_scale_of_differences(values: list[float]) -> None:
    scale = of_differences(values, 100, 300)
    assert scale.place(0) == pytest.approx(200)
    assert all(100 <= scale.place(value) <= 300 for value in values)
    assert any(tick == pytest.approx(0) for tick in scale.ticks())
    assert len(list(scale.ticks())) <= 5


@given(st.lists(st.floats(0, 1e300)))
def test_a_scale_of_amounts_begins_at_zero(values: list[float]) -> None:
    scale = of_amounts(values, 100, 0)
    assert scale.place(0) == 100
    assert all(0 <= scale.place(value) <= 100 for value in values)
    assert 2 <= len(list(scale.ticks())) <= 4


def test_ticks_of_amounts_can_be_told_apart() -> None:
    assert list(of_amounts([0.3], 0, 1, 1.0).ticks()) == [0.0, 1.0]


def test_rates_that_are_all_equal_have_a_scale() -> None:
    assert [round(tick, 2) for tick in of_rates([1.0], 0, 1).ticks()] == [0.9, 0.95, 1.0]
    assert [round(tick, 2) for tick in of_rates([0.0], 0, 1).ticks()] == [0.0, 0.05, 0.1]
