"""Failures that share a reason, whatever values it names."""

from __future__ import annotations

import re

import msgspec

from assay.redaction import cut

#: The most different reasons that are counted; further ones are counted together.
MAX_GROUPS = 2000
#: The most characters of a reason that are compared and shown.
MAX_REASON = 300
#: Quoted values, which may be cut at the end of the reason, and numbers.
_VALUES = re.compile(
    r"(?<!\w)'(?:[^'\\]|\\.)*(?:'(?!\w)|$)|\"(?:[^\"\\]|\\.)*(?:\"|$)|“[^”]*”|[-+\u2212]?\d[\d.,]*"
)
_VALUE = "…"


class FailureGroup(msgspec.Struct):
    """Cases that did not pass for the same reason; it has `…` in place of values that differ."""

    number: int
    reason: str
    cases: int = 0


class FailureGroups:
    """Counts failures by their first reason; memory does not grow with the cases."""

    def __init__(self) -> None:
        self._groups: dict[str, FailureGroup] = {}
        self._others = FailureGroup(0, "other reasons")

    def add(self, reason: str) -> int:
        """Count a failure; returns the number of its group."""
        reason = " ".join(cut(reason, MAX_REASON, "both").split())
        key = _VALUES.sub(_VALUE, reason)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                group = self._others
            else:
                group = FailureGroup(len(self._groups) + 1, reason)
                self._groups[key] = group
        elif group.reason != reason:
            group.reason = key
        group.cases += 1
        return group.number

    def largest(self) -> list[FailureGroup]:
        """All groups, the largest first."""
        found = [group for group in (*self._groups.values(), self._others) if group.cases]
        return sorted(found, key=lambda group: (-group.cases, group.number or MAX_GROUPS))
