"""A group as one HTML file: the best set, the targets, and the answers where they differ.

It has no script: the list of all cases is in the report of each run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import repeat
from typing import TextIO

import msgspec

from assay.model.case_content import decode_content
from assay.model.case_filter import suite_names
from assay.model.case_view import view_of
from assay.model.comparison import CaseRef
from assay.model.group import DifferingCase, GroupComparison
from assay.model.group_result import GroupResult
from assay.model.json_encoding import as_json
from assay.model.preference import Preference
from assay.model.result import decode_case, decode_trial
from assay.model.run import TrialRecord
from assay.model.run_result import RunResult
from assay.model.trial_rows import row_of
from assay.reporters.case_details import CaseDetails, brief, details_of
from assay.reporters.excerpts import reasons_of
from assay.reporters.failure_groups import FailureGroup, FailureGroups
from assay.reporters.group_view import Addresses, CellView, RowView, group_view, row_view
from assay.reporters.group_words import outcome_of_group, run_words
from assay.reporters.preference_words import (
    agreement_of,
    first_errors,
    judge_of,
    ranks_of,
    result_of,
)
from assay.reporters.preference_words import (
    details_of as preference_details,
)
from assay.text import count
from assay.version import __version__
from assay.web.environment import draw
from assay.web.modules import style

#: The most differing cases that are listed, that have answers, and reasons of failures of a target.
MAX_LISTED, MAX_DETAILS, MAX_REASONS = 1000, 200, 5
#: The characters of a case in the file, for each of its details: escaping makes them longer.
_GROWTH = 1.5
_MEGABYTE = 1_000_000


class Answers(msgspec.Struct, frozen=True):
    """The answers of the targets to a case on which they differ."""

    row: RowView
    source: str
    question: list[tuple[str, str]]
    expected: list[tuple[str, str]]
    answers: list[tuple[CellView, CaseDetails]]


class PreferenceWords(msgspec.Struct, frozen=True):
    """A preference in words. Each pair has its targets, the result and what is behind it."""

    criteria: str
    judge: str
    pairs: list[tuple[str, str, str, list[str]]]
    ranking: list[tuple[str, str, str]]
    notes: list[str]


class _RunReader:
    """One pass over a run: the details of some cases, and why its cases did not pass."""

    def __init__(self, run: RunResult, wanted: frozenset[CaseRef]) -> None:
        self.details: dict[CaseRef, CaseDetails] = {}
        self.groups = FailureGroups()
        for suite in run.suites:
            names = suite_names(suite.name, suite.file)
            for entry, trials in suite.records() if suite.records is not None else ():
                self._add(entry, trials, names, wanted)

    def _add(
        self,
        entry: bytes,
        trials: Sequence[TrialRecord],
        names: tuple[str, ...],
        wanted: frozenset[CaseRef],
    ) -> None:
        ref = CaseRef(trials[0].suite, trials[0].case_id)
        case = decode_case(entry)
        if case.outcome in ("failed", "errored"):
            self.groups.add(reasons_of(case)[0])
        if ref in wanted:
            content = decode_content(trials[0].content)
            row, _ = row_of(trials, content, decode_trial(trials[0].result).details, names, None)
            view = view_of(row, content, trials)
            self.details[ref] = brief(details_of(view, case.description, "", None))


def write_group(group: GroupResult, out: TextIO, html_size: float) -> None:
    """The whole file; `html_size` is the limit in megabytes."""
    from markupsafe import Markup

    found = group.comparison
    listed = found.differing[:MAX_LISTED]
    wanted = frozenset(CaseRef(case.suite, case.id) for case in listed[:MAX_DETAILS])
    read = [_RunReader(run, wanted) for run in group.runs]
    shown = list(_within(_answers(listed[:MAX_DETAILS], found, read), html_size * _MEGABYTE))
    anchors = [f"#case-{n}" if n <= len(shown) else "" for n, _ in enumerate(listed, 1)]
    rows = [
        row_view(case, found, repeat(anchor)) for case, anchor in zip(listed, anchors, strict=True)
    ]
    values = {
        "view": group_view(found, list(map(run_words, group.runs)), len(listed), Addresses()),
        "group_id": group.id,
        "started": group.runs[0].record.started_at,
        "outcome": outcome_of_group(group.exit_code, len(group.runs)),
        "rows": rows,
        "failures": list(_failures(group, read)),
        "details": shown,
        "details_note": _note(len(shown), found.differing_count),
        "preference": None if group.preference is None else _preference(group.preference),
        "contents": f"The report of each run lists all its cases: assay report {group.runs[0].id}",
        "version": __version__,
        "style": Markup(style()),
        "policy": _policy(),
    }
    out.write(draw("group_report.html", values))


def _answers(
    cases: Sequence[DifferingCase], found: GroupComparison, read: Sequence[_RunReader]
) -> Iterator[Answers]:
    for case in cases:
        ref = CaseRef(case.suite, case.id)
        row = row_view(case, found, repeat(""))
        answers = [
            (cell, one.details[ref])
            for cell, one in zip(row.cells, read, strict=True)
            if ref in one.details
        ]
        first = answers[0][1] if answers else CaseDetails([])
        yield Answers(row, first.source, first.question, first.expected, answers)


def _within(cases: Iterator[Answers], limit: float) -> Iterator[Answers]:
    """The first cases that fit into as many characters."""
    for case in cases:
        limit -= _GROWTH * len(as_json(case))
        if limit < 0:
            return
        yield case


def _failures(
    group: GroupResult, read: Sequence[_RunReader]
) -> Iterator[tuple[str, str, list[FailureGroup], int]]:
    """Why the cases of each target did not pass: the most frequent reasons."""
    for run, one in zip(group.runs, read, strict=True):
        groups, summary = one.groups.largest(), run.summary
        total = f"{summary.failed + summary.errored:,} of {count(summary.total_cases, 'case')}"
        yield run.target, total, groups[:MAX_REASONS], max(len(groups) - MAX_REASONS, 0)


def _preference(found: Preference) -> PreferenceWords:
    """Whose answers a judge prefers, in the words of the other reports."""
    notes = [*first_errors(found), *found.notes]
    if found.unasked:
        unasked = count(found.unasked, "pair of answers", "pairs of answers")
        notes.insert(0, f"{unasked} not judged")
    if found.labels is not None:
        notes.insert(0, agreement_of(found.labels))
    return PreferenceWords(
        found.criteria,
        judge_of(found),
        [(pair.b, pair.a, result_of(pair), list(preference_details(pair))) for pair in found.pairs],
        ranks_of(found),
        notes,
    )


def _note(shown: int, total: int) -> str:
    first = "" if shown == total else f"the first {shown:,} of "
    return f"{first}{count(total, 'case')} on which they differ"


@cache
def _policy() -> str:
    digest = b64encode(sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
