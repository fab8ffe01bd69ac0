"""Pass rates: check values, and what must hold for all counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.distributions import normal_cdf
from assay.stats.estimates import Estimate, Interval
from assay.stats.means import clustered_t
from assay.stats.proportions import (
    clopper_pearson,
    clustered_rate,
    coverage,
    rate_bounds,
    wilson,
    wilson_limits,
)

Method = Callable[[int, int, float], Estimate | None]

methods = pytest.mark.parametrize("method", [wilson, clopper_pearson])
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


@st.composite
def counts(draw: st.DrawFn, most: int = 3000) -> tuple[int, int]:
    n = draw(st.integers(1, most))
    return draw(st.integers(0, n)), n


def must(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (10, 10, 0.722460, 1),
        (5, 10, 0.236590, 0.763410),
        (9, 10, 0.595844, 0.982124),
        (50, 100, 0.403830, 0.596170),
    ],
)
def test_wilson_check_values(successes: int, n: int, low: float, high: float) -> None:
    found = must(wilson(successes, n))
    assert (round(found.low, 6), round(found.high, 6)) == (low, high)
    assert found.to_dict() == {
        "estimate": successes / n,
        "low": found.low,
        "high": found.high,
        "level": 0.95,
        "method": "wilson",
    }


@methods
def test_nothing_of_nothing_is_none(method: Method) -> None:
    assert method(0, 0, 0.95) is None


@methods
def test_all_and_none_reach_the_end_exactly(method: Method) -> None:
    for n in (1, 3, 10, 77, 100_000):
        assert must(method(n, n, 0.95)).high == 1
        assert must(method(0, n, 0.95)).low == 0


def test_the_exact_interval_of_all_is_the_closed_form() -> None:
    for n in (1, 10, 1000):
        assert must(clopper_pearson(n, n)).low == pytest.approx(0.025 ** (1 / n), rel=1e-12)


@methods
@given(counts=counts(), level=levels)
def test_it_holds_the_rate_and_stays_a_share(
    method: Method, counts: tuple[int, int], level: float
) -> None:
    found = must(method(*counts, level))
    assert 0 <= found.low <= found.estimate <= found.high <= 1


@methods
@given(counts=counts(), level=levels)
def test_failures_mirror_successes(method: Method, counts: tuple[int, int], level: float) -> None:
    successes, n = counts
    one, other = must(method(successes, n, level)), must(method(n - successes, n, level))
    assert one.low == pytest.approx(1 - other.high, abs=1e-12)
    assert one.high == pytest.approx(1 - other.low, abs=1e-12)


@methods
@given(counts=counts(most=500), times=st.integers(2, 20))
def test_more_cases_are_surer(method: Method, counts: tuple[int, int], times: int) -> None:
    successes, n = counts
    few, many = method(successes, n, 0.95), method(times * successes, times * n, 0.95)
    assert must(many).interval.width < must(few).interval.width


@methods
@given(counts=counts())
def test_more_certainty_is_wider(method: Method, counts: tuple[int, int]) -> None:
    widths = [must(method(*counts, level)).interval.width for level in (0.8, 0.95, 0.99)]
    assert widths == sorted(widths)


@given(counts=counts())
def test_wilson_solves_the_score_equation(counts: tuple[int, int]) -> None:
    """At each limit that is not an end, the rate is exactly z standard errors away."""
    successes, n = counts
    limits = wilson_limits(successes / n, n, 1.96)
    for limit in (limits.low, limits.high):
        if 0 < limit < 1:
            distance = abs(successes / n - limit) / (limit * (1 - limit) / n) ** 0.5
            assert distance == pytest.approx(1.96, rel=1e-6)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.2])
@methods
def test_a_level_is_a_share(method: Method, level: float) -> None:
    with pytest.raises(ValueError, match="it must be between 0 and 1"):
        method(1, 2, level)


@pytest.mark.parametrize("counts", [(3, 2), (-1, 2), (0, -1)])
@methods
def test_impossible_counts_are_refused(method: Method, counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        method(*counts, 0.95)


def test_clusters_of_one_are_nearly_wilson() -> None:
    passed = [True] * 150 + [False] * 50
    alone = must(clustered_rate(passed, range(200)))
    plain = must(wilson(150, 200))
    assert alone.low == pytest.approx(plain.low, abs=0.002)
    assert alone.high == pytest.approx(plain.high, abs=0.002)


def test_copies_of_a_case_say_no_more_than_the_case() -> None:
    passed = [True] * 30 + [False] * 10
    once = must(clustered_rate(passed, range(40)))
    copied = must(clustered_rate(passed * 5, [*range(40)] * 5))
    assert copied.low == pytest.approx(once.low, abs=1e-9)
    assert copied.high == pytest.approx(once.high, abs=1e-9)
    assert copied.interval.width > 2 * must(wilson(150, 200)).interval.width


def test_when_all_pass_each_cluster_counts_once() -> None:
    found = must(clustered_rate([True] * 100, [i // 10 for i in range(100)]))
    assert found.interval == must(wilson(10, 10)).interval
    assert clustered_rate([], []) is None


def test_one_cluster_says_next_to_nothing() -> None:
    assert must(clustered_rate([True] * 9 + [False], ["a"] * 10)).interval.width > 0.75


def test_equal_clusters_count_as_their_cases() -> None:
    passed, clusters = [True, False] * 10, [i // 2 for i in range(20)]
    assert must(clustered_t([float(p) for p in passed], clusters)).interval.width == 0
    assert must(clustered_rate(passed, clusters)).interval == must(wilson(10, 20)).interval


def test_missing_cases_could_all_fail_or_all_pass() -> None:
    assert rate_bounds(8, 9, 10) == Interval(0.8, 0.9)
    assert rate_bounds(8, 10, 10) == Interval(0.8, 0.8)
    assert rate_bounds(0, 0, 0) is None
    assert coverage(9, 10) == 0.9
    assert coverage(0, 0) is None
    with pytest.raises(ValueError, match="is not a share"):
        coverage(11, 10)


def test_an_interval_contains_its_values() -> None:
    interval = Interval(0.25, 0.5)
    assert 0.25 in interval
    assert 0.6 not in interval
    assert interval.to_dict() == {"low": 0.25, "high": 0.5}
    assert interval.width == 0.25


def test_the_normal_distribution_has_thin_tails() -> None:
    assert normal_cdf(0) == 0.5
    assert normal_cdf(-10) == pytest.approx(7.619853e-24, rel=1e-6)
