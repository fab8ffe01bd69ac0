"""`local`: works in this process, one piece after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Local:
    """The executor for little work, and for platforms without fork."""

    def run(self, work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
        return map(work, pieces)
