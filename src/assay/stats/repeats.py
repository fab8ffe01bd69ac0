"""Repeated attempts at a case: pass@k, pass^k, flakiness."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from assay.stats.estimates import Estimate
from assay.stats.means import DRAWS, bootstrap


class Attempts(msgspec.Struct, frozen=True):
    """How many of the n judged attempts at a case passed."""

    passed: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.n:
            raise ValueError(f"{self.passed!r} of {self.n!r} attempts cannot have passed")

    @property
    def flaky(self) -> bool:
        """Did some attempts pass and some fail?"""
        return 0 < self.passed < self.n

    def pass_at_k(self, k: int) -> float | None:
        """The chance that at least one of k attempts passes; None with fewer than k attempts."""
        none_passes = _all_among(self.n - self.passed, self.n, k)
        return None if none_passes is None else 1 - none_passes

    def pass_hat_k(self, k: int) -> float | None:
        """pass^k: the chance that all of k attempts pass; None with fewer than k attempts."""
        return _all_among(self.passed, self.n, k)


def mean_pass_at_k(
    cases: Sequence[Attempts], k: int, level: float = 0.95, *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """The mean pass@k of cases; None without cases, or if one has fewer than k attempts."""
    return _over_cases([case.pass_at_k(k) for case in cases], level, draws, seed)


def mean_pass_hat_k(
    cases: Sequence[Attempts], k: int, level: float = 0.95, *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """The mean pass^k of cases; None without cases, or if one has fewer than k attempts."""
    return _over_cases([case.pass_hat_k(k) for case in cases], level, draws, seed)


def _all_among(marked: int, n: int, k: int) -> float | None:
    """The chance that k of n attempts, drawn without replacement, are all among `marked` ones."""
    if k < 1:
        raise ValueError(f"k is {k!r}; it counts attempts and must be at least 1")
    return math.comb(marked, k) / math.comb(n, k) if k <= n else None


def _over_cases(
    shares: Sequence[float | None], level: float, draws: int, seed: int
) -> Estimate | None:
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return None
    found = bootstrap(known, level, draws=draws, seed=seed)
    return None if found is None else found.clipped(0.0, 1.0)


def at_least_by_chance(count: int, expected: float) -> float:
    """The Poisson probability of at least `count` events when `expected` are expected."""
    term, below = math.exp(-expected), 0.0
    for i in range(count):
        below += term
        term *= expected / (i + 1)
    return max(1.0 - below, 0.0)
