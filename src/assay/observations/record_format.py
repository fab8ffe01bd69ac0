"""A family of records: how it is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from assay.model.observation import Observation


class Need(msgspec.Struct, frozen=True):
    """Something that every record of a shape has, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


class RecordFormat(msgspec.Struct, frozen=True):
    """A record fits if it has everything that the shape needs."""

    name: str
    needs: tuple[Need, ...]
    read: Callable[[Any], Observation]

    def fits(self, value: Any) -> bool:
        return all(need.holds(value) for need in self.needs)

    def missing(self, value: Any) -> str:
        """How much of the needs a record has, and what is missing."""
        missing = [need.words for need in self.needs if not need.holds(value)]
        found, needed = len(self.needs) - len(missing), len(self.needs)
        return f"{self.name} {found} of {needed} ({', '.join(missing)})"
