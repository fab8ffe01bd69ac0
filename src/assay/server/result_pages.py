"""Pages of the results of a run, filtered by outcome, text or position; and its progress."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Annotated

import msgspec
from pydantic import AfterValidator, Field

from assay.model.result import Outcome, decode_case
from assay.model.run import RunRecord, TrialFacts, TrialRecord
from assay.model.trials import by_case, entry_of, outcome_of, repeats_of
from assay.ports import Store
from assay.server.feed import Progress
from assay.server.schemas import OMITTED, Page, Storable, Whole

#: Larger than any position.
_END = 2**62


class ResultQuery(Page):
    """Which results to return. `q` is casefolded; `after` is a position, -1 for all."""

    outcome: Annotated[Outcome, Field(description="Only results with this outcome.")] = OMITTED
    q: Annotated[
        Storable,
        AfterValidator(str.casefold),
        Field(description="Only results with this text: id, answer or reason."),
    ] = ""
    after: Annotated[
        int,
        Field(
            ge=0,
            description="Only results after this position: `next` of a page, which is faster than"
            " `skip`.",
        ),
        Whole,
    ] = Field(default_factory=lambda: -1)

    def page(self, store: Store, record: RunRecord) -> bytes:
        """The JSON of a page, with the number of all results that match."""
        select = self._scan_results if self.q else self._scan_facts
        cases, total = select(store, record)
        last = cases[-1][0].position if len(cases) == self.limit else None
        entries = b",".join(map(_entry, cases))
        tail = {"count": len(cases), "total": total, "next": last}
        return b'{"results":[' + entries + b"]," + msgspec.json.encode(tail)[1:]

    def _scan_results(self, store: Store, record: RunRecord) -> tuple[list[list[TrialRecord]], int]:
        """The trials of each case on the page, and the total, by reading all trials once."""
        page, matched, total = [], 0, 0
        for trials in by_case(store.trials(record.id)):
            if not self._has_outcome(trials) or not self._has_text(entry_of(trials)):
                continue
            total += 1
            if trials[0].position > self.after:
                matched += 1
                if self.skip < matched <= self.skip + self.limit:
                    page.append(trials)
        return page, total

    def _scan_facts(self, store: Store, record: RunRecord) -> tuple[list[list[TrialRecord]], int]:
        """The same without a text to find: only the trials on the page are read in full."""
        total = self._total(store, record)
        if self.skip >= total:
            return [], total
        remaining = store.facts(record.id, range(min(self.after + 1, _END), _END))
        matching = (facts[0].position for facts in by_case(remaining) if self._has_outcome(facts))
        wanted = list(islice(matching, self.skip, self.skip + self.limit))
        page = [
            trials
            for positions in _ranges(wanted)
            for trials in by_case(store.trials(record.id, positions=positions))
        ]
        return page, total

    def _total(self, store: Store, record: RunRecord) -> int:
        summary = record.summary
        if record.status == "finished" and summary is not None:
            return int(summary[self.outcome or "totalCases"])
        return sum(map(self._has_outcome, by_case(store.facts(record.id))))

    def _has_outcome(self, trials: list[TrialRecord] | list[TrialFacts]) -> bool:
        return self.outcome is None or self.outcome == outcome_of(repeats_of(trials))

    def _has_text(self, entry: bytes) -> bool:
        return not _lacks(entry, self.q) and self.q in _searchable(entry).casefold()


def _lacks(entry: bytes, text: str) -> bool:
    """Do the raw bytes show that the text is not there? That spares most results the decoding.

    They cannot if there are escapes, or characters beyond ASCII, which may casefold to ASCII, or
    if the text has a line break and so may span two of the joined fields.
    """
    if not entry.isascii() or b"\\u" in entry or b"\\/" in entry or "\n" in text:
        return False
    return msgspec.json.encode(text)[1:-1] not in entry.lower()


def _ranges(positions: Iterable[int]) -> list[range]:
    """Ascending positions as ranges, so that neighbours are read by one query."""
    found: list[range] = []
    for at in positions:
        if found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(range(at, at + 1))
    return found


def _entry(trials: list[TrialRecord]) -> bytes:
    """A case as in a result file, with its suite and position."""
    first = trials[0]
    head = msgspec.json.encode({"suite": first.suite, "position": first.position})
    return head[:-1] + b"," + entry_of(trials)[1:]


def _searchable(entry: bytes) -> str:
    """The text of a result that is searched."""
    case = decode_case(entry)
    texts = (case.id, case.description, case.error or "", case.details.response)
    return "\n".join((*texts, *case.failures))


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
