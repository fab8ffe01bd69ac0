"""A judge compared with human labels: its agreement, and the pass rate corrected by it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from assay.stats.distributions import interval_z
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson, wilson_limits


class Confusion(msgspec.Struct, frozen=True):
    """Labelled answers by the judge's verdict, and whether the human label agrees ("right")."""

    right_passes: int
    wrong_passes: int
    wrong_failures: int
    right_failures: int

    def __post_init__(self) -> None:
        counts = (self.right_passes, self.wrong_passes, self.wrong_failures, self.right_failures)
        if min(counts) < 0:
            raise ValueError(f"{self!r} counts answers; counts must not be negative")

    @classmethod
    def of(cls, labels: Iterable[tuple[bool, bool]]) -> Confusion:
        """Count (the human passes it, the judge passes it) pairs, one per answer."""
        counts = {(h, j): 0 for h in (True, False) for j in (True, False)}
        for human, judge in labels:
            counts[bool(human), bool(judge)] += 1
        return cls(
            counts[True, True], counts[False, True], counts[True, False], counts[False, False]
        )

    @property
    def n(self) -> int:
        return self.passes + self.failures

    @property
    def passes(self) -> int:
        """Answers that the human passes."""
        return self.right_passes + self.wrong_failures

    @property
    def failures(self) -> int:
        """Answers that the human fails."""
        return self.right_failures + self.wrong_passes

    def to_dict(self) -> dict[str, Any]:
        return {
            "rightPasses": self.right_passes,
            "wrongPasses": self.wrong_passes,
            "wrongFailures": self.wrong_failures,
            "rightFailures": self.right_failures,
        }


def agreement(table: Confusion, level: float = 0.95) -> Estimate | None:
    """The share of answers on which judge and human agree."""
    return wilson(table.right_passes + table.right_failures, table.n, level)


def majority_baseline(table: Confusion) -> float | None:
    """The agreement of a judge that always gives the human's most frequent label."""
    return max(table.passes, table.failures) / table.n if table.n else None


def sensitivity(table: Confusion, level: float = 0.95) -> Estimate | None:
    """Of the answers that the human passes, the share that the judge passes."""
    return wilson(table.right_passes, table.passes, level)


def specificity(table: Confusion, level: float = 0.95) -> Estimate | None:
    """Of the answers that the human fails, the share that the judge fails."""
    return wilson(table.right_failures, table.failures, level)


def kappa(table: Confusion, level: float = 0.95) -> Estimate | None:
    """Cohen's kappa: 0 is agreement by chance, 1 is full agreement.

    None if both always give the same one label: chance would agree as well.
    """
    n = table.n
    z = interval_z(level)
    if n == 0:
        return None
    seen = (table.right_passes + table.right_failures) / n
    judged = (table.right_passes + table.wrong_passes) / n
    human = table.passes / n
    chance = human * judged + (1 - human) * (1 - judged)
    if chance == 1:
        return None
    value = (seen - chance) / (1 - chance)
    half = z * _kappa_error(table, seen, chance)
    low, high = value - half, value + half
    if half == 0:
        # If one of them always gives the same label, or both always agree, the error is unknown;
        # the limits of the agreement are used instead.
        limits = wilson_limits(seen, n, z)
        low, high = ((end - chance) / (1 - chance) for end in (limits.low, limits.high))
    return Estimate(value, low, high, level, "cohen-kappa").clipped(-1.0, 1.0)


def corrected_rate(passed: int, n: int, labels: Confusion, level: float = 0.95) -> Estimate | None:
    """The pass rate that a human would give, from the judge's passes among n answers.

    The estimate is Rogan and Gladen's. The interval is Lang and Reiczigel's, which includes the
    error of sensitivity and specificity. None if the labels do not determine those, or the judge
    is no better than chance.
    """
    z = interval_z(level)
    if not 0 <= passed <= n:
        raise ValueError(f"{passed!r} of {n!r} answers cannot have passed")
    if n == 0 or labels.passes == 0 or labels.failures == 0:
        return None
    sensitive = labels.right_passes / labels.passes
    specific = labels.right_failures / labels.failures
    if sensitive + specific <= 1:
        return None
    value = min(max((passed / n + specific - 1) / (sensitive + specific - 1), 0.0), 1.0)
    low, high = _lang_reiczigel(passed, n, labels, z)
    return Estimate(value, min(low, value), max(high, value), level, "rogan-gladen")


def corrected_width(
    passed: int, n: int, labels: Confusion, more: int = 0, level: float = 0.95
) -> float | None:
    """The width of the interval of the corrected rate, once there are `more` labels.

    The new labels are expected to agree with the judge as often as those so far. None as for the
    rate itself.
    """
    if corrected_rate(passed, n, labels, level) is None:
        return None
    low, high = _lang_reiczigel(passed, n, labels, interval_z(level), 1 + more / labels.n)
    return high - low


def _kappa_error(table: Confusion, seen: float, chance: float) -> float:
    """The standard error after Fleiss, Cohen and Everitt."""
    n = table.n
    judged = (table.right_passes + table.wrong_passes) / n
    human = table.passes / n
    agreed = table.right_passes * (1 - chance - (human + judged) * (1 - seen)) ** 2
    agreed += table.right_failures * (1 - chance - (2 - human - judged) * (1 - seen)) ** 2
    split = table.wrong_failures * (judged + 1 - human) ** 2
    split += table.wrong_passes * (1 - judged + human) ** 2
    both = (agreed + (1 - seen) ** 2 * split) / n
    variance = both - (seen * chance - 2 * chance + seen) ** 2
    # Rounding errors of a zero variance must count as zero.
    return math.sqrt(variance / n) / (1 - chance) ** 2 if variance > 1e-15 else 0.0


def _lang_reiczigel(
    passed: int, n: int, labels: Confusion, z: float, growth: float = 1
) -> tuple[float, float]:
    """Limits between 0 and 1; every share is first shrunk towards the middle.

    With a `growth` there are so many times the labels, in the same shares.
    """
    size = n + z * z
    rate = (passed + z * z / 2) / size
    passes, failures = growth * labels.passes + 2, growth * labels.failures + 2
    sensitive = (growth * labels.right_passes + 1) / passes
    specific = (growth * labels.right_failures + 1) / failures
    gain = sensitive + specific - 1
    if gain <= 0:
        return 0.0, 1.0
    centre = (rate + specific - 1) / gain
    sensitive_variance = sensitive * (1 - sensitive) / passes
    specific_variance = specific * (1 - specific) / failures
    shift = 2 * z * z * (centre * sensitive_variance - (1 - centre) * specific_variance)
    variance = rate * (1 - rate) / size
    variance += (1 - centre) ** 2 * specific_variance
    variance += centre**2 * sensitive_variance
    half = z * math.sqrt(variance) / gain
    middle = centre + shift
    return min(max(middle - half, 0.0), 1.0), max(min(middle + half, 1.0), 0.0)
