"""The results of a run, page by page: by outcome, by words, or from a place on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, get_args

import msgspec

from assay.folding import by_case, entry_of, outcome_of, repeats_of
from assay.model.result import Outcome
from assay.model.run import RunRecord, TrialFacts, TrialRecord
from assay.model.suite_result import CaseResult
from assay.ports import Store
from assay.server.feed import Progress

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
#: Beyond every position.
_END = 2**62
_CASE = msgspec.json.Decoder(CaseResult)


class Search(msgspec.Struct, frozen=True):
    """Which results are wanted. `words` are in lower case; `after` is a position, -1 for all."""

    outcome: str | None = None
    words: str = ""
    after: int = -1
    skip: int = 0
    limit: int = 100

    def page(self, store: Store, record: RunRecord) -> bytes:
        """The JSON of a page, with the number of all results that match."""
        positions = range(min(self.after + 1, _END), _END)
        cases = by_case(store.trials(record.id, positions=positions))
        matching = (trials for trials in cases if self._matches(trials))
        shown = list(islice(matching, self.skip, self.skip + self.limit))
        more = len(shown) == self.limit
        counted = self._known_total(store, record)
        if counted is None:
            everything = by_case(store.trials(record.id))
            counted = sum(1 for trials in everything if self._matches(trials))
        last = shown[-1][0].position if more else None
        entries = b",".join(map(_entry, shown))
        tail = {"count": len(shown), "total": counted, "next": last}
        return b'{"results":[' + entries + b"]," + msgspec.json.encode(tail)[1:]

    def _known_total(self, store: Store, record: RunRecord) -> int | None:
        """The number of matches without reading results; None when words are searched."""
        if self.words:
            return None
        summary = record.summary
        if record.status == "finished" and summary is not None:
            return int(summary[self.outcome or "totalCases"])
        cases = by_case(store.facts(record.id))
        return sum(1 for trials in cases if self.outcome in (None, _outcome(trials)))

    def _matches(self, trials: list[TrialRecord]) -> bool:
        if self.outcome is not None and _outcome(trials) != self.outcome:
            return False
        return not self.words or self.words in _text(entry_of(trials)).casefold()


def _outcome(trials: list[TrialRecord] | list[TrialFacts]) -> Outcome:
    return outcome_of(repeats_of(trials))


def _entry(trials: list[TrialRecord]) -> bytes:
    """The result as its file has it, and where it stands."""
    first = trials[0]
    head = msgspec.json.encode({"suite": first.suite, "position": first.position})
    return head[:-1] + b"," + entry_of(trials)[1:]


def _text(entry: bytes) -> str:
    """What people look for in a result."""
    case = _CASE.decode(entry)
    response = case.details.get("response") or ""
    return "\n".join((case.id, case.description, case.error or "", str(response), *case.failures))


def progress_of(store: Store, record: RunRecord) -> dict[str, Any]:
    """How far a run is, by what the store has of it."""
    selected = [header.selected for header in record.suites]
    repeats = record.options.get("repeat") or 1
    planned = None if None in selected else sum(filter(None, selected)) * repeats
    progress = _counted(Progress(record.id, planned), store.facts(record.id))
    found: dict[str, Any] = msgspec.to_builtins(progress)
    return found


def progress_before(store: Store, run_id: str) -> Progress:
    """What a resumed run need not ask any more."""
    return _counted(Progress(run_id), (trial for trial in store.facts(run_id) if trial.final))


def _counted(progress: Progress, trials: Iterable[TrialFacts]) -> Progress:
    for trial in trials:
        if not trial.confirms:
            progress.add(trial.outcome, trial.cost_usd)
    return progress
