"""What the table of values does not show: ends, symmetry, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats import distributions
from assay.stats.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    critical_z,
    interval_z,
    t_quantile,
    t_two_sided,
)

shapes = st.floats(0.5, 1e5)
shares = st.floats(1e-6, 1 - 1e-6)


@given(n=st.integers(1, 60), data=st.data(), p=st.fractions(0, 1, max_denominator=50))
def test_the_binomial_is_its_sum(n: int, data: st.DataObject, p: Fraction) -> None:
    k = data.draw(st.integers(-1, n))
    exact = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
    assert binomial_cdf(k, n, float(p)) == pytest.approx(float(exact), abs=1e-12)


@given(x=shares, a=shapes, b=shapes)
def test_the_beta_function_mirrors(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(1 - beta_cdf(1 - x, b, a), abs=1e-9)


@given(p=shares, a=shapes, b=shapes)
def test_quantiles_invert(p: float, a: float, b: float) -> None:
    x = beta_quantile(p, a, b)
    # The next smaller float is below p: no quantile could be nearer.
    assert beta_cdf(math.nextafter(x, 0), a, b) <= p + 1e-9
    assert beta_cdf(x, a, b) >= p - 1e-9


@given(p=shares, df=st.floats(1, 1e6))
def test_t_quantiles_invert_and_mirror(p: float, df: float) -> None:
    t = t_quantile(p, df)
    assert t_two_sided(t, df) == pytest.approx(2 * min(p, 1 - p), rel=1e-7, abs=1e-12)
    assert t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-6, abs=1e-9)


def test_the_ends() -> None:
    assert beta_cdf(0, 2, 3) == 0
    assert beta_cdf(1, 2, 3) == 1
    assert t_quantile(0.5, 4) == 0
    assert t_two_sided(1e200, 3) == 0
    assert t_two_sided(0, 3) == 1


@pytest.mark.parametrize(("p", "df"), [(0, 3), (1, 3), (0.5, 0), (0.2, math.nan)])
def test_impossible_quantiles_are_refused(p: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(p, df)


def test_intervals_take_the_printed_value() -> None:
    assert interval_z(0.95) == 1.96
    assert critical_z(0.95) == pytest.approx(1.959963984540054, abs=1e-12)
    assert interval_z(0.9) == critical_z(0.9)


def test_a_fraction_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "_MAX_STEPS", 3)
    with pytest.raises(ArithmeticError, match="did not converge"):
        beta_cdf(0.5, 1e5, 1e5)
