"""Losses that the configuration accepts, and entries that no longer apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from assay.model.accepted import AcceptedLoss
from assay.model.comparison import AcceptedCase, CaseOutcome, CaseRef
from assay.redaction import redacted


class AcceptedLosses:
    """Looks up the cases of a candidate, and remembers what became of each entry.

    An entry counts up to and including its day `until`.
    """

    def __init__(self, entries: Iterable[AcceptedLoss], today: date | None = None) -> None:
        self._entries = tuple(entries)
        self._expired = [e for e in self._entries if today and e.until and e.until < str(today)]
        self._by_id: dict[str, list[AcceptedLoss]] = {}
        for entry in self._entries:
            if entry not in self._expired:
                for case_id in _possible_ids(entry.case):
                    self._by_id.setdefault(case_id, []).append(entry)
        self._seen: set[str] = set()
        self._failing: set[str] = set()
        #: The accepted cases that fail now.
        self.cases: list[AcceptedCase] = []

    def entry_for(self, ref: CaseRef) -> AcceptedLoss | None:
        """The entry that accepts this case."""
        known = self._by_id.get(ref.id, ())
        return next((entry for entry in known if entry.case in (ref.id, str(ref))), None)

    def covers(self, case: CaseOutcome) -> bool:
        """Does this case fail, and is that accepted? Each case of a candidate is looked up once."""
        entry = self.entry_for(case.ref)
        if entry is None:
            return False
        self._seen.add(entry.case)
        if case.outcome != "passed":
            self._failing.add(entry.case)
        if case.outcome == "failed":
            self.cases.append(AcceptedCase(case.ref, redacted(entry.reason), entry.until or ""))
        return case.outcome == "failed"

    def warnings(self, *, complete: bool) -> Iterator[str]:
        """The entries that no longer apply; a run that is not complete cannot show what is gone."""
        for entry in self._entries:
            if entry in self._expired:
                why = f"its date {entry.until} has passed, so it counts again"
            elif entry.case not in self._seen:
                why = "there is no such case" if complete else ""
            else:
                why = "" if entry.case in self._failing else "the case passes"
            if why:
                case = redacted(entry.case)
                yield f"accepted case {case!r} in the configuration: {why}; remove the entry"


def _possible_ids(case: str) -> Iterator[str]:
    """The ids that an entry may mean: all of it, or what follows a colon."""
    yield case
    start = 0
    while (found := case.find(": ", start)) >= 0:
        yield case[found + 2 :]
        start = found + 1
