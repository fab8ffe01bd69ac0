"""Pages of the cases of a run, filtered and sorted, and their results; and its progress."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace
from pydantic import Field

from assay.model.case_filter import MAX_LENGTH, CaseFilter, Term, folded, parse_filter
from assay.model.case_rows import CasePage, parse_sort
from assay.model.result import Outcome
from assay.model.run import RunRecord, TrialFacts, TrialRecord
from assay.model.trials import entry_of
from assay.ports import Store
from assay.server.feed import Progress
from assay.server.schemas import OMITTED, Page, Storable
from assay.service.cases import case_page, trials_at

RunRequest = Literal[
    "position", "id", "suite", "outcome", "score", "cost", "latency", "flaky", "changed",
    "-position", "-id", "-suite", "-outcome", "-score", "-cost", "-latency", "-flaky", "-changed",
]  # fmt: skip


class CaseListQuery(Page):
    """Which cases of a run to return, and in which order."""

    filter: Annotated[
        Storable,
        Field(
            max_length=MAX_LENGTH,
            description="Only cases that match a filter.",
            examples=["outcome:failed tag:billing score<0.6"],
        ),
    ] = ""
    sort: Annotated[
        RunRequest, Field(description="What to sort by; with `-`, the greatest value comes first.")
    ] = "position"
    after: Annotated[
        Storable,
        Field(
            description="Only cases after those of a page: its `next`, which is faster than `skip`."
        ),
    ] = OMITTED

    def page(self, store: Store, record: RunRecord) -> CasePage:
        """The page; raises UsageError for a wrong filter or cursor."""
        return case_page(
            store,
            record,
            self.where(),
            sort=parse_sort(self.sort),
            limit=self.limit,
            skip=self.skip,
            after=self.after,
        )

    def where(self) -> CaseFilter:
        return parse_filter(self.filter)


class ResultQuery(CaseListQuery):
    """Which results to return."""

    outcome: Annotated[Outcome, Field(description="Only results with this outcome.")] = OMITTED
    q: Annotated[
        Storable, Field(description="Only results with this text: id, question, answer or reason.")
    ] = ""

    def where(self) -> CaseFilter:
        found = super().where()
        terms = [Term("outcome", values=(self.outcome,))] if self.outcome else []
        terms += [Term("text", values=(folded(self.q),))] if self.q else []
        return replace(found, terms=(*found.terms, *terms))

    def results(self, store: Store, record: RunRecord) -> bytes:
        """The JSON of a page with the results of its cases."""
        page = self.page(store, record)
        found = trials_at(store, record, [row.position for row in page.rows])
        entries = b",".join(_entry(row.position, found[row.position]) for row in page.rows)
        tail = {"count": len(page.rows), "total": page.total, "next": page.next}
        facets = msgspec.json.encode(page.facets)
        rest = msgspec.json.encode(tail)[1:]
        return b'{"results":[%b],"facets":%b,%b' % (entries, facets, rest)


def _entry(position: int, trials: list[TrialRecord]) -> bytes:
    """A case as in a result file, with its suite and position."""
    head = msgspec.json.encode({"suite": trials[0].suite, "position": position})
    return head[:-1] + b"," + entry_of(trials)[1:]


def progress_of(store: Store, record: RunRecord) -> Progress:
    """How far a run is, counted from the store."""
    selected = [header.selected for header in record.suites]
    repeats = record.options.get("repeat") or 1
    planned = None if None in selected else sum(filter(None, selected)) * repeats
    return _count(Progress.begin(record.id, planned), store.facts(record.id))


def progress_before(store: Store, run_id: str) -> Progress:
    """The final trials of a run that is resumed: they are not repeated."""
    return _count(Progress.begin(run_id), (trial for trial in store.facts(run_id) if trial.final))


def _count(progress: Progress, trials: Iterable[TrialFacts]) -> Progress:
    for trial in trials:
        if not trial.confirms:
            progress.add(trial.outcome, trial.cost_usd)
    return progress
