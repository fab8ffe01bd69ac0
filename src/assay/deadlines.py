"""A deadline for work that keeps an event loop waiting; long loops call `check_deadline`.

There is none by default. Work that hits its deadline is not lost: it is repeated where it may take
longer, see `assay.scoring`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")
A = TypeVar("A")

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class DeadlineExceeded(Exception):
    """The work was not done by its deadline. This is not an error of the work."""


def within(seconds: float, work: Callable[[A], T], argument: A) -> T:
    """The result of some work; raises DeadlineExceeded if it takes longer."""
    before = _deadline.set(perf_counter() + seconds)
    try:
        return work(argument)
    finally:
        _deadline.reset(before)


def check_deadline() -> None:
    """Raise DeadlineExceeded if the deadline has passed."""
    if perf_counter() > _deadline.get():
        raise DeadlineExceeded


def time_left() -> float:
    """Seconds until the deadline, infinite if there is none; raises DeadlineExceeded at its end."""
    left = _deadline.get() - perf_counter()
    if left <= 0:
        raise DeadlineExceeded
    return left
