"""A sequential test, which stays valid although it is evaluated after every case.

If nothing changed, each discordant pair is the toss of a fair coin. A gambler who bets on
every toss, with a mixture of all biases, ends up with E times the stake. The chance that E
ever reaches 1 / alpha is at most alpha, however often it is checked (Ville's inequality). The
order of the cases must be random.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
from msgspec.structs import replace

from assay.stats.distributions import beta_cdf, log_beta

Side = Literal["both", "lost", "gained"]
Verdict = Literal["regressed", "improved"]

_LOG_TWO = math.log(2)


def log_e_value(lost: int, gained: int, side: Side = "both") -> float:
    """The logarithm of the e-value; `side` is the direction of the bets."""
    if min(lost, gained) < 0:
        raise ValueError(
            f"{lost!r} lost and {gained!r} gained are counts; they must not be negative"
        )
    a, b = lost + 0.5, gained + 0.5
    mixture = (lost + gained) * _LOG_TWO + log_beta(a, b) - math.log(math.pi)
    if side == "both":
        return mixture
    # Half of the stake is on each side: take this side's share of the gain, and double it.
    share = beta_cdf(0.5, b, a) if side == "lost" else beta_cdf(0.5, a, b)
    return mixture + _LOG_TWO + (math.log(share) if share > 0 else -math.inf)


def e_value(lost: int, gained: int, side: Side = "both") -> float:
    """The evidence against "nothing changed"; infinite if too large for a float."""
    log = log_e_value(lost, gained, side)
    return math.exp(log) if log < 709 else math.inf


class Sequential(msgspec.Struct, frozen=True):
    """The state of the test; add pairs with `after`, and stop once there is a verdict."""

    alpha: float = 0.05
    side: Side = "both"
    lost: int = 0
    gained: int = 0
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(
                f"alpha is {self.alpha!r}; it must be between 0 and 1, for example 0.05"
            )

    @property
    def e_value(self) -> float:
        return e_value(self.lost, self.gained, self.side)

    def after(self, before: bool, now: bool) -> Sequential:
        """The test after one more case; a verdict, once reached, is final."""
        if before == now:
            return self
        lost, gained = self.lost + (before and not now), self.gained + (now and not before)
        verdict = self.verdict
        if verdict is None and log_e_value(lost, gained, self.side) >= -math.log(self.alpha):
            verdict = "regressed" if lost > gained else "improved"
        return replace(self, lost=lost, gained=gained, verdict=verdict)
