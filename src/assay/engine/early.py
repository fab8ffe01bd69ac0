"""`--stop-when decided`: a comparison that may be looked at while its run goes on.

Cases are looked at in the order of the plan, which is random, and not as they come in: answers
that fail may take longer, and the quick ones alone would look too good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from assay.model.comparison import CaseOutcome, CaseRef, comparable
from assay.model.result import JUDGED
from assay.model.run import TrialFacts, TrialRecord
from assay.results.trials import outcome_of
from assay.stats.sequential import Sequential


class Early:
    """The sequential test of a run against its base. `repeats` tells how often a case is asked."""

    def __init__(
        self,
        base: Iterable[CaseOutcome],
        order: Sequence[int],
        repeats: Callable[[int], int],
        alpha: float = 0.05,
    ) -> None:
        self.test = Sequential(alpha)
        #: How many pairs were looked at.
        self.pairs = 0
        self._order, self._repeats, self._next = order, repeats, 0
        self._pending: dict[int, list[TrialFacts | TrialRecord]] = {}
        self._moved: set[str] = set()
        self._base = {
            case.ref: (case.outcome == "passed", case.comparability)
            for case in base
            if case.outcome in JUDGED
        }

    @property
    def reason(self) -> str:
        """Why nothing more needs to be asked; empty while it is open."""
        test = self.test
        if test.verdict is None:
            return ""
        moved = f"{test.lost} stopped passing and {test.gained} started to"
        return f"decided after {self.pairs} compared cases: {test.verdict}, as {moved}"

    def recall(self, trials: Iterable[TrialFacts]) -> None:
        """What an earlier process of the run has asked."""
        for trial in trials:
            if trial.final:
                self.see(trial)

    def see(self, trial: TrialFacts | TrialRecord) -> str:
        """One more trial; the reason to stop, if there is one now."""
        if not trial.confirms:
            self._pending.setdefault(trial.position, []).append(trial)
        while self.test.verdict is None and self._next < len(self._order):
            position = self._order[self._next]
            trials = self._pending.get(position, ())
            if len(trials) < self._repeats(position):
                break
            self._look(self._pending.pop(position))
            self._next += 1
        return self.reason

    def _look(self, trials: Sequence[TrialFacts | TrialRecord]) -> None:
        first, outcome = trials[0], outcome_of(trials)
        known = self._before(CaseRef(first.suite, first.case_id))
        if known is None or outcome not in JUDGED:
            return
        before, key = known
        if not comparable(key, first.comparability):
            return
        self.pairs += 1
        now = outcome == "passed"
        if before != now and first.cluster is not None:
            # Cases of a cluster move together: only the first that moves is a toss of its own.
            if first.cluster in self._moved:
                return
            self._moved.add(first.cluster)
        self.test = self.test.after(before, now)

    def _before(self, ref: CaseRef) -> tuple[bool, str] | None:
        """The case in the base; files of other tools know no suites."""
        found = self._base.get(ref)
        return self._base.get(CaseRef("", ref.id)) if found is None else found
