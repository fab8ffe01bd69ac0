"""Losses that the configuration accepts, and entries that no longer apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

import msgspec

from assay.model.accepted import AcceptedLoss
from assay.model.comparison import AcceptedCase, CaseOutcome, CaseRef
from assay.redaction import redacted


class AcceptedLosses:
    """Looks up the cases of a candidate, and remembers which entries applied.

    An entry counts up to and including its day `until`. If several accept a case, the first counts.
    """

    def __init__(self, entries: Iterable[AcceptedLoss], today: date | None = None) -> None:
        self._entries = tuple(map(_Entry, entries))
        self._by_id: dict[str, list[_Entry]] = {}
        for entry in self._entries:
            until = entry.loss.until
            entry.expired = bool(today and until and until < str(today))
            for case_id in () if entry.expired else _possible_ids(entry.loss.case):
                self._by_id.setdefault(case_id, []).append(entry)
        #: The accepted cases that fail now.
        self.cases: list[AcceptedCase] = []

    def entry_for(self, ref: CaseRef) -> AcceptedLoss | None:
        """The entry that accepts this case."""
        return next((entry.loss for entry in self._matching(ref)), None)

    def covers(self, case: CaseOutcome) -> bool:
        """Does this case fail, and is that accepted? Each case of a candidate is looked up once."""
        found = self._matching(case.ref)
        if not found:
            return False
        first, *others = found
        first.used = True
        first.failing |= case.outcome != "passed"
        for other in others:
            other.repeated = True
        if case.outcome == "failed":
            reason, until = redacted(first.loss.reason), first.loss.until or ""
            self.cases.append(AcceptedCase(*case.ref, reason, until))
        return case.outcome == "failed"

    def warnings(self, *, complete: bool) -> Iterator[str]:
        """The entries that no longer apply; a run that is not complete cannot show what is gone."""
        for entry in self._entries:
            if why := entry.fault(complete=complete):
                case = redacted(entry.loss.case)
                yield f"accepted case {case!r} in the configuration: {why}; remove the entry"

    def _matching(self, ref: CaseRef) -> list[_Entry]:
        known = self._by_id.get(ref.id, ())
        return [entry for entry in known if entry.loss.case in (ref.id, str(ref))]


class _Entry(msgspec.Struct):
    """An entry, and what the cases of the candidate show about it."""

    loss: AcceptedLoss
    expired: bool = False
    #: Is it the first entry for a case?
    used: bool = False
    #: Is there an earlier entry for one of its cases?
    repeated: bool = False
    #: Does one of its cases not pass?
    failing: bool = False

    def fault(self, *, complete: bool) -> str:
        """Why it no longer applies; empty if it does, or that is not known."""
        if self.expired:
            return f"its date {self.loss.until} has passed, so the loss counts again"
        if self.used:
            return "" if self.failing else "the case passes"
        if self.repeated:
            return "an earlier entry accepts the case"
        return "there is no such case" if complete else ""


def _possible_ids(case: str) -> Iterator[str]:
    """The ids that an entry may mean: all of it, or what follows a colon."""
    yield case
    start = 0
    while (found := case.find(": ", start)) >= 0:
        yield case[found + 2 :]
        start = found + 1
