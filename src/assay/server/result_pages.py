"""The results of a run, page by page: by outcome, by words, or from a place on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, get_args

import msgspec

from assay.model.result import Outcome
from assay.model.run import RunRecord, TrialFacts, TrialRecord
from assay.model.suite_result import CaseResult
from assay.ports import Store
from assay.results.trials import by_case, entry_of, outcome_of, repeats_of
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
        shown, total = self._searched(store, record) if self.words else self._found(store, record)
        last = shown[-1][0].position if len(shown) == self.limit else None
        entries = b",".join(map(_entry, shown))
        tail = {"count": len(shown), "total": total, "next": last}
        return b'{"results":[' + entries + b"]," + msgspec.json.encode(tail)[1:]

    def _searched(self, store: Store, record: RunRecord) -> tuple[list[list[TrialRecord]], int]:
        """The results of a page and their total, by one walk over all that was said."""
        shown, passed, total = [], 0, 0
        for trials in by_case(store.trials(record.id)):
            if not self._has_outcome(trials) or not self._has_words(entry_of(trials)):
                continue
            total += 1
            if trials[0].position > self.after:
                passed += 1
                if self.skip < passed <= self.skip + self.limit:
                    shown.append(trials)
        return shown, total

    def _found(self, store: Store, record: RunRecord) -> tuple[list[list[TrialRecord]], int]:
        """The same without words: what was said is read of the page alone."""
        total = self._total(store, record)
        if self.skip >= total:
            return [], total
        behind = store.facts(record.id, range(min(self.after + 1, _END), _END))
        fitting = (facts[0].position for facts in by_case(behind) if self._has_outcome(facts))
        wanted = list(islice(fitting, self.skip, self.skip + self.limit))
        shown = [
            trials
            for positions in _ranges(wanted)
            for trials in by_case(store.trials(record.id, positions=positions))
        ]
        return shown, total

    def _total(self, store: Store, record: RunRecord) -> int:
        summary = record.summary
        if record.status == "finished" and summary is not None:
            return int(summary[self.outcome or "totalCases"])
        return sum(map(self._has_outcome, by_case(store.facts(record.id))))

    def _has_outcome(self, trials: list[TrialRecord] | list[TrialFacts]) -> bool:
        return self.outcome is None or self.outcome == outcome_of(repeats_of(trials))

    def _has_words(self, entry: bytes) -> bool:
        return not _lacks(entry, self.words) and self.words in _text(entry).casefold()


def _lacks(entry: bytes, words: str) -> bool:
    """Does a look at the bytes tell that the words are not there, as it does of most results?

    Not where something is escaped, nor beyond ASCII, as some of that is ASCII in lower case, nor
    where words go on in the next text.
    """
    if not entry.isascii() or b"\\u" in entry or b"\\/" in entry or "\n" in words:
        return False
    return msgspec.json.encode(words)[1:-1] not in entry.lower()


def _ranges(positions: Iterable[int]) -> list[range]:
    """Growing numbers as ranges: neighbours are read together."""
    found: list[range] = []
    for at in positions:
        if found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(range(at, at + 1))
    return found


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
