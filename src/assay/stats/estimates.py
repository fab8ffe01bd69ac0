"""The results of this package: estimates with their intervals, and p-values."""

from __future__ import annotations

import math
from typing import Annotated, Any

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


#: For JSON Schema. JSON has no infinity, so msgspec writes it as null.
INFINITE_IS_NULL = msgspec.Meta(extra_json_schema={"type": ["number", "null"]})
Limit = Annotated[float, INFINITE_IS_NULL]


class Estimate(msgspec.Struct, frozen=True):
    """An estimate with its confidence interval: a share `level` of those contain the truth."""

    estimate: float
    low: Limit
    high: Limit
    level: float
    method: str

    @property
    def interval(self) -> Interval:
        return Interval(self.low, self.high)

    def clipped(self, low: float, high: float) -> Estimate:
        """The same with the interval restricted to possible values."""
        return replace(self, low=min(max(self.low, low), high), high=max(min(self.high, high), low))

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: infinite limits become None."""
        numbers = {"estimate": self.estimate, **self.interval.to_dict()}
        return {**numbers, "level": self.level, "method": self.method}


class PValue(msgspec.Struct, frozen=True):
    """How often chance alone gives a result at least as extreme, and the test that says so."""

    value: float
    method: str


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
