"""The cases of a recorded run: found by a filter, an id or a position."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from assay.model.case_filter import CaseFilter, Change, FilterRow, folded, parse_filter, suite_names
from assay.model.comparison import CaseRef, Comparison
from assay.model.result import CaseResult, decode_case
from assay.model.run import SuiteHeader, TrialRecord, place_of
from assay.model.run_result import RunResult
from assay.model.trials import by_case, entry_of
from assay.ports import Store


class RunCase(msgspec.Struct, frozen=True):
    """A case of a recorded run. `trials` are all attempts at it, `result` is their result."""

    position: int
    suite: SuiteHeader
    result: CaseResult
    trials: tuple[TrialRecord, ...]
    changed: Change | None = None

    @property
    def ref(self) -> CaseRef:
        return CaseRef(self.suite.file, self.result.id)

    @property
    def flaky(self) -> bool:
        """Did some repeats pass and others fail?"""
        outcomes = {trial.outcome for trial in self.trials if not trial.confirms}
        return {"passed", "failed"} <= outcomes

    def row(self) -> FilterRow:
        """The parts that filters read."""
        result, details = self.result, self.result.details
        names = (name for e in details.evaluators for name in (e.name, e.type))
        texts = (result.id, result.description, details.response, *details.failures)
        return FilterRow(
            id=result.id,
            suites=suite_names(self.suite.name, self.suite.file),
            evaluators=tuple(dict.fromkeys(names)),
            text=folded("\n".join(texts)),
            outcome=result.outcome,
            changed=self.changed,
            flaky=self.flaky,
            score=result.score,
            cost=details.cost_usd,
            latency=result.duration_ms,
        )


def find(run: RunResult, store: Store, text: str = "") -> Iterator[RunCase]:
    """The cases of a run that match a filter, in order."""
    chosen: CaseFilter = parse_filter(text)
    changes = changes_of(run.comparison)
    for trials in by_case(store.trials(run.id)):
        position = trials[0].position
        suite = run.record.suites[place_of(position)[0]]
        result = decode_case(entry_of(trials))
        changed = changes.get(CaseRef(suite.file, result.id))
        case = RunCase(position, suite, result, tuple(trials), changed)
        if chosen.matches(case.row()):
            yield case


def changes_of(comparison: Comparison | None) -> dict[CaseRef, Change]:
    """What became of each case compared with the baseline; nothing for those that still pass."""
    if comparison is None:
        return {}
    found: dict[CaseRef, Change] = dict.fromkeys(comparison.still_failing, "still-failing")
    found |= dict.fromkeys(comparison.new_passes, "fixed")
    found |= dict.fromkeys(comparison.added, "added")
    found |= dict.fromkeys(comparison.not_comparable, "not-comparable")
    found |= dict.fromkeys(comparison.unjudged, "not-judged")
    found |= dict.fromkeys((loss.ref for loss in comparison.losses), "regressed")
    found |= dict.fromkeys((case.ref for case in comparison.accepted), "regressed")
    return found
