"""The same estimates from running sums, for values that are too many to keep."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec

from assay.stats.estimates import Estimate
from assay.stats.means import BOOTSTRAP_BELOW, DRAWS, bootstrap, t_estimate
from assay.stats.proportions import clustered_wilson


class Moments(msgspec.Struct):
    """Count, mean and sum of squared deviations, by Welford's method, and the first few values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    first: list[float] = []

    @classmethod
    def of(cls, value: float, count: int) -> Moments:
        """The moments of a value that occurs `count` times."""
        return cls(count, value, 0.0, [value] * min(count, BOOTSTRAP_BELOW))

    def add(self, value: float) -> None:
        self.count += 1
        deviation = value - self.mean
        self.mean += deviation / self.count
        self.squares += deviation * (value - self.mean)
        if self.count <= BOOTSTRAP_BELOW:
            self.first.append(value)

    def join(self, other: Moments) -> None:
        """Add all values of the other."""
        if not self.count:
            self.count, self.mean, self.squares = other.count, other.mean, other.squares
            self.first = other.first.copy()
            return
        if not other.count:
            return
        total, shift = self.count + other.count, other.mean - self.mean
        self.squares += other.squares + shift * shift * self.count * other.count / total
        self.mean += shift * other.count / total
        self.count = total
        self.first += other.first[: BOOTSTRAP_BELOW - len(self.first)]

    @property
    def variance(self) -> float | None:
        """The sample variance; None for fewer than two values."""
        return self.squares / (self.count - 1) if self.count > 1 else None

    def estimate(
        self, level: float = 0.95, *, seed: int = 0, draws: int = DRAWS
    ) -> Estimate | None:
        """The mean of scores from 0 to 1, as by `score_mean`."""
        if self.count < BOOTSTRAP_BELOW:
            found = bootstrap(self.first, level, seed=seed, draws=draws)
        else:
            error = math.sqrt((self.variance or 0.0) / self.count)
            found = t_estimate(self.mean, error, self.count - 1, level, "student-t")
        return None if found is None else found.clipped(0.0, 1.0)


class Clusters(msgspec.Struct, frozen=True):
    """Sums of clustered values: `named` has sum and size of each named cluster.

    All other values are clusters of their own: their number, their sum and their sum of squares.
    """

    named: Collection[tuple[float, int]]
    alone: int = 0
    alone_sum: float = 0.0
    alone_squares: float = 0.0

    @property
    def groups(self) -> int:
        return len(self.named) + self.alone

    @property
    def count(self) -> int:
        return sum(size for _, size in self.named) + self.alone

    @property
    def mean(self) -> float | None:
        total = math.fsum(value for value, _ in self.named) + self.alone_sum
        return total / self.count if self.count else None

    def error(self) -> float | None:
        """The clustered standard error of the mean, as by `clustered_error`."""
        centre, groups = self.mean, self.groups
        if centre is None or groups < 2:
            return None
        squares = math.fsum((total - size * centre) ** 2 for total, size in self.named)
        squares += self.alone_squares - 2 * centre * self.alone_sum + self.alone * centre**2
        # For equal values, rounding errors must count as zero.
        squares = squares if squares > 1e-12 * max(self.alone_squares, 1.0) else 0.0
        return math.sqrt(squares * groups / (groups - 1)) / self.count

    def rate(self, level: float = 0.95) -> Estimate | None:
        """The pass rate, for values of 1 (passed) and 0 (failed)."""
        mean = self.mean
        if mean is None:
            return None
        return clustered_wilson(mean, self.count, self.groups, self.error(), level)

    def estimate(self, level: float = 0.95) -> Estimate | None:
        """The mean of scores from 0 to 1, as by `score_mean` with clusters."""
        error, degrees = self.error(), self.groups - 1
        found = t_estimate(self.mean, error, degrees, level, "student-t-clustered")
        return None if found is None else found.clipped(0.0, 1.0)
