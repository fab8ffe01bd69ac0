"""Comparison: two runs paired by case, and the decision."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from assay.model.result import Outcome
from assay.record import Record

Decision = Literal["improved", "unchanged", "regressed", "inconclusive", "not_comparable"]


class CaseRef(NamedTuple):
    """A case of a run: its eval file, relative to the project root, and its id."""

    suite: str
    id: str

    def __str__(self) -> str:
        return f"{self.suite}: {self.id}" if self.suite else self.id


class CaseOutcome(NamedTuple):
    """The outcome of a case in one run over all repeats: what comparing needs.

    `passes` of `judged` trials passed. `comparability` is empty when unknown, as in files of other
    tools; then the case counts as unchanged. A case is `excused` when it failed but passed when it
    was asked again for confirmation.
    """

    ref: CaseRef
    outcome: Outcome
    passes: int
    judged: int
    score: float | None
    comparability: str = ""
    critical: bool = False
    cluster: str | None = None
    excused: bool = False


def comparable(before: str, now: str) -> bool:
    """Do these comparability keys match? An unknown one matches any."""
    return before == now or not before or not now


class Comparison(Record, frozen=True):
    """Two runs, case by case. The lists name cases of the candidate, `removed` those of the base.

    `critical_regressions` are the regressions that the gate checks separately; `flaky` are cases
    that both passed and failed in one of the runs. `difference` is that of the pass rates, `test`
    its significance test, and `scores` the same for graded scores, which do not affect the
    decision. `gate_failures` are the reasons why the gate fails; it passes when there are none.
    """

    base: str
    candidate: str
    decision: Decision
    pairs: int
    regressions: tuple[CaseRef, ...] = ()
    new_passes: tuple[CaseRef, ...] = ()
    added: tuple[CaseRef, ...] = ()
    removed: tuple[CaseRef, ...] = ()
    not_comparable: tuple[CaseRef, ...] = ()
    unjudged: tuple[CaseRef, ...] = ()
    flaky: tuple[CaseRef, ...] = ()
    critical_regressions: tuple[CaseRef, ...] = ()
    difference: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    scores: tuple[dict[str, Any], ...] = ()
    gate: str = "regression"
    gate_failures: tuple[str, ...] = ()
    explanation: str = ""
    notes: tuple[str, ...] = ()
    exit_code: int = 0

    @property
    def lists(self) -> dict[str, tuple[CaseRef, ...]]:
        """The lists of cases by their names in JSON."""
        return {
            "regressions": self.regressions,
            "newPasses": self.new_passes,
            "added": self.added,
            "removed": self.removed,
            "notComparable": self.not_comparable,
            "unjudged": self.unjudged,
            "flaky": self.flaky,
            "criticalRegressions": self.critical_regressions,
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON that `assay compare --json` prints."""
        return {
            "base": self.base,
            "candidate": self.candidate,
            "decision": self.decision,
            "pairs": self.pairs,
            "difference": self.difference,
            "test": self.test,
            "scores": list(self.scores),
            **{name: [ref.id for ref in refs] for name, refs in self.lists.items()},
            "suites": self._by_suite(),
            "gate": self.gate,
            "gateFailures": list(self.gate_failures),
            "explanation": self.explanation,
            "notes": list(self.notes),
            "exitCode": self.exit_code,
        }

    def _by_suite(self) -> dict[str, dict[str, list[str]]]:
        """The lists by suite, as two suites may have a case with the same id."""
        suites: dict[str, dict[str, list[str]]] = {}
        for name, refs in self.lists.items():
            for ref in refs:
                suites.setdefault(ref.suite, {}).setdefault(name, []).append(ref.id)
        return suites
