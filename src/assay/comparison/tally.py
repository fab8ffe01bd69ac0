"""Compares two runs: pairs and counts their cases, decides, and explains the decision."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from assay.comparison.accepted import AcceptedLosses
from assay.comparison.decision import decide, explain, scores_of, worse_test
from assay.comparison.gate import GateRules, WatchedCases, apply_gate, flips_note, named
from assay.comparison.pairs import pair
from assay.model.comparison import (
    CaseOutcome,
    CaseRef,
    Comparison,
    Reasks,
    WorseTest,
    comparable,
)
from assay.model.result import JUDGED, Outcome
from assay.model.run import TrialFacts
from assay.model.trials import by_case, mean_score, outcome_of, repeats_of
from assay.results.statistics import few_clusters
from assay.stats.paired import Pairs

#: With more suites than this, the scores of all are compared together.
MAX_SUITES = 20


def fold(facts: Iterable[TrialFacts]) -> Iterator[CaseOutcome]:
    """Combine the ordered trials of a run into one outcome per case.

    Re-asks do not count as repeats.
    """
    return map(case_outcome, by_case(facts))


def case_outcome(trials: Sequence[TrialFacts]) -> CaseOutcome:
    """Combine the trials of one case."""
    first = trials[0]
    ref = CaseRef(first.suite, first.case_id)
    rest = (first.comparability, first.critical, first.cluster)
    if len(trials) == 1:  # a fast path for the most common case
        judged = first.outcome in JUDGED
        passes = first.outcome == "passed"
        return CaseOutcome(ref, first.outcome, int(passes), int(judged), first.score, *rest)
    reasks = Reasks.of(trial.outcome for trial in trials if trial.confirms)
    return CaseOutcome(ref, *_combine(repeats_of(trials)), *rest, reasks=reasks)


def _combine(trials: Sequence[TrialFacts]) -> tuple[Outcome, int, int, float | None]:
    """Outcome, passes, judged trials and mean score of several trials."""
    judged = [trial for trial in trials if trial.outcome in JUDGED]
    passes = sum(trial.outcome == "passed" for trial in judged)
    return outcome_of(trials), passes, len(judged), mean_score(trials)


def compare(
    base: Iterable[CaseOutcome],
    candidate: Iterable[CaseOutcome],
    rules: GateRules | None = None,
    *,
    names: tuple[str, str] = ("base", "candidate"),
    notes: Iterable[str] = (),
    complete: bool = True,
) -> Comparison:
    """Compare two runs case by case; `names` and `notes` are for the report.

    `complete` is false if the candidate was to ask only some of the cases.
    """
    rules = rules or GateRules()
    accepted = AcceptedLosses(rules.accepted, rules.today)
    tally = _Tally(accepted)
    for before, now in pair(base, candidate):
        tally.add(before, now)
    finding = decide(tally.pairs, rules.margin, *tally.clustered, rules.sequential)
    worse = tally.worse(rules)
    gate_result = apply_gate(finding, worse, tally.watched, rules)
    return Comparison(
        base=names[0],
        candidate=names[1],
        verdict=gate_result.verdict,
        decision=finding.decision,
        pairs=finding.pairs.n,
        losses=tuple(tally.watched.losses),
        accepted=tuple(accepted.cases),
        **tally.lists,
        difference=finding.difference,
        test=finding.significance,
        worse=worse if finding.pairs.n else None,
        scores=scores_of(tally.scores()),
        gate=rules.gate,
        gate_failures=gate_result.failures,
        undecided=gate_result.undecided,
        explanation=explain(finding, rules.margin, tally.unpaired),
        warnings=tuple(accepted.warnings(complete=complete)),
        notes=(*notes, *tally.notes(rules)),
        exit_code=gate_result.exit_code,
    )


class _Tally(msgspec.Struct):
    """Counts and lists of all pairs; little is kept of pairs without a change."""

    accepted: AcceptedLosses
    both: int = 0
    lost: int = 0
    gained: int = 0
    neither: int = 0
    watched: WatchedCases = msgspec.field(default_factory=WatchedCases)
    regressions: list[CaseRef] = []
    new_passes: list[CaseRef] = []
    still_failing: list[CaseRef] = []
    added: list[CaseRef] = []
    removed: list[CaseRef] = []
    not_comparable: list[CaseRef] = []
    unjudged: list[CaseRef] = []
    flaky: list[CaseRef] = []
    skipped: list[CaseRef] = []
    skipped_twice: int = 0
    repeated: int = 0
    graded_before: bool = False
    graded_now: bool = False
    differences: dict[str, array[float]] = {}
    changes: array[int] = msgspec.field(default_factory=lambda: array("b"))
    #: The indexes in `changes` of accepted losses.
    accepted_at: list[int] = []
    clusters: array[int] = msgspec.field(default_factory=lambda: array("l"))
    #: A number for each named cluster.
    numbers: dict[str, int] = {}

    def add(self, before: CaseOutcome | None, now: CaseOutcome | None) -> None:
        if now is None:
            if before is not None:
                self.removed.append(before.ref)
            return
        accepted = self.accepted.covers(now)
        if before is None:
            self.added.append(now.ref)
            self.watched.failed_added += self._fails_without_baseline(now, accepted)
        elif not comparable(before.comparability, now.comparability):
            self.not_comparable.append(now.ref)
            self.watched.failed_changed += self._fails_without_baseline(now, accepted)
        elif "errored" in (before.outcome, now.outcome):
            self.unjudged.append(now.ref)
        elif "skipped" in (before.outcome, now.outcome):
            self._add_skipped(before, now)
        else:
            self._add_pair(before, now, accepted)

    def _fails_without_baseline(self, now: CaseOutcome, accepted: bool) -> bool:
        """Does the case fail, and count as one without a baseline?"""
        if accepted:
            return False
        self.watched.judged_without_baseline += now.outcome in JUDGED
        return now.outcome == "failed"

    def _add_skipped(self, before: CaseOutcome, now: CaseOutcome) -> None:
        """Add a skipped case, which is reported only if it was skipped in just one of the runs."""
        if before.outcome != now.outcome:
            self.skipped.append(now.ref)
        else:
            self.skipped_twice += 1

    def _add_pair(self, before: CaseOutcome, now: CaseOutcome, accepted: bool) -> None:
        passed, passes = before.outcome == "passed", now.outcome == "passed"
        if passed and passes:
            self.both += 1
        elif passed:
            self._add_regression(before, now, accepted)
        elif passes:
            self.gained += 1
            self.new_passes.append(now.ref)
        else:
            self.neither += 1
            self.still_failing.append(now.ref)
        if before.judged > 1 or now.judged > 1:
            self.repeated += 1
            if 0 < before.passes < before.judged or 0 < now.passes < now.judged:
                self.flaky.append(now.ref)
                self.watched.flaky += 1
        self._add_change(before, now, passes - passed)

    def _add_regression(self, before: CaseOutcome, now: CaseOutcome, accepted: bool) -> None:
        self.lost += 1
        self.regressions.append(now.ref)
        if accepted:
            self.accepted_at.append(len(self.changes))
        else:
            self.watched.add_loss(before, now)

    def _add_change(self, before: CaseOutcome, now: CaseOutcome, change: int) -> None:
        """Add what clustered and score statistics need."""
        self.changes.append(change)
        cluster = before.cluster if now.cluster is None else now.cluster
        if cluster is None:  # a cluster of its own, with a negative number; named ones have 0 up
            self.clusters.append(-len(self.changes))
        else:
            self.clusters.append(self.numbers.setdefault(cluster, len(self.numbers)))
        if before.score is not None and now.score is not None:
            suite = now.ref.suite
            if suite not in self.differences:
                self.differences[suite] = array("d")
            self.differences[suite].append(now.score - before.score)
            self.graded_before |= 0 < before.score < 1
            self.graded_now |= 0 < now.score < 1

    @property
    def pairs(self) -> Pairs:
        return Pairs(self.both, self.lost, self.gained, self.neither)

    @property
    def clustered(self) -> tuple[array[int], array[int]]:
        """The arguments of `decide` for clusters: empty if there are none."""
        return (self.changes, self.clusters) if self.numbers else (array("b"), array("l"))

    def worse(self, rules: GateRules) -> WorseTest:
        """The one-sided test of the gate, in which accepted losses count as unchanged."""
        changes, clusters = self.clustered
        if changes and self.accepted_at:
            changes = changes[:]
            for index in self.accepted_at:
                changes[index] = 0
        lost = self.lost - len(self.accepted_at)
        return worse_test(lost, self.gained, changes, clusters, rules.sequential)

    @property
    def lists(self) -> dict[str, Any]:
        """The lists of cases, by the fields of a Comparison."""
        compared = ("regressions", "new_passes", "still_failing", "flaky")
        rest = ("added", "removed", "not_comparable", "unjudged")
        return {kind: tuple(getattr(self, kind)) for kind in (*compared, *rest)}

    @property
    def unpaired(self) -> dict[str, int]:
        return {
            "new": len(self.added),
            "gone": len(self.removed),
            "changed since": len(self.not_comparable),
            "not judged": len(self.unjudged),
            "skipped": len(self.skipped) + self.skipped_twice,
        }

    def scores(self) -> dict[str, array[float]]:
        """Score differences by suite; empty unless both runs have scores between 0 and 1."""
        if not (self.graded_before and self.graded_now):
            return {}
        if len(self.differences) <= MAX_SUITES:
            return self.differences
        together = array("d")
        for differences in self.differences.values():
            together += differences
        return {"": together}

    def notes(self, rules: GateRules) -> Iterator[str]:
        """What a reader should know besides the decision."""
        if rules.sequential is not None:
            yield (
                "the run was to stop once decided, so a sequential test (e-process) decides, which"
                " may be checked after every case; the interval of the difference does not account"
                " for that"
            )
        if self.skipped:
            yield f"skipped in one of the runs, so not compared: {named(self.skipped)}"
        if self.repeated:
            yield (
                f"cases that were asked several times: {self.repeated:,}; each counts once, as"
                " passed when enough of its trials passed"
            )
        yield from flips_note(self.watched)
        if self.numbers and (warning := few_clusters(len(set(self.clusters)))):
            yield warning
