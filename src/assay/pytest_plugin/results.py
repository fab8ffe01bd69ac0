"""What an item waits for: the result of its case, or the verdict about the whole run."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from assay.model.checks import diffs_of
from assay.model.comparison import CaseRef, Comparison
from assay.model.options import RunOptions
from assay.model.result import Outcome, decode_case
from assay.model.run import only
from assay.model.run_result import RunResult
from assay.model.trials import entry_of
from assay.ports import Store
from assay.reporters.excerpts import reasons_of
from assay.reporters.terminal import safe
from assay.reporters.words import FAILED_BEFORE, headline, standings, verdict

#: Why a lost case does not fail its own test.
SEE_GATE = "see assay::gate"

Value = str | float


class CaseReport(msgspec.Struct, frozen=True):
    """The result of a case. One that was not asked, as the run was stopped, is `unasked`.

    A failure that is `expected`, for this reason, does not fail its test. `properties` are for
    the JUnit report. `diffs` has the lines of each trajectory diff, and the name of its evaluator.
    """

    outcome: Outcome | Literal["unasked"]
    reasons: tuple[str, ...] = ()
    expected: str = ""
    standing: str = ""
    diffs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    properties: tuple[tuple[str, Value], ...] = ()

    @property
    def text(self) -> str:
        """Why it did not pass; the first line says most."""
        first, *more = map(safe, self.reasons or ("no reason was given",))
        standing = [safe(self.standing)] if self.standing else []
        return "\n".join((first, *more, *standing))

    @property
    def lines_of_diffs(self) -> list[tuple[str, str]]:
        """The name of each evaluator with a trajectory diff, and its lines as one text."""
        return [(safe(name), "\n".join(map(safe, lines))) for name, lines in self.diffs]


class GateReport(msgspec.Struct, frozen=True):
    """The verdict about a run, as `assay run` gives it."""

    passed: bool
    verdict: str
    headline: str
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join((f"{self.verdict}: {safe(self.headline)}", *map(safe, self.reasons)))


class Results(Protocol):
    """Where items get their results: the run of this process, or that of the xdist controller."""

    def case(self, ref: CaseRef) -> CaseReport:
        """The result of a case, once it is there."""
        ...

    def gate(self) -> GateReport:
        """The verdict, once the run has ended."""
        ...


def has_gate(options: RunOptions) -> bool:
    """Is there a verdict about the whole run, which its cases alone do not give?"""
    whole = (options.baseline, options.min_pass_rate)
    return whole != (None, None) or options.strict or options.require_calibrated


def report_of_case(store: Store, run_id: str, position: int) -> CaseReport:
    """The result of a case that was asked, as the store has it."""
    case = decode_case(entry_of(list(store.trials(run_id, positions=only(position)))))
    properties: list[tuple[str, Value]] = [("assay_run", run_id)]
    if case.score is not None:
        properties.append(("assay_score", round(case.score, 6)))
    if case.details.pass_rate is not None:
        properties.append(("assay_pass_rate", case.details.pass_rate))
    if case.outcome == "passed":
        return CaseReport("passed", properties=tuple(properties))
    evaluators = case.details.evaluators
    diffs = tuple(diff for e in evaluators for diff in diffs_of(e.name, e.type, e.details))
    return CaseReport(case.outcome, reasons_of(case), diffs=diffs, properties=tuple(properties))


def judged(
    report: CaseReport, ref: CaseRef, comparison: Comparison | None, options: RunOptions
) -> CaseReport:
    """The result of a failed case, with what the run as a whole says about it.

    With a baseline, the gate decides about failures of cases that can be compared, and with a
    required pass rate about all others too.
    """
    if report.outcome != "failed":
        return report
    known = comparison is not None and _has(comparison, ref)
    expected = SEE_GATE if known or options.min_pass_rate is not None else ""
    if comparison is not None and ref in comparison.still_failing:
        expected = FAILED_BEFORE
    standing = standings(comparison).get(ref, "")
    return msgspec.structs.replace(report, standing=standing, expected=expected)


def _has(comparison: Comparison, ref: CaseRef) -> bool:
    """Does the baseline have the case, as it is now?"""
    return ref not in comparison.added and ref not in comparison.not_comparable


def report_of_gate(run: RunResult) -> GateReport:
    """The verdict about a run, with its reasons."""
    undecided = run.comparison.undecided if run.comparison is not None else ()
    reasons = run.reasons or undecided
    return GateReport(run.exit_code == 0, verdict(run), headline(run), reasons)
