"""Makes the rows of a run: one for each case, in the order of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from assay.model.case_content import CaseContent, decode_content
from assay.model.case_filter import Change, folded, suite_names
from assay.model.case_rows import CaseKind, CaseRow, IndexedCase
from assay.model.result import JUDGED, TrialDetails, TrialResult, decode_trial
from assay.model.run import RunRecord, TrialRecord, place_of
from assay.model.trials import by_case, mean_score, outcome_of, repeats_of


class _Answer(msgspec.Struct):
    response: Any = ""


_answer = msgspec.json.Decoder(_Answer).decode


def rows_of(
    record: RunRecord, trials: Iterable[TrialRecord], changes: Iterable[Change | None] | None
) -> Iterator[IndexedCase]:
    """The rows of the cases; `changes` has one for each case, if the run has a baseline."""
    names = [suite_names(header.name, header.file) for header in record.suites]
    kinds: dict[CaseKind, CaseKind] = {}
    steps = None if changes is None else iter(changes)
    for group in by_case(trials):
        suite = place_of(group[0].position)[0]
        changed = None if steps is None else next(steps, None)
        content, results = decode_content(group[0].content), [decode_trial(t.result) for t in group]
        known = names[suite] if suite < len(names) else ()
        row, kind = row_of(group, content, results[0].details, known, changed)
        text = folded("\n".join(_texts(group, content, results)))
        yield IndexedCase(row, kinds.setdefault(kind, kind), text)


def row_of(
    trials: Sequence[TrialRecord],
    content: CaseContent,
    details: TrialDetails,
    suites: tuple[str, ...],
    changed: Change | None,
) -> tuple[CaseRow, CaseKind]:
    """The row of a case; `details` are those of its first trial, `suites` names of its suite."""
    first, repeats = trials[0], repeats_of(trials)
    kind = _kind(first.suite, suites, content, details)
    judged = [trial.outcome for trial in repeats if trial.outcome in JUDGED]
    passes = judged.count("passed")
    costs = [trial.cost_usd for trial in repeats if trial.cost_usd is not None]
    row = CaseRow(
        first.position,
        first.suite,
        first.case_id,
        kind.tags,
        kind.evaluators,
        outcome_of(repeats),
        passes,
        len(judged),
        mean_score(repeats),
        sum(costs) if costs else None,
        sum(trial.duration_ms for trial in repeats) / len(repeats),
        0 < passes < len(judged),
        changed,
    )
    return row, kind


def _kind(
    suite: str, suites: tuple[str, ...], content: CaseContent, details: TrialDetails
) -> CaseKind:
    known = [(str(spec.get("name", "")), str(spec.get("type", ""))) for spec in content.evaluators]
    pairs = known or [(entry.name, entry.type) for entry in details.evaluators]
    names = tuple(name or kind for name, kind in pairs)
    types = tuple(dict.fromkeys(kind for _, kind in pairs))
    return CaseKind(suite, suites, tuple(content.tags), names, types)


def _texts(
    trials: Sequence[TrialRecord], content: CaseContent, results: Iterable[TrialResult]
) -> Iterator[str]:
    """What is searched: id, description, question, answers, and the reasons of their results."""
    yield trials[0].case_id
    for trial, result in zip(trials, results, strict=True):
        if trial is trials[0]:
            yield result.description
            yield content.question
        response = _answer(trial.observation).response
        yield response if isinstance(response, str) else msgspec.json.encode(response).decode()
        yield from result.details.failures
        yield from (entry.reasoning for entry in result.details.evaluators if entry.reasoning)
