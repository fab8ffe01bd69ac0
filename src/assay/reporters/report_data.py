"""What an HTML report has of the cases of a run, collected in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from assay.model.case_content import decode_content
from assay.model.case_filter import Change, suite_names
from assay.model.case_rows import CaseRow
from assay.model.case_view import CaseView, view_of
from assay.model.comparison import CaseRef, Comparison
from assay.model.json_encoding import as_json
from assay.model.result import decode_case, decode_trial
from assay.model.run import TrialRecord, place_of
from assay.model.run_result import RunResult
from assay.model.trial_rows import row_of
from assay.redaction import cut
from assay.reporters.case_details import CaseDetails, brief, details_of, with_diff
from assay.reporters.data_blocks import ChunkSpool
from assay.reporters.excerpts import reasons_of
from assay.reporters.failure_groups import FailureGroups
from assay.reporters.report_rows import NO_DETAILS, ReportRows
from assay.reporters.words import standings

#: How many failures are shown without a script.
MAX_PLAIN = 200
#: The most characters of the reason in a row.
MAX_WHY = 160


class PlainCase(msgspec.Struct, frozen=True):
    """A failure that is shown without a script."""

    row: CaseRow
    why: str
    details: CaseDetails

    @property
    def standing(self) -> str:
        """Its outcome in one word."""
        return "regressed" if self.row.changed == "regressed" else self.row.outcome


class ReportData:
    """The rows of all cases, details of as many as may fit, groups of failures, the first failures.

    `main` has the details of cases that did not just pass: failed, errored, flaky or changed;
    `rest` those of the others, as far as they may fit into `limit` characters.
    """

    def __init__(self, run: RunResult, limit: int, stack: ExitStack) -> None:
        self.rows, self.groups = ReportRows(stack), FailureGroups()
        self.main, self.rest = (ChunkSpool(name, limit, stack) for name in ("main", "rest"))
        #: How many cases have details in `main`, and in `rest`, if there is room.
        self.main_cases = self.rest_cases = 0
        self._regressed: list[PlainCase] = []
        self._failed: list[PlainCase] = []
        self._run = run
        self._changes, self._standings = changes_of(run.comparison), standings(run.comparison)
        self._collect()
        self.main.close()
        self.rest.close()

    @property
    def plain(self) -> list[PlainCase]:
        """The failures that are shown without a script: regressions first."""
        return [*self._regressed, *self._failed][:MAX_PLAIN]

    def _collect(self) -> None:
        """Add all cases. Positions count all cases of the run's suites, whether it asked them."""
        headers, start = self._run.record.suites, 0
        for index, suite in enumerate(self._run.suites):
            names, end = suite_names(suite.name, suite.file), start
            for entry, trials in suite.records() if suite.records is not None else ():
                end = start + place_of(trials[0].position)[1]
                self._add(entry, trials, names, end)
                end += 1
            known = headers[index].cases if index < len(headers) else None
            start = max(end, start + (known or 0))

    def _add(
        self, entry: bytes, trials: Sequence[TrialRecord], names: tuple[str, ...], position: int
    ) -> None:
        ref = CaseRef(trials[0].suite, trials[0].case_id)
        content = decode_content(trials[0].content)
        details = decode_trial(trials[0].result).details
        row, kind = row_of(trials, content, details, names, self._changes.get(ref))
        row = msgspec.structs.replace(row, position=position)
        why, group = "", 0
        case = decode_case(entry)
        if row.outcome != "passed":
            why = cut(reasons_of(case)[0], MAX_WHY, "both")
        if row.outcome in ("failed", "errored"):
            group = self.groups.add(reasons_of(case)[0])
        number, spool = NO_DETAILS, self._spool_of(row)
        if not spool.is_full:
            view = view_of(row, content, trials)
            number = self._add_details(view, case.description, why, spool)
        usage = case.details.usage
        tokens = None if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self.rows.add(row, kind, tokens=tokens, why=why, group=group, details=number)

    def _spool_of(self, row: CaseRow) -> ChunkSpool:
        """Where the details of a case belong; it is counted there."""
        if row.outcome in ("failed", "errored") or row.flaky or row.changed is not None:
            self.main_cases += 1
            return self.main
        self.rest_cases += 1
        return self.rest

    def _add_details(self, view: CaseView, description: str, why: str, spool: ChunkSpool) -> int:
        """Add the details of a case; returns their number for the row."""
        row, before = view.row, None
        ref = CaseRef(row.suite, row.id)
        if self._run.baseline is not None and row.changed not in (None, "added"):
            before = self._run.baseline.answer(ref)
        found = details_of(view, description, self._standings.get(ref, ""), before)
        self._keep_plain(row, why, found)
        return 2 * spool.add(as_json(with_diff(found))) + (spool is self.rest)

    def _keep_plain(self, row: CaseRow, why: str, found: CaseDetails) -> None:
        listed = self._regressed if row.changed == "regressed" else self._failed
        if row.outcome in ("failed", "errored") and len(listed) < MAX_PLAIN:
            listed.append(PlainCase(row, why, with_diff(brief(found))))


def changes_of(comparison: Comparison | None) -> dict[CaseRef, Change]:
    """What became of the cases, except for those that passed in both runs."""
    if comparison is None:
        return {}
    lists: dict[Change, tuple[CaseRef, ...]] = {
        "added": comparison.added,
        "not-comparable": comparison.not_comparable,
        "not-judged": comparison.unjudged,
        "still-failing": comparison.still_failing,
        "fixed": comparison.new_passes,
        "regressed": comparison.regressions,
    }
    return {ref: change for change, refs in lists.items() for ref in refs}
