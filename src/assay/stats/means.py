"""Means of graded scores, with t, bootstrap and clustered intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from random import Random

from assay.stats.distributions import check_level, normal_cdf, t_quantile
from assay.stats.estimates import Estimate

#: Below this many scores, the symmetry that the t interval assumes is doubtful.
BOOTSTRAP_BELOW = 30
#: Below this many clusters, the estimate of their spread is unreliable, which deserves a warning.
FEW_CLUSTERS = 20
DRAWS = 10_000


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean; None for fewer than two values."""
    count, centre = len(values), mean(values)
    if count < 2 or centre is None:
        return None
    if min(values) == max(values):
        return 0.0  # the squares would be mere rounding errors
    squares = math.fsum((value - centre) ** 2 for value in values)
    return math.sqrt(squares * count / (count - 1)) / count


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """The standard error if values of one cluster are correlated.

    With G clusters, the sum is scaled by G / (G - 1), so that clusters of one value each give the
    ordinary standard error. None for fewer than two clusters.
    """
    units = _units(values, clusters)
    groups = len(units)
    centre = mean(values)
    if centre is None or groups < 2:
        return None
    if min(values) == max(values):
        return 0.0  # the residuals would be mere rounding errors
    squares = math.fsum((total - size * centre) ** 2 for total, size in units)
    return math.sqrt(squares * groups / (groups - 1)) / len(values)


def student_t(values: Sequence[float], level: float = 0.95) -> Estimate | None:
    """The t interval of a mean; infinite for a single value."""
    error = standard_error(values)
    return t_estimate(mean(values), error, len(values) - 1, level, "student-t")


def clustered_t(
    values: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95
) -> Estimate | None:
    """The t interval with the clustered standard error, and G - 1 degrees for G clusters."""
    degrees = len(set(clusters)) - 1
    error = clustered_error(values, clusters)
    return t_estimate(mean(values), error, degrees, level, "student-t-clustered")


def bootstrap(
    values: Sequence[float],
    level: float = 0.95,
    *,
    clusters: Sequence[Hashable] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    expanded: bool = True,
) -> Estimate | None:
    """The percentile bootstrap interval of a mean; resamples whole clusters if given.

    Plain percentiles are too narrow for few values. Expanded ones reach further out, by as
    much as Student's t reaches further than the normal distribution.
    """
    check_level(level)
    centre = mean(values)
    if centre is None:
        return None
    units = _units(values, range(len(values)) if clusters is None else clusters)
    if len(units) < 2:
        return Estimate(centre, -math.inf, math.inf, level, "bootstrap")
    means = sorted(_resampled(units, draws, Random(seed)))
    tail = _expanded_tail(level, len(units)) if expanded else (1 - level) / 2
    low, high = percentile(means, tail), percentile(means, 1 - tail)
    return Estimate(centre, min(low, centre), max(high, centre), level, "bootstrap")


def score_mean(
    scores: Sequence[float],
    level: float = 0.95,
    *,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Estimate | None:
    """The mean of scores from 0 to 1, by the method that suits their number."""
    if clusters is not None:
        found = clustered_t(scores, clusters, level)
    elif len(scores) < BOOTSTRAP_BELOW:
        found = bootstrap(scores, level, seed=seed)
    else:
        found = student_t(scores, level)
    return None if found is None else found.clipped(0.0, 1.0)


def t_estimate(
    centre: float | None, error: float | None, degrees: int, level: float, method: str
) -> Estimate | None:
    """A mean with its t interval, which is infinite if the standard error is not known."""
    check_level(level)
    if centre is None:
        return None
    if error is None:
        return Estimate(centre, -math.inf, math.inf, level, method)
    half = error * t_quantile((1 + level) / 2, degrees)
    return Estimate(centre, centre - half, centre + half, level, method)


def _units(values: Sequence[float], clusters: Sequence[Hashable]) -> list[tuple[float, int]]:
    """Sum and size of each cluster."""
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values but {len(clusters)} clusters; each value needs one")
    groups: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    return [(math.fsum(group), len(group)) for group in groups.values()]


def _resampled(units: list[tuple[float, int]], draws: int, random: Random) -> list[float]:
    sums, sizes = [total for total, _ in units], [size for _, size in units]
    count = len(units)
    if set(sizes) == {1}:  # about twice as fast, and by far the most common
        return [sum(random.choices(sums, k=count)) / count for _ in range(draws)]
    drawn = (random.choices(range(count), k=count) for _ in range(draws))
    return [sum(sums[i] for i in d) / sum(sizes[i] for i in d) for d in drawn]


def _expanded_tail(level: float, count: int) -> float:
    reach = t_quantile((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    return normal_cdf(-reach)


def percentile(ordered: list[float], share: float) -> float:
    """The value below which a share of ordered values lies, interpolated between two ranks."""
    rank = share * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])
