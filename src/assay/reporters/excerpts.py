"""Excerpts: of each case that did not pass, as much as a person wants to read.

A run may have a million cases, and an answer a million characters. Excerpts are small, and what
they leave out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from assay.model.case_content import CaseContent, decode_content
from assay.model.checks import criterion_of, diffs_of, failing_judges
from assay.model.comparison import CaseRef, Reasks
from assay.model.observed import ObservedCall, decode_observed
from assay.model.result import CaseResult, Outcome, decode_case
from assay.model.run import TrialRecord
from assay.model.run_result import RunResult
from assay.model.score import EvaluatorEntry
from assay.model.suite_result import EvalSuiteResult
from assay.model.trials import shown_trial
from assay.redaction import cut
from assay.reporters.words import standings
from assay.text import count

#: How many cases of each outcome are shown.
MAX_CASES = 100
#: The limits of a case: reasons, and characters of each.
MAX_REASONS, MAX_REASON = 20, 1000
#: How many notes on the answer of a case are shown.
MAX_NOTES = 5
#: How many different reasons for skipping are listed.
MAX_SKIPS = 20


class Excerpt(msgspec.Struct, frozen=True):
    """A case that did not pass; its texts are truncated, but not escaped.

    `standing` is how it compares with the baseline, and what asking again has shown. `notes` are
    those on its answer. `diffs` has the lines of each trajectory diff, with the name of its
    evaluator. The `answer` is there if it was asked for, or if a judge did not let the case pass;
    then `judged` has pairs of a label and a text: the criterion and the words of the judge.
    """

    suite: str
    suite_file: str
    file: str
    line: int
    id: str
    description: str
    outcome: Outcome
    standing: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    diffs: tuple[tuple[str, tuple[str, ...]], ...]
    answer: str | None = None
    calls: tuple[ObservedCall, ...] | None = None
    judged: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Excerpts(msgspec.Struct):
    """The first cases of each outcome other than passed."""

    failed: list[Excerpt] = []
    errored: list[Excerpt] = []
    #: How many cases were skipped for each reason.
    skipped: dict[str, int] = {}


class _Details(msgspec.Struct):
    outcome: Outcome


class _OutcomeOnly(msgspec.Struct):
    """As much of an entry as tells whether it needs to be decoded."""

    id: str
    details: _Details


_decode_outcome = msgspec.json.Decoder(_OutcomeOnly).decode


def gather(run: RunResult, limit: int = MAX_CASES, *, answers: bool = False) -> Excerpts:
    """Collect excerpts in one pass, which leaves a suite once nothing more is needed from it.

    Lost cases come in addition to the first failed ones, up to the same number. With `answers`
    every excerpt has its answer and its calls.
    """
    found, known = Excerpts(), standings(run.comparison)
    losses = run.comparison.losses if run.comparison is not None else ()
    lost = {loss.ref for loss in losses[:limit]}
    for suite in run.suites:
        for case, trial in _not_passed(suite, found, limit, lost):
            if case.outcome == "skipped":
                _count_skip(found.skipped, case)
            else:
                listed = found.failed if case.outcome == "failed" else found.errored
                shown = excerpt(suite, case, known)
                listed.append(_with_answer(shown, case, trial, always=answers))
    return found


def _not_passed(
    suite: EvalSuiteResult, found: Excerpts, limit: int, lost: Set[CaseRef]
) -> Iterator[tuple[CaseResult, TrialRecord | None]]:
    summary = suite.summary
    left = {"failed": summary.failed, "errored": summary.errored, "skipped": summary.skipped}
    listed: dict[str, list[Excerpt]] = {"failed": found.failed, "errored": found.errored}
    lost_ids = {ref.id for ref in lost if ref.suite == suite.file}

    def wanted(outcome: str) -> bool:
        return left.get(outcome, 0) > 0 and len(listed.get(outcome, ())) < limit

    for entry, trials in _records(suite) if lost_ids or any(map(wanted, left)) else ():
        head = _decode_outcome(entry)
        outcome = head.details.outcome
        if outcome == "passed" or not (wanted(outcome) or head.id in lost_ids):
            continue
        left[outcome] -= 1
        lost_ids.discard(head.id)
        yield decode_case(entry), shown_trial(trials) if trials else None
        if not lost_ids and not any(map(wanted, left)):
            return


def _records(suite: EvalSuiteResult) -> Iterator[tuple[bytes, list[TrialRecord]]]:
    if suite.records is None:
        return ((entry, []) for entry in suite.entries())
    return iter(suite.records())


def _with_answer(
    shown: Excerpt, case: CaseResult, trial: TrialRecord | None, *, always: bool
) -> Excerpt:
    """The excerpt with the answer and its calls, and what a judge said against the case."""
    judges = [judge for entry in case.details.evaluators for judge in failing_judges(entry)]
    if not (judges or always) or case.outcome != "failed":
        return shown
    seen = None if trial is None else decode_observed(trial.observation)
    calls = None if seen is None or not always else seen.tool_calls or ()
    content = decode_content(b"" if trial is None else trial.content)
    judged = tuple(pair for entry in judges for pair in _judged(entry, content, case.failures))
    return replace(shown, answer=case.details.response, calls=calls, judged=judged)


def _judged(
    entry: EvaluatorEntry, content: CaseContent, reasons: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The criterion and the words of a judge, unless they are among the reasons."""
    if criterion := criterion_of(entry, content):
        yield "criterion", criterion
    if entry.reasoning and not any(entry.reasoning in reason for reason in reasons):
        yield entry.name, entry.reasoning


def _count_skip(skipped: dict[str, int], case: CaseResult) -> None:
    reason = reasons_of(case)[0]
    if reason not in skipped and len(skipped) >= MAX_SKIPS:
        reason = "other reasons"
    skipped[reason] = skipped.get(reason, 0) + 1


def excerpt(
    suite: EvalSuiteResult, case: CaseResult, known: Mapping[CaseRef, str] = MappingProxyType({})
) -> Excerpt:
    """The excerpt of a case; `known` are the standings of the run's cases."""
    file, line = case.source
    standing = known.get(CaseRef(suite.file, case.id)) or _reasks(case)
    return Excerpt(
        suite.name,
        suite.file,
        file or suite.file,
        line,
        case.id,
        cut(case.description, MAX_REASON),
        case.outcome,
        cut(standing, MAX_REASON),
        reasons_of(case),
        tuple(cut(note, MAX_REASON, "both") for note in _notes(case)),
        tuple(
            diff for e in case.details.evaluators for diff in diffs_of(e.name, e.type, e.details)
        ),
    )


def reasons_of(case: CaseResult) -> tuple[str, ...]:
    """Why the case did not pass: at least one reason, and at most MAX_REASONS."""
    reasons = case.failures or [case.error or "no reason was given"]
    shown = [cut(reason, MAX_REASON, "both") for reason in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        shown.append(f"and {count(len(reasons) - MAX_REASONS, 'more reason')}")
    return tuple(shown)


def _notes(case: CaseResult) -> Sequence[str]:
    """What was noted when its answer was read, such as a misspelt key."""
    notes = case.details.notes
    if len(notes) <= MAX_NOTES:
        return notes
    return [*notes[:MAX_NOTES], f"and {count(len(notes) - MAX_NOTES, 'more note')}"]


def _reasks(case: CaseResult) -> str:
    """How often it passed when it was asked again, if the comparison is not known."""
    found = Reasks.of(t.outcome for t in case.trials if t.confirms)
    return f"{found.passed} of {count(found.judged, 're-ask')} passed" if found.judged else ""
