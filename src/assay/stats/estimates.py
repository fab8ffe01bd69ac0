"""What the functions of this package return: an estimate with its interval, a p-value."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec.structs import replace


class Interval(msgspec.Struct, frozen=True):
    """All values from `low` to `high`, both included."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def to_dict(self) -> dict[str, Any]:
        return {"low": _finite(self.low), "high": _finite(self.high)}


class Estimate(msgspec.Struct, frozen=True):
    """A number, and the interval that holds the truth in `level` of all such samples."""

    estimate: float
    low: float
    high: float
    level: float
    method: str

    @property
    def interval(self) -> Interval:
        return Interval(self.low, self.high)

    def clipped(self, low: float, high: float) -> Estimate:
        """The same without the part of the interval that is impossible."""
        return replace(self, low=min(max(self.low, low), high), high=max(min(self.high, high), low))

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: an end that is not known is None."""
        numbers = {"estimate": self.estimate, **self.interval.to_dict()}
        return {**numbers, "level": self.level, "method": self.method}


class PValue(msgspec.Struct, frozen=True):
    """How often chance alone gives a result at least as extreme, and by which test."""

    value: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "method": self.method}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
