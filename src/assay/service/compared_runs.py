"""Two recorded runs side by side: their comparison, its lists, and a case of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any, Literal, get_args

import msgspec

from assay.comparison.gate import GateRules
from assay.comparison.outcomes import find_run
from assay.model.case_filter import CaseFilter, Term, parse_filter
from assay.model.case_view import CaseView
from assay.model.comparison import LISTS, CaseRef, Comparison
from assay.model.comparison_tables import ComparisonTables
from assay.model.run import RunRecord
from assay.ports import Store
from assay.service.cases import case_at, case_rows
from assay.service.comparisons import compare_with_tables
from assay.service.history import options_of_run
from assay.settings import Settings

#: The lists of a comparison; their names are those of the filter `changed:`, as far as it has them.
ListName = Literal[
    "regressed",
    "fixed",
    "not-comparable",
    "not-judged",
    "still-failing",
    "both-passed",
    "flaky",
    "accepted",
    "added",
    "removed",
]
LIST_NAMES: tuple[ListName, ...] = get_args(ListName)
_PASSED = parse_filter("outcome:passed")


class Pair(msgspec.Struct, frozen=True):
    """A case of both runs, each None if the run does not have it. `at` is its place in the list."""

    ref: CaseRef
    at: int
    before: CaseView | None
    now: CaseView | None


class ComparedRuns:
    """A comparison of two recorded runs, by the gate and the margin of the candidate."""

    def __init__(self, base: str, candidate: str, store: Store, settings: Settings) -> None:
        self.asked = (base, candidate)
        self.base, self.candidate = find_run(base, store), find_run(candidate, store)
        options = options_of_run(self.candidate)
        accepted = tuple(settings.config.accepted)
        self.rules = GateRules(options.gate, options.margin, accepted=accepted, today=date.today())
        found = msgspec.json.decode(compare_with_tables(base, candidate, store, self.rules))
        self.tables = msgspec.convert(found["tables"], ComparisonTables)
        self.comparison = _restored(found)
        self._store = store

    def size(self, name: ListName) -> int:
        """How many cases a list has."""
        return self.tables.total.both_passed if name == "both-passed" else len(self._refs(name))

    def pairs(self, name: ListName, start: int, limit: int) -> list[Pair]:
        """The cases of a list from a place in it, as both runs have them."""
        if name == "both-passed":
            refs = list(islice(self._both_passed(), start, start + limit))
        else:
            refs = list(self._refs(name)[start : start + limit])
        before = positions_of_cases(self._store, self.base, refs)
        now = positions_of_cases(self._store, self.candidate, refs)
        return [
            Pair(
                ref,
                at,
                self._view(self.base, before.get(ref)),
                self._view(self.candidate, now.get(ref)),
            )
            for at, ref in enumerate(refs, start)
        ]

    def _view(self, run: RunRecord, position: int | None) -> CaseView | None:
        return None if position is None else case_at(self._store, run, position)

    def _refs(self, name: ListName) -> Sequence[CaseRef]:
        found = self.comparison
        if name == "accepted":
            return tuple(case.ref for case in found.accepted)
        fields = {
            "regressed": found.regressions,
            "fixed": found.new_passes,
            "not-comparable": found.not_comparable,
            "not-judged": found.unjudged,
            "still-failing": found.still_failing,
            "flaky": found.flaky,
            "added": found.added,
            "removed": found.removed,
        }
        return fields[name]

    def _both_passed(self) -> Iterator[CaseRef]:
        """Cases that passed in both runs: those that pass now and are in no other list."""
        others = self._others
        for row in case_rows(self._store, self.candidate, _PASSED):
            ref = CaseRef(row.suite, row.id)
            if ref not in others:
                yield ref

    @cached_property
    def _others(self) -> set[CaseRef]:
        found = self.comparison
        return {*found.new_passes, *found.added, *found.not_comparable, *found.unjudged}


def positions_of_cases(store: Store, run: RunRecord, refs: Sequence[CaseRef]) -> dict[CaseRef, int]:
    """Where a run has these cases, of which there are few."""
    if not refs:
        return {}
    where = CaseFilter((Term("id", values=tuple(dict.fromkeys(ref.id for ref in refs))),))
    found: dict[CaseRef, int] = {}
    for row in case_rows(store, run, where):
        found.setdefault(CaseRef(row.suite, row.id), row.position)
    return found


def _restored(found: dict[str, Any]) -> Comparison:
    """The comparison of its JSON, which names cases by suite, and writes infinity as null."""
    lists: dict[str, list[CaseRef]] = {name: [] for name in LISTS}
    for suite, named in found["suites"].items():
        for name, ids in named.items():
            lists[name] += [CaseRef(suite, case_id) for case_id in ids]
    test = found.get("test") or {}
    if test.get("eValue", 0) is None:
        test["eValue"] = math.inf
    for score in found["scores"]:
        difference = score["difference"]
        for end, infinite in (("low", -math.inf), ("high", math.inf)):
            difference[end] = infinite if difference[end] is None else difference[end]
    return msgspec.convert(found | lists, Comparison)
