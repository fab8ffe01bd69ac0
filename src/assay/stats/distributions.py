"""The normal, Student's t, beta and binomial distributions, accurate for large samples too."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

_NORMAL = NormalDist()
_PRECISION = 1e-15
_MAX_STEPS = 1_000_000
_TINY = 1e-300


def check_level(level: float) -> None:
    """Raise ValueError unless a confidence level or power lies between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"the level is {level!r}; it must be between 0 and 1, for example 0.95")


def normal_cdf(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    return _NORMAL.inv_cdf(p)


def critical_z(level: float) -> float:
    """How many standard errors around the mean hold a share `level` of a normal distribution."""
    check_level(level)
    return -normal_quantile((1 - level) / 2)


def interval_z(level: float) -> float:
    """The same for intervals, with the conventional 1.96 for 95 %."""
    return 1.96 if level == 0.95 else critical_z(level)


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    return _beta_cdf(x, 1 - x, a, b)


def beta_quantile(p: float, a: float, b: float) -> float:
    return _invert(lambda x: beta_cdf(x, a, b), p, 0.0, 1.0)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """The probability of at most k successes in n trials."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else _beta_cdf(1 - p, p, n - k, k + 1)


def t_two_sided(t: float, df: float) -> float:
    """The probability that Student's t with df degrees of freedom is at least |t| from zero."""
    square = t * t
    if math.isinf(square):
        return 0.0
    return _beta_cdf(df / (df + square), square / (df + square), df / 2, 0.5)


def t_quantile(p: float, df: float) -> float:
    """The value that Student's t stays below with probability p."""
    if not 0 < p < 1 or not df > 0:
        raise ValueError(f"no t quantile for p={p!r}, df={df!r}; 0 < p < 1 and df > 0 are needed")
    if p == 0.5:
        return 0.0
    tails = 2 * min(p, 1 - p)
    high = 1.0
    while t_two_sided(high, df) > tails:
        high *= 2
    size = _invert(lambda t: -t_two_sided(t, df), -tails, 0.0, high)
    return math.copysign(size, p - 0.5)


def _invert(increasing: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing function reaches a value, by bisection to the last digit."""
    while low < (middle := (low + high) / 2) < high:
        if increasing(middle) < target:
            low = middle
        else:
            high = middle
    return high


def _beta_cdf(x: float, y: float, a: float, b: float) -> float:
    """I_x(a, b), where y is 1 - x; a separate argument, as the subtraction loses digits near 1."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(a * math.log(x) + b * math.log(y) - log_beta(a, b))
    # The fraction converges fast only below the mean; above it, the other tail is computed.
    if x * (a + b + 2) < a + 1:
        return front / (a * _fraction(x, a, b))
    return 1 - front / (b * _fraction(y, b, a))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    value = upper = 1.0
    lower = 0.0
    for step in range(1, _MAX_STEPS):
        half, odd = divmod(step, 2)
        if odd:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        lower = 1 / ((1 + term * lower) or _TINY)
        upper = (1 + term / upper) or _TINY
        value *= upper * lower
        if abs(upper * lower - 1) < _PRECISION:
            return value
    raise ArithmeticError(f"I_x(a, b) did not converge for x={x!r}, a={a!r}, b={b!r}")
