"""Power analysis: how many cases a comparison of two runs needs, and what it can detect."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import msgspec

from assay.stats.distributions import binomial_cdf, check_level, critical_z, normal_cdf
from assay.stats.distributions import normal_quantile as quantile
from assay.stats.paired import mcnemar

#: Up to this many discordant pairs, the power is an exact sum; beyond, a normal approximation.
_SUM_UP_TO = 400
#: Counts of discordant pairs further than this many standard deviations out are ignored.
_SIGMAS = 6


class Aim(msgspec.Struct, frozen=True):
    """The significance level, and the power: the chance to find a real difference."""

    alpha: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        check_level(self.alpha)
        check_level(self.power)

    @property
    def reach(self) -> float:
        """The detectable difference in standard errors: 2.80 by default."""
        return critical_z(1 - self.alpha) + quantile(self.power)


DEFAULT = Aim()


def paired_power(n: int, discordant: float, difference: float, alpha: float = 0.05) -> float:
    """The chance that McNemar's test finds a difference of pass rates among n paired cases.

    `discordant` is the share of cases whose outcome differs between the runs, for better
    or worse. The test is that of `mcnemar`, exact for few discordant pairs.
    """
    _check(discordant, difference)
    if n * discordant > _SUM_UP_TO:
        return _normal_power(n, discordant, difference, alpha)
    expected, deviation = n * discordant, math.sqrt(n * discordant * (1 - discordant))
    first = max(0, math.floor(expected - _SIGMAS * deviation) - 1)
    last = min(n, math.ceil(expected + _SIGMAS * deviation) + 1)
    worse = (discordant + abs(difference)) / (2 * discordant)
    return math.fsum(
        _binomial(count, n, discordant) * _power_given(count, worse, alpha)
        for count in range(first, last + 1)
    )


def detectable_difference(n: int, discordant: float, aim: Aim = DEFAULT) -> float | None:
    """The smallest difference of pass rates that n paired cases detect; None if there is none."""
    _check(discordant, 0.0)
    return _smallest(lambda d: paired_power(n, discordant, d, aim.alpha), discordant, aim)


def one_way_difference(n: int, aim: Aim = DEFAULT) -> float | None:
    """The same if all changes are for the worse: the best that few cases can do."""
    return _smallest(lambda d: paired_power(n, d, d, aim.alpha), 1.0, aim)


def _smallest(power: Callable[[float], float], most: float, aim: Aim) -> float | None:
    """The smallest detectable difference up to `most`, by bisection; None if there is none."""
    if power(most) < aim.power:
        return None
    low, high = 0.0, most
    while high - low > 1e-6:
        middle = (low + high) / 2
        if power(middle) < aim.power:
            low = middle
        else:
            high = middle
    return high


def cases_needed(difference: float, discordant: float, aim: Aim = DEFAULT) -> int | None:
    """How many paired cases detect a difference of pass rates; None for a difference of 0."""
    _check(discordant, difference)
    if difference == 0:
        return None
    low, high = 0, approximate_cases(difference, discordant, aim)
    while paired_power(high, discordant, difference, aim.alpha) < aim.power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if paired_power(middle, discordant, difference, aim.alpha) < aim.power:
            low = middle
        else:
            high = middle
    return high


def approximate_cases(difference: float, discordant: float, aim: Aim = DEFAULT) -> int:
    """The usual formula for McNemar's test, which gives a few cases less than the exact form."""
    _check(discordant, difference)
    if difference == 0:
        raise ValueError("the difference is 0; no number of cases can detect that")
    spread = critical_z(1 - aim.alpha) * math.sqrt(discordant)
    spread += quantile(aim.power) * math.sqrt(discordant - difference**2)
    return math.ceil((spread / difference) ** 2)


class Variances(msgspec.Struct, frozen=True):
    """Variances of graded scores: of the difference between cases, and within a case per run."""

    between: float
    within_before: float = 0.0
    within_now: float = 0.0

    def total(self, repeats_before: int = 1, repeats_now: int = 1) -> float:
        """The variance of one case's difference if attempts are averaged."""
        return self.between + self.within_before / repeats_before + self.within_now / repeats_now


def score_cases_needed(
    difference: float,
    variances: Variances,
    repeats_before: int = 1,
    repeats_now: int = 1,
    aim: Aim = DEFAULT,
) -> int:
    """Miller's sample size for a difference of mean scores, with repeated attempts."""
    if difference == 0:
        raise ValueError("the difference is 0; no number of cases can detect that")
    variance = variances.total(repeats_before, repeats_now)
    return max(math.ceil(aim.reach**2 * variance / difference**2), 1)


def score_detectable_difference(
    n: int,
    variances: Variances,
    repeats_before: int = 1,
    repeats_now: int = 1,
    aim: Aim = DEFAULT,
) -> float | None:
    """The smallest difference of mean scores that n paired cases detect."""
    variance = variances.total(repeats_before, repeats_now)
    return aim.reach * math.sqrt(variance / n) if n else None


def _check(discordant: float, difference: float) -> None:
    if not 0 < discordant <= 1:
        raise ValueError(f"the discordant share is {discordant!r}; it must be above 0, at most 1")
    if abs(difference) > discordant:
        raise ValueError(
            f"a difference of {difference!r} needs as many discordant cases; "
            f"their share is {discordant!r}"
        )


def _normal_power(n: int, discordant: float, difference: float, alpha: float) -> float:
    """The power for many discordant pairs, with the continuity correction of `mcnemar`."""
    shift = n * abs(difference)
    limit = critical_z(1 - alpha) * math.sqrt(n * discordant) + 1
    deviation = math.sqrt(n * (discordant - difference**2))
    if deviation == 0:
        return float(shift >= limit)
    return normal_cdf((shift - limit) / deviation) + normal_cdf((-shift - limit) / deviation)


@lru_cache(maxsize=4096)  # the search for a number of cases asks for most of them again and again
def _power_given(count: int, worse: float, alpha: float) -> float:
    """The power given the count of discordant pairs, each of which is worse with that chance."""
    most = _largest_minority(count, alpha)
    if most < 0:
        return 0.0
    return binomial_cdf(most, count, worse) + binomial_cdf(most, count, 1 - worse)


@lru_cache(maxsize=4096)
def _largest_minority(count: int, alpha: float) -> int:
    """How many of the discordant pairs can go the other way in a significant result."""
    most = -1
    while 2 * (most + 1) < count and mcnemar(count - most - 1, most + 1).value < alpha:
        most += 1
    return most


def _binomial(k: int, n: int, p: float) -> float:
    if p == 1:
        return float(k == n)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))
