"""What became of each case of a run, compared with its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.comparison.pairs import pair
from assay.model.case_filter import Change
from assay.model.comparison import CaseOutcome, comparable


def changes(
    base: Iterable[CaseOutcome], candidate: Iterable[CaseOutcome]
) -> Iterator[Change | None]:
    """The change of every case of the candidate, in order."""
    return (change_of(before, now) for before, now in pair(base, candidate) if now is not None)


def change_of(before: CaseOutcome | None, now: CaseOutcome) -> Change | None:
    """The change of one case; None if it passed in both runs, or was skipped in one."""
    if before is None:
        return "added"
    if not comparable(before.comparability, now.comparability):
        return "not-comparable"
    outcomes = (before.outcome, now.outcome)
    if "errored" in outcomes:
        return "not-judged"
    if "skipped" in outcomes or outcomes == ("passed", "passed"):
        return None
    if now.outcome == "passed":
        return "fixed"
    return "regressed" if before.outcome == "passed" else "still-failing"
