"""Comparison: two runs paired by case, the decision, and the verdict of the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from assay.model.json_encoding import as_dict
from assay.model.options import Gate
from assay.model.result import Count, Outcome
from assay.record import Record
from assay.stats.estimates import INFINITE_IS_NULL, Estimate, PValue

Decision = Literal["improved", "unchanged", "regressed", "inconclusive", "not_comparable"]
#: The decision of the gate about a run.
GateVerdict = Literal["passed", "failed", "inconclusive"]
#: What asking again has shown about a loss.
LossStatus = Literal["repeated", "unconfirmed", "excused"]


class CaseRef(NamedTuple):
    """A case of a run: its eval file, relative to the project root, and its id."""

    suite: str
    id: str

    def __str__(self) -> str:
        return f"{self.suite}: {self.id}" if self.suite else self.id


class Reasks(msgspec.Struct, frozen=True):
    """The outcomes of asking a lost case again. A re-ask that was not made counts as errored."""

    passed: Count = 0
    failed: Count = 0
    errored: Count = 0

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Reasks:
        found = list(outcomes)
        return cls(found.count("passed"), found.count("failed"), found.count("errored"))

    def __bool__(self) -> bool:
        return bool(self.passed or self.failed or self.errored)

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    def settle(self, times: int, *, critical: bool) -> bool:
        """Is it known, before all `times` are made, whether the loss is excused?"""
        if critical:
            return 2 * self.passed > times or 2 * self.failed >= times
        return self.passed > 0

    def excuse(self, *, critical: bool) -> bool:
        """Do they excuse the loss? One pass is enough; a critical case needs more than half."""
        return self.passed > self.failed + self.errored if critical else self.passed > 0

    def repeat(self, *, critical: bool) -> bool:
        """Did the loss repeat, no matter what the errored ones would have shown?"""
        if critical:
            return self.failed > 0 and self.failed >= self.passed + self.errored
        return self.failed > 0 and not self.passed and not self.errored


class CaseOutcome(NamedTuple):
    """The outcome of a case in one run over all repeats: what comparing needs.

    `passes` of `judged` trials passed, without the re-asks. `comparability` is empty when unknown,
    as in files of other tools; then the case counts as unchanged.
    """

    ref: CaseRef
    outcome: Outcome
    passes: int
    judged: int
    score: float | None
    comparability: str = ""
    critical: bool = False
    cluster: str | None = None
    reasks: Reasks = Reasks()

    @property
    def loss_status(self) -> LossStatus:
        """What a failed case is if it passed before."""
        # A critical case must be reliable: a minority of passing repeats does not excuse it.
        needed = self.judged / 2 if self.critical else 0
        if needed < self.passes < self.judged or self.reasks.excuse(critical=self.critical):
            return "excused"
        return "repeated" if self.reasks.repeat(critical=self.critical) else "unconfirmed"


def comparable(before: str, now: str) -> bool:
    """Do these comparability keys match? An unknown one matches any."""
    return before == now or not before or not now


class _OfCase(msgspec.Struct, frozen=True):
    suite: str
    id: str

    @property
    def ref(self) -> CaseRef:
        return CaseRef(self.suite, self.id)


class Loss(_OfCase, frozen=True):
    """A case that passed in the base and fails now, and why it counts or not."""

    status: LossStatus
    critical: bool
    reasks: Reasks
    reason: str


class AcceptedCase(_OfCase, frozen=True, omit_defaults=True):
    """A failing case that the configuration accepts."""

    reason: str
    until: str = ""


class SignificanceTest(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the pass rates differ, by the cases `discordant`: lost ones and gained ones.

    `e_value` is set for a run with `stop_when: decided`.
    """

    name: str
    p_value: float
    discordant: tuple[Count, Count]
    e_value: Annotated[float, INFINITE_IS_NULL] | UnsetType = UNSET


class WorseTest(msgspec.Struct, frozen=True, rename="camel"):
    """Whether there are more losses than chance explains."""

    name: str
    p_value: float
    significant: bool


class ScoreTest(PValue, frozen=True):
    """A p-value, also `adjusted` for the number of tests."""

    adjusted: float


class ScoreDifference(msgspec.Struct, frozen=True):
    """The difference of the mean scores of a suite."""

    suite: str
    pairs: Count
    difference: Estimate
    test: ScoreTest


class Comparison(Record, frozen=True, rename="camel"):
    """Two runs, case by case. The lists name cases of the candidate, `removed` those of the base.

    `regressions` are all comparable cases that passed before and fail now. `losses` are the same
    without those that are `accepted`; the gate decides by them. `still_failing` failed before too,
    and `flaky` both passed and failed in one of the runs. `difference` is that of the pass rates,
    `test` its significance test, `worse` the one-sided test of the gate, and `scores` the
    difference of graded scores, which does not affect the decision.

    `gate_failures` are the reasons why the gate fails, `undecided` those why it cannot decide.
    """

    base: str
    candidate: str
    decision: Decision
    pairs: Count
    verdict: GateVerdict
    difference: Estimate | None = None
    test: SignificanceTest | None = None
    worse: WorseTest | None = None
    scores: tuple[ScoreDifference, ...] = ()
    losses: tuple[Loss, ...] = ()
    accepted: tuple[AcceptedCase, ...] = ()
    regressions: tuple[CaseRef, ...] = ()
    new_passes: tuple[CaseRef, ...] = ()
    still_failing: tuple[CaseRef, ...] = ()
    added: tuple[CaseRef, ...] = ()
    removed: tuple[CaseRef, ...] = ()
    not_comparable: tuple[CaseRef, ...] = ()
    unjudged: tuple[CaseRef, ...] = ()
    flaky: tuple[CaseRef, ...] = ()
    gate: Gate = "regression"
    gate_failures: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    explanation: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0

    @property
    def is_worse(self) -> bool:
        """Is the one-sided test significant?"""
        return self.worse is not None and self.worse.significant

    @property
    def lists(self) -> dict[str, tuple[CaseRef, ...]]:
        """The lists of cases by their names in JSON."""
        return {name: getattr(self, field) for name, field in LISTS.items()}

    def to_dict(self) -> dict[str, Any]:
        """The JSON that `assay compare --json` prints."""
        listed = {name: [ref.id for ref in refs] for name, refs in self.lists.items()}
        return as_dict(self) | listed | {"suites": self._by_suite()}

    def _by_suite(self) -> dict[str, dict[str, list[str]]]:
        """The lists by suite, as two suites may have a case with the same id."""
        suites: dict[str, dict[str, list[str]]] = {}
        for name, refs in self.lists.items():
            for ref in refs:
                suites.setdefault(ref.suite, {}).setdefault(name, []).append(ref.id)
        return suites


#: The lists of cases of a Comparison: their names in JSON, and their fields.
LISTS = {
    field.encode_name: field.name
    for field in msgspec.structs.fields(Comparison)
    if field.type == tuple[CaseRef, ...]
}
