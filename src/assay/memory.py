"""Remembering what is met again, and soon forgetting what is met once.

A suite's own evaluators come with every case; those of a case never come again. To keep the
latter for long would cost more than memory: whatever is made next would lie in memory that no
cache of the processor holds.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from itertools import pairwise
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: How many are remembered that were met again.
_MOST = 4096


class Remembered(dict[K, V]):
    """Values that were met again, by key; `fresh` more of those that were met once."""

    __slots__ = ("_fresh", "_once")

    def __init__(self, fresh: int = 64) -> None:
        self._fresh = fresh
        self._once: dict[K, V] = {}

    def again(self, key: K) -> V | None:
        """What was met once, and is met again now."""
        found = self._once.pop(key, None)
        if found is not None:
            if len(self) >= _MOST:
                self.clear()
            self[key] = found
        return found

    def meet(self, key: K, value: V) -> None:
        """Remember what was not known."""
        if len(self._once) >= self._fresh:
            self._once.clear()
        self._once[key] = value


class Hashes:
    """Finds hashes of 64 bits that are met twice. They are kept, and sorted a part at a time."""

    PARTS = 256

    def __init__(self) -> None:
        self._parts = [array("Q") for _ in range(self.PARTS)]

    def add(self, hashed: int) -> None:
        self._parts[hashed % self.PARTS].append(hashed)

    def __bool__(self) -> bool:
        return any(self._parts)

    def twice(self) -> set[int]:
        """Those that were met more than once."""
        return {a for part in self._parts for a, b in pairwise(sorted(part)) if a == b}
