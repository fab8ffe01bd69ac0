"""Proportions: intervals for a pass rate, coverage, and bounds for missing cases."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from assay.stats.distributions import beta_quantile, check_level, interval_z, t_quantile
from assay.stats.estimates import Estimate, Interval
from assay.stats.means import clustered_error


def wilson(successes: int, n: int, level: float = 0.95) -> Estimate | None:
    """Wilson's score interval: accurate even for few cases and for rates near 0 or 1."""
    _check(successes, n)
    if n == 0:
        return None
    limits = wilson_limits(successes / n, n, interval_z(level))
    return Estimate(successes / n, limits.low, limits.high, level, "wilson")


def wilson_limits(rate: float, n: float, z: float) -> Interval:
    """The limits alone, for a rate of n cases; n need not be an integer."""
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / shrink
    # Rounding must not separate a limit from the 0, the 1 or the rate that it should equal.
    low = 0.0 if rate == 0 else min(max(centre - half, 0.0), rate)
    high = 1.0 if rate == 1 else max(min(centre + half, 1.0), rate)
    return Interval(low, high)


def win_rate(wins: int, losses: int, ties: int, level: float = 0.95) -> Estimate | None:
    """The share of wins with ties as half wins: Wilson's interval for the effective cases.

    A tie varies less than a win or a loss, so cases with ties count for more. Half a win and half
    a loss are added for the variance, or a sample of ties alone would have none.
    """
    _check(min(wins, losses, ties), wins + losses + ties)
    n = wins + losses + ties
    if n == 0:
        return None
    shares = [((wins + 0.5) / (n + 1), 1.0), ((losses + 0.5) / (n + 1), 0.0), (ties / (n + 1), 0.5)]
    centre = sum(share * score for share, score in shares)
    variance = sum(share * (score - centre) ** 2 for share, score in shares)
    effective = n * centre * (1 - centre) / variance
    rate = (wins + ties / 2) / n
    limits = wilson_limits(rate, effective, interval_z(level))
    return Estimate(rate, limits.low, limits.high, level, "wilson-ties")


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Estimate | None:
    """The exact interval: never too narrow, usually wider than needed."""
    _check(successes, n)
    check_level(level)
    if n == 0:
        return None
    tail = (1 - level) / 2
    low = _exact_lower_limit(successes, n, tail)
    high = 1 - _exact_lower_limit(n - successes, n, tail)
    return Estimate(successes / n, low, high, level, "clopper-pearson")


def _exact_lower_limit(successes: int, n: int, tail: float) -> float:
    return beta_quantile(tail, successes, n - successes + 1) if successes else 0.0


def clustered_rate(
    passed: Sequence[bool], clusters: Sequence[Hashable], level: float = 0.95
) -> Estimate | None:
    """Wilson's interval for the effective number of independent cases.

    Cases of a cluster are correlated, so they count for less than as many separate ones. If all
    pass, or all fail, the correlation is unknown, and each cluster counts as one case.
    """
    n = len(passed)
    if n == 0:
        return None
    error = clustered_error([float(p) for p in passed], clusters)
    return clustered_wilson(sum(passed) / n, n, len(set(clusters)), error, level)


def clustered_wilson(
    rate: float, n: int, groups: int, error: float | None, level: float = 0.95
) -> Estimate:
    """The same from the number of clusters, and the clustered standard error of the rate."""
    z = interval_z(level)
    effective = float(groups)
    if error is not None and 0 < rate < 1:
        # Few clusters give a poor estimate of their spread: Student's t accounts for that.
        ratio = z / t_quantile((1 + level) / 2, groups - 1)
        effective = min(rate * (1 - rate) / error**2 * ratio**2, n) if error else n
    limits = wilson_limits(rate, effective, z)
    return Estimate(rate, limits.low, limits.high, level, "wilson-clustered")


def coverage(judged: int, planned: int) -> float | None:
    """The share of the planned cases that got a verdict."""
    _check(judged, planned)
    return judged / planned if planned else None


def rate_bounds(passed: int, judged: int, planned: int) -> Interval | None:
    """The pass rate if all cases without a verdict had failed, and if all had passed."""
    _check(passed, judged)
    _check(judged, planned)
    if planned == 0:
        return None
    return Interval(passed / planned, (passed + planned - judged) / planned)


def _check(part: int, whole: int) -> None:
    if not 0 <= part <= whole:
        raise ValueError(
            f"{part!r} of {whole!r} is not a share; the part must be between 0 and the whole"
        )
