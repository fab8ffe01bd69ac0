"""Cases that were tried several times: pass@k, pass^k, flaky ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from assay.stats.estimates import Estimate
from assay.stats.means import DRAWS, bootstrap


class Attempts(msgspec.Struct, frozen=True):
    """How often one case passed, of how many attempts that got a verdict."""

    passed: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.n:
            raise ValueError(f"{self.passed!r} of {self.n!r} attempts cannot have passed")

    @property
    def flaky(self) -> bool:
        """It passed and failed."""
        return 0 < self.passed < self.n

    def pass_at_k(self, k: int) -> float | None:
        """The chance that at least one of k attempts passes; None with fewer than k attempts."""
        return _drawn(self.n - self.passed, self.n, k, lambda none: 1 - none)

    def pass_hat_k(self, k: int) -> float | None:
        """pass^k: the chance that all of k attempts pass; None with fewer than k attempts."""
        return _drawn(self.passed, self.n, k, lambda every: every)


def mean_pass_at_k(
    cases: Sequence[Attempts], k: int, level: float = 0.95, *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """pass@k over cases; None when there is no case, or one has fewer than k attempts."""
    return _over_cases([case.pass_at_k(k) for case in cases], level, draws, seed)


def mean_pass_hat_k(
    cases: Sequence[Attempts], k: int, level: float = 0.95, *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """pass^k over cases; None when there is no case, or one has fewer than k attempts."""
    return _over_cases([case.pass_hat_k(k) for case in cases], level, draws, seed)


def _drawn(marked: int, n: int, k: int, shown: Callable[[float], float]) -> float | None:
    """What k of n attempts, drawn without putting back, say when all are marked."""
    if k < 1:
        raise ValueError(f"k is {k!r}; it counts attempts and must be at least 1")
    return shown(math.comb(marked, k) / math.comb(n, k)) if k <= n else None


def _over_cases(
    shares: Sequence[float | None], level: float, draws: int, seed: int
) -> Estimate | None:
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return None
    found = bootstrap(known, level, draws=draws, seed=seed)
    return None if found is None else found.clipped(0.0, 1.0)


def at_least_by_chance(count: int, expected: float) -> float:
    """The probability that a rare event happens so often when it is expected so often (Poisson)."""
    term, below = math.exp(-expected), 0.0
    for i in range(count):
        below += term
        term *= expected / (i + 1)
    return max(1.0 - below, 0.0)
