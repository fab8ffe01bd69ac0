"""pass@k and pass^k against all the ways to draw k attempts."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.repeats import (
    Attempts,
    at_least_by_chance,
    mean_pass_at_k,
    mean_pass_hat_k,
)


@st.composite
def attempts(draw: st.DrawFn) -> Attempts:
    n = draw(st.integers(1, 200))
    return Attempts(draw(st.integers(0, n)), n)


@pytest.mark.parametrize(("n", "passed", "k"), [(10, 7, 3), (10, 0, 2), (6, 6, 6), (7, 1, 7)])
def test_the_formulas_count_all_draws(n: int, passed: int, k: int) -> None:
    drawn = list(combinations([True] * passed + [False] * (n - passed), k))
    case = Attempts(passed, n)
    assert case.pass_at_k(k) == pytest.approx(sum(map(any, drawn)) / len(drawn), abs=1e-15)
    assert case.pass_hat_k(k) == pytest.approx(sum(map(all, drawn)) / len(drawn), abs=1e-15)


def test_check_values() -> None:
    case = Attempts(7, 10)
    assert case.pass_at_k(3) == pytest.approx(119 / 120, abs=1e-15)
    assert case.pass_hat_k(3) == pytest.approx(35 / 120, abs=1e-15)


def test_more_attempts_than_there_are_is_none() -> None:
    assert Attempts(2, 2).pass_at_k(3) is None
    assert Attempts(2, 2).pass_hat_k(3) is None
    assert Attempts(0, 0).pass_hat_k(1) is None


@pytest.mark.parametrize("k", [0, -1])
def test_k_counts_attempts(k: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Attempts(1, 2).pass_at_k(k)


def test_impossible_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2 attempts"):
        Attempts(3, 2)


@given(case=attempts())
def test_more_tries_help_one_and_harm_all(case: Attempts) -> None:
    steps = range(1, case.n + 1)
    at, hat = [case.pass_at_k(k) or 0.0 for k in steps], [case.pass_hat_k(k) or 0.0 for k in steps]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert at[0] == pytest.approx(case.passed / case.n, abs=1e-12)
    assert hat[0] == pytest.approx(case.passed / case.n, abs=1e-12)
    assert all(h <= a + 1e-12 for h, a in zip(hat, at, strict=True))


@given(case=attempts(), k=st.integers(1, 200))
def test_one_passing_is_not_all_failing(case: Attempts, k: int) -> None:
    at, failing = case.pass_at_k(k), Attempts(case.n - case.passed, case.n).pass_hat_k(k)
    assert (at is None) == (failing is None)
    if at is not None and failing is not None:
        assert at == pytest.approx(1 - failing, abs=1e-12)


def test_flaky_is_neither_none_nor_all() -> None:
    assert [Attempts(c, 3).flaky for c in range(4)] == [False, True, True, False]
    assert not Attempts(0, 0).flaky


def test_many_attempts_do_not_overflow() -> None:
    assert Attempts(99_000, 100_000).pass_hat_k(100) == pytest.approx(0.99**100, rel=0.01)


def test_the_mean_is_over_cases() -> None:
    found = mean_pass_hat_k([Attempts(4, 4), Attempts(2, 4), Attempts(0, 4)], 2)
    assert found is not None
    assert found.estimate == pytest.approx((1 + 1 / 6 + 0) / 3)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    other = mean_pass_at_k([Attempts(4, 4), Attempts(2, 4), Attempts(0, 4)], 2)
    assert other is not None
    assert other.estimate == pytest.approx((1 + 5 / 6 + 0) / 3)


def test_a_case_with_too_few_attempts_is_not_left_out_in_silence() -> None:
    assert mean_pass_hat_k([Attempts(4, 4), Attempts(1, 1)], 2) is None
    assert mean_pass_at_k([], 1) is None


@pytest.mark.parametrize(
    ("count", "expected", "wanted"),
    [(0, 3.0, 1.0), (1, 0.0, 0.0), (1, 1.0, 0.632121), (2, 1.0, 0.264241), (3, 0.5, 0.014388)],
)
def test_how_likely_rare_events_are(count: int, expected: float, wanted: float) -> None:
    assert at_least_by_chance(count, expected) == pytest.approx(wanted, abs=1e-6)
