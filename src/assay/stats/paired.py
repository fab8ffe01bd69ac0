"""Two runs over the same cases: what changed, and whether chance explains it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random

import msgspec

from assay.stats.distributions import binomial_cdf, interval_z, t_two_sided
from assay.stats.estimates import Estimate, PValue
from assay.stats.means import DRAWS, standard_error, student_t
from assay.stats.proportions import wilson_limits

#: From this many discordant pairs on, the chi-square test is as good as the exact one.
EXACT_BELOW = 50
#: From this many pairs on, the mean difference is as good as normal.
PERMUTE_BELOW = 200
#: Up to this many differences, all combinations of signs are tried.
ENUMERATE_UP_TO = 16
#: Beyond this, the integers of the exact test get long, and the beta function is as good.
_INTEGERS_UP_TO = 1000
_BITS_PER_BYTE = 8


class Pairs(msgspec.Struct, frozen=True):
    """How many cases passed in both runs, only before, only now, and in neither run."""

    both: int
    lost: int
    gained: int
    neither: int

    def __post_init__(self) -> None:
        _check(min(self.both, self.lost, self.gained, self.neither))

    @classmethod
    def of(cls, outcomes: Iterable[tuple[bool, bool]]) -> Pairs:
        """Count (passed before, passes now) pairs, one per case."""
        counts = {(b, n): 0 for b in (True, False) for n in (True, False)}
        for before, now in outcomes:
            counts[bool(before), bool(now)] += 1
        return cls(
            counts[True, True], counts[True, False], counts[False, True], counts[False, False]
        )

    @property
    def n(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    @property
    def discordant(self) -> int:
        return self.lost + self.gained

    @property
    def difference(self) -> float | None:
        """The pass rate now minus the one before."""
        return (self.gained - self.lost) / self.n if self.n else None


def mcnemar(lost: int, gained: int) -> PValue:
    """The exact test for few discordant pairs, the chi-square test with correction for many."""
    if lost + gained < EXACT_BELOW:
        return PValue(mcnemar_exact(lost, gained), "mcnemar-exact")
    return PValue(mcnemar_corrected(lost, gained), "mcnemar-corrected")


def mcnemar_worse(lost: int, gained: int) -> PValue:
    """The one-sided test: how often fair coins give at least as many losses.

    As in `mcnemar`, it is exact for few discordant pairs; for many it is the normal approximation
    with correction for continuity.
    """
    _check(min(lost, gained))
    n = lost + gained
    if n < EXACT_BELOW:
        ways = sum(math.comb(n, i) for i in range(lost, n + 1))
        return PValue(ways / (1 << n), "mcnemar-exact-worse")
    z = (lost - gained - 1) / math.sqrt(n)
    return PValue(math.erfc(z / math.sqrt(2)) / 2, "mcnemar-corrected-worse")


def mcnemar_exact(lost: int, gained: int) -> float:
    """The two-sided p-value: how often fair coins split at least as unevenly."""
    few, n = min(lost, gained), lost + gained
    _check(few)
    if lost == gained:
        return 1.0
    if n > _INTEGERS_UP_TO:
        return min(1.0, 2 * binomial_cdf(few, n, 0.5))
    ways = term = 1
    for i in range(few):
        term = term * (n - i) // (i + 1)
        ways += term
    return min(1.0, 2 * ways / (1 << n))


def mcnemar_corrected(lost: int, gained: int) -> float:
    """Chi-square with continuity correction; exactly 1 if there is no difference."""
    _check(min(lost, gained))
    if lost == gained:
        return 1.0
    statistic = (abs(lost - gained) - 1) ** 2 / (lost + gained)
    return math.erfc(math.sqrt(statistic / 2))


def newcombe(pairs: Pairs, level: float = 0.95) -> Estimate | None:
    """Newcombe's interval for the difference of paired pass rates (his method 10).

    It combines the Wilson limits of both rates, allowing for their correlation phi.
    """
    n = pairs.n
    z = interval_z(level)
    if n == 0:
        return None
    before, now = (pairs.both + pairs.lost) / n, (pairs.both + pairs.gained) / n
    old, new = wilson_limits(before, n, z), wilson_limits(now, n, z)
    phi = _phi(pairs)
    difference = (pairs.gained - pairs.lost) / n
    low = difference - _combine(now - new.low, old.high - before, phi)
    high = difference + _combine(new.high - now, before - old.low, phi)
    return Estimate(difference, low, high, level, "newcombe").clipped(-1.0, 1.0)


def permutation(
    differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0
) -> PValue | None:
    """Two-sided sign-flip test: how often random signs give a mean at least as far from zero.

    For few differences all combinations of signs are tried, for many a random sample. The order
    of the differences does not matter.
    """
    if not differences:
        return None
    # Zeros have no sign; sorting makes the random draws independent of the order.
    sizes = sorted(abs(d) for d in differences if d)
    observed = abs(math.fsum(differences))
    least = observed - 1e-12 * math.fsum(sizes)  # equal sums may differ in the last digits
    if len(sizes) <= ENUMERATE_UP_TO:
        sums = _all_signs(sizes)
        extreme = sum(abs(s) >= least for s in sums)
        return PValue(extreme / len(sums), "permutation-exact")
    extreme = sum(abs(s) >= least for s in _random_signs(sizes, draws, Random(seed)))
    return PValue((extreme + 1) / (draws + 1), "permutation")


def paired_t(differences: Sequence[float]) -> PValue | None:
    """Two-sided t test of a mean difference; None for fewer than two pairs."""
    error = standard_error(differences)
    if error is None:
        return None
    total = math.fsum(differences)
    if error == 0:
        return PValue(0.0 if total else 1.0, "paired-t")
    t = total / len(differences) / error
    return PValue(t_two_sided(t, len(differences) - 1), "paired-t")


def score_difference(differences: Sequence[float], level: float = 0.95) -> Estimate | None:
    """The mean difference of graded scores, now minus before, with its t interval."""
    found = student_t(differences, level)
    return None if found is None else found.clipped(-1.0, 1.0)


def score_test(differences: Sequence[float], *, seed: int = 0) -> PValue | None:
    """The permutation test for few pairs, the t test for many."""
    if len(differences) < PERMUTE_BELOW:
        return permutation(differences, seed=seed)
    return paired_t(differences)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for multiple tests by Holm's method."""
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted


def _check(least: int) -> None:
    if least < 0:
        raise ValueError(f"{least!r} is not a number of cases; counts must not be negative")


def _phi(pairs: Pairs) -> float:
    """The correlation of both runs; a positive one gets a continuity correction."""
    product = (
        (pairs.both + pairs.lost)
        * (pairs.gained + pairs.neither)
        * (pairs.both + pairs.gained)
        * (pairs.lost + pairs.neither)
    )
    if product == 0:
        return 0.0
    surplus: float = pairs.both * pairs.neither - pairs.lost * pairs.gained
    if surplus > 0:
        surplus = max(surplus - pairs.n / 2, 0.0)
    return surplus / math.sqrt(product)


def _combine(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(one * one - 2 * phi * one * other + other * other, 0.0))


def _all_signs(sizes: Sequence[float]) -> list[float]:
    """The sums for every combination of signs."""
    sums = [0.0]
    for size in sizes:
        sums = [s + size for s in sums] + [s - size for s in sums]
    return sums


def _random_signs(sizes: Sequence[float], draws: int, random: Random) -> Iterable[float]:
    """Sums for random signs; each random byte selects a precomputed sum of eight values."""
    padded = [*sizes, *[0.0] * (-len(sizes) % _BITS_PER_BYTE)]
    starts = range(0, len(padded), _BITS_PER_BYTE)
    tables = [_all_signs(padded[start : start + _BITS_PER_BYTE]) for start in starts]
    for _ in range(draws):
        picks = random.randbytes(len(tables))
        yield sum(table[pick] for table, pick in zip(tables, picks, strict=True))
