"""Means: Student's t, the bootstrap, clusters."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.stats.estimates import Estimate
from assay.stats.means import (
    bootstrap,
    clustered_error,
    clustered_t,
    mean,
    score_mean,
    standard_error,
    student_t,
)

scores = st.lists(st.floats(0, 1), min_size=2, max_size=40)


def must(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def test_no_value_has_no_mean() -> None:
    assert mean([]) is None
    assert standard_error([]) is None
    assert student_t([]) is None
    assert clustered_t([], []) is None
    assert bootstrap([]) is None
    assert score_mean([]) is None


def test_one_value_has_no_limits() -> None:
    for found in (student_t([0.7]), bootstrap([0.7])):
        assert (must(found).low, must(found).high) == (-math.inf, math.inf)
        assert must(found).to_dict()["low"] is None
        assert must(found).to_dict()["high"] is None
    assert must(score_mean([0.7])).interval.to_dict() == {"low": 0, "high": 1}
    assert standard_error([0.7]) is None


def test_one_cluster_has_no_limits() -> None:
    assert clustered_error([0.1, 0.9], ["a", "a"]) is None
    assert must(clustered_t([0.1, 0.9], ["a", "a"])).high == math.inf
    assert must(bootstrap([0.1, 0.9], clusters=["a", "a"])).high == math.inf


def test_the_t_interval_of_three_values() -> None:
    """4.302653 is the printed quantile for two degrees of freedom."""
    found = must(student_t([1.0, 2.0, 3.0]))
    half = 4.302653 / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), abs=1e-6)


@given(values=scores)
def test_clusters_of_one_change_nothing(values: list[float]) -> None:
    plain, alone = must(student_t(values)), must(clustered_t(values, range(len(values))))
    assert plain.interval == alone.interval


@given(values=scores, copies=st.integers(2, 5))
def test_copies_say_no_more(values: list[float], copies: int) -> None:
    clusters = [*range(len(values))] * copies
    once, copied = standard_error(values), clustered_error(values * copies, clusters)
    assert copied == pytest.approx(once, abs=1e-9)


@given(values=scores)
def test_intervals_hold_the_mean(values: list[float]) -> None:
    for found in (student_t(values), bootstrap(values, draws=50)):
        assert must(found).low <= must(found).estimate <= must(found).high


@settings(max_examples=20)  # ten thousand draws each
@given(values=scores)
def test_a_mean_of_scores_is_a_score(values: list[float]) -> None:
    found = must(score_mean(values))
    assert 0 <= found.low <= found.high <= 1


def test_equal_values_have_no_spread() -> None:
    """Rounding must not make one: the mean of many 0.1 is not 0.1."""
    assert standard_error([0.1] * 1000) == 0
    assert must(student_t([0.1] * 1000)).interval.width == 0


def test_the_bootstrap_repeats_itself_by_its_seed() -> None:
    values = [0.1, 0.5, 0.9, 0.4]
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)
    assert bootstrap(values, seed=3, draws=100) != bootstrap(values, seed=4, draws=100)


def test_plain_percentiles_are_those_of_all_resamples() -> None:
    """Four values have only 256 resamples; the draws come near their percentiles."""
    values = [0.1, 0.5, 0.9, 0.4]
    every = sorted(sum(drawn) / 4 for drawn in product(values, repeat=4))
    found = must(bootstrap(values, 0.8, expanded=False))
    assert found.low == pytest.approx(every[round(0.1 * 255)], abs=0.026)
    assert found.high == pytest.approx(every[round(0.9 * 255)], abs=0.026)


def test_expanded_percentiles_reach_further_for_few_values_only() -> None:
    few, many = [0.1, 0.5, 0.9, 0.4, 0.6], [i / 400 for i in range(401)]
    widths = {
        (len(values), expanded): must(
            bootstrap(values, draws=2000, expanded=expanded)
        ).interval.width
        for values in (few, many)
        for expanded in (True, False)
    }
    assert widths[5, True] > 1.2 * widths[5, False]
    assert widths[401, True] == pytest.approx(widths[401, False], rel=0.05)


def test_whole_clusters_are_drawn() -> None:
    values, clusters = [0.0] * 10 + [1.0] * 10, ["a"] * 10 + ["b"] * 10
    together = must(bootstrap(values, clusters=clusters, expanded=False))
    assert (together.low, together.high) == (0, 1)
    assert must(bootstrap(values, expanded=False)).interval.width < 0.5


def test_every_value_needs_a_cluster() -> None:
    with pytest.raises(ValueError, match="2 values but 1 clusters"):
        clustered_t([0.1, 0.2], ["a"])


@pytest.mark.parametrize(
    ("n", "clusters", "method"),
    [(29, None, "bootstrap"), (30, None, "student-t"), (29, range(29), "student-t-clustered")],
)
def test_the_method_fits_the_number(n: int, clusters: range | None, method: str) -> None:
    assert must(score_mean([i / n for i in range(n)], clusters=clusters)).method == method


def test_an_estimate_is_clipped_to_possible_values() -> None:
    found = Estimate(0.9, 0.7, 1.1, 0.95, "student-t").clipped(0, 1)
    assert (found.low, found.high) == (0.7, 1)
