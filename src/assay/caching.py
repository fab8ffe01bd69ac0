"""A cache for values that are used again, and a finder of duplicate hashes, both small.

The evaluators of a suite are used for every case, those of a case only once. Keeping the latter
would cost more than memory: new objects would always lie outside the processor's caches.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from itertools import pairwise
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: How many values that were used again are kept.
_MAX_REUSED = 4096


class ReuseCache(dict[K, V]):
    """A cache of values that were used again, and of up to `fresh` values used only once.

    Look up a key with `get`, then with `promote`; if both give None, add the value with `add`.
    """

    __slots__ = ("_fresh", "_once")

    def __init__(self, fresh: int = 64) -> None:
        self._fresh = fresh
        self._once: dict[K, V] = {}

    def promote(self, key: K) -> V | None:
        """A value that was used once so far; from now on it counts as used again."""
        found = self._once.pop(key, None)
        if found is not None:
            if len(self) >= _MAX_REUSED:
                self.clear()
            self[key] = found
        return found

    def add(self, key: K, value: V) -> None:
        """Add a value on its first use."""
        if len(self._once) >= self._fresh:
            self._once.clear()
        self._once[key] = value


class DuplicateHashes:
    """Finds duplicate 64-bit hashes. Partitioned, so that only one part at a time is sorted."""

    PARTS = 256

    def __init__(self) -> None:
        self._parts = [array("Q") for _ in range(self.PARTS)]

    def add(self, hashed: int) -> None:
        self._parts[hashed % self.PARTS].append(hashed)

    def __bool__(self) -> bool:
        return any(self._parts)

    def duplicates(self) -> set[int]:
        """The hashes that were added more than once."""
        return {a for part in self._parts for a, b in pairwise(sorted(part)) if a == b}
