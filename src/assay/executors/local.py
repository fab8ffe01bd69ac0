"""`local`: work is done here, one piece after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Local:
    """The executor for little work, and for machines where processes cannot be forked."""

    def run(self, work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
        return map(work, pieces)
