"""`--stop-when decided`: compares a run with its baseline while it is still running.

Cases are tested in the order of the plan, which is random, not in the order of their completion:
failing answers may take longer, so the quick ones alone would look too good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from assay.model.comparison import CaseOutcome, CaseRef, comparable
from assay.model.result import JUDGED
from assay.model.run import TrialFacts, TrialRecord
from assay.model.trials import outcome_of
from assay.stats.sequential import Sequential


class SequentialStop:
    """The sequential test of a run against its base; `repeats_of` maps positions to repeats.

    Losses that `accepts` is true of count as unchanged.
    """

    def __init__(
        self,
        base: Iterable[CaseOutcome],
        order: Sequence[int],
        repeats_of: Callable[[int], int],
        accepts: Callable[[CaseRef], bool] = lambda ref: False,
        alpha: float = 0.05,
    ) -> None:
        self._accepts = accepts
        self.test = Sequential(alpha)
        #: How many pairs were tested.
        self.pairs = 0
        self._order, self._repeats_of, self._next = order, repeats_of, 0
        self._pending: dict[int, list[TrialFacts | TrialRecord]] = {}
        self._moved_clusters: set[str] = set()
        self._base = {
            case.ref: (case.outcome == "passed", case.comparability)
            for case in base
            if case.outcome in JUDGED
        }

    @property
    def reason(self) -> str:
        """Why nothing more needs to be asked; empty while undecided."""
        test = self.test
        if test.verdict is None:
            return ""
        moved = f"{test.lost} stopped passing and {test.gained} started to"
        return f"decided after {self.pairs} compared cases: {test.verdict}, as {moved}"

    def restore(self, trials: Iterable[TrialFacts]) -> None:
        """Add the trials that an earlier process of the run has finished."""
        for trial in trials:
            if trial.final:
                self.add(trial)

    def add(self, trial: TrialFacts | TrialRecord) -> str:
        """Add a trial; returns the reason to stop, empty if there is none yet."""
        if not trial.confirms:
            self._pending.setdefault(trial.position, []).append(trial)
        while self.test.verdict is None and self._next < len(self._order):
            position = self._order[self._next]
            trials = self._pending.get(position, ())
            if len(trials) < self._repeats_of(position):
                break
            self._test_case(self._pending.pop(position))
            self._next += 1
        return self.reason

    def _test_case(self, trials: Sequence[TrialFacts | TrialRecord]) -> None:
        first, outcome = trials[0], outcome_of(trials)
        ref = CaseRef(first.suite, first.case_id)
        known = self._in_base(ref)
        if known is None or outcome not in JUDGED:
            return
        before, key = known
        if not comparable(key, first.comparability):
            return
        self.pairs += 1
        now = outcome == "passed"
        if before and not now and self._accepts(ref):
            return
        if before != now and first.cluster is not None:
            # Cases of a cluster are not independent: only the first change counts.
            if first.cluster in self._moved_clusters:
                return
            self._moved_clusters.add(first.cluster)
        self.test = self.test.after(before, now)

    def _in_base(self, ref: CaseRef) -> tuple[bool, str] | None:
        """Whether a case passed in the base, and its key; files of other tools have no suites."""
        found = self._base.get(ref)
        return self._base.get(CaseRef("", ref.id)) if found is None else found
