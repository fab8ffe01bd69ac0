"""Several estimates side by side: the highest is too high on average, unless it is shrunken."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.stats.means import mean


def shrunken(values: Sequence[float], variance: float) -> list[float]:
    """The values moved towards their mean, as far as chance explains how they differ.

    `variance` is the sampling variance of a value, without the part that all values share. A value
    keeps the share of its distance that is reliable: 1 - variance / spread, at least 0, where the
    spread is the sample variance of the values.
    """
    centre = mean(values)
    if centre is None or len(values) < 2:
        return list(values)
    spread = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    reliable = max(0.0, 1 - variance / spread) if spread > 0 else 0.0
    return [centre + reliable * (value - centre) for value in values]
