"""Scales: where a value is drawn, and the axis below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from assay.charts.markup import Html, line, words
from assay.text import percent, points

#: Distances between two ticks, as shares; the smallest that leaves few enough of them is used.
_RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_DIFFERENCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
_MAX_STEPS, _MAX_AMOUNTS = 4, 3
#: The smallest part of all rates that an axis shows.
_MIN_SPAN = 0.1
#: Amounts below this are drawn as 0.
_SMALLEST = 1e-9


class Scale(msgspec.Struct, frozen=True):
    """Values from `low` to `high` are drawn from `start` to `end`, and others at the nearer end."""

    low: float
    high: float
    start: float
    end: float
    step: float

    def place(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def has(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self) -> Iterator[float]:
        number = round((self.high - self.low) / self.step)
        return (self.low + index * self.step for index in range(number + 1))


def of_rates(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale for rates: as much of 0 % to 100 % as they need."""
    known = [min(max(value, 0.0), 1.0) for value in values] or [0.0, 1.0]
    least, most = min(known), max(known)
    if most - least < _MIN_SPAN:
        least = max(min(least, most - _MIN_SPAN), 0.0)
        most = min(max(most, least + _MIN_SPAN), 1.0)
    step = _step(most - least, _RATES)
    low, high = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return Scale(low * step, high * step, start, end, step)


def of_differences(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale for differences of rates, with 0 in its middle."""
    most = max((min(abs(value), 1.0) for value in values), default=1.0)
    step = _step(2 * max(most, _MIN_SPAN / 10), _DIFFERENCES)
    reach = math.ceil(most / step - 1e-9) * step or step
    return Scale(-reach, reach, start, end, step)


def of_amounts(values: Iterable[float], start: float, end: float, least: float = 0.0) -> Scale:
    """A scale from 0 for amounts of any size; two ticks differ by at least `least`."""
    most = max(values, default=0.0)
    most = most if most > _SMALLEST else 1.0
    size = 10.0 ** math.floor(math.log10(most / _MAX_AMOUNTS))
    step = next(step for part in (1, 2, 5, 10) if most / (step := size * part) <= _MAX_AMOUNTS)
    step = max(step, least)
    return Scale(0.0, math.ceil(most / step - 1e-9) * step, start, end, step)


def _step(span: float, steps: Sequence[float]) -> float:
    return next((step for step in steps if span / step <= _MAX_STEPS + 1e-9), steps[-1])


def rate_axis(scale: Scale, y: float) -> Iterator[Html]:
    """A line with a label at each tick."""
    return _axis(scale, y, lambda value: percent(round(value, 4)))


def difference_axis(scale: Scale, y: float) -> Iterator[Html]:
    """The same in points."""
    return _axis(scale, y, _points)


def _points(value: float) -> str:
    return "0" if abs(value) < 1e-9 else points(value, "+").removesuffix(".0")


def _axis(scale: Scale, y: float, label: Callable[[float], str]) -> Iterator[Html]:
    yield line(scale.start, y, scale.end, y, "axis")
    for value in scale.ticks():
        x = scale.place(value)
        yield line(x, y, x, y + 4, "axis")
        yield words(label(value), x, y + 18, "label mid")
