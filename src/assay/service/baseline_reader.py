"""Reads what reports show of the run that a run was compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from assay.comparison.outcomes import Outcomes, stored
from assay.comparison.tables import tables
from assay.errors import NotInStore
from assay.model.case_content import decode_content
from assay.model.comparison import CaseRef, Comparison
from assay.model.comparison_tables import ComparisonTables
from assay.model.observed import decode_observed
from assay.model.run import RunRecord, only
from assay.model.run_result import Baseline
from assay.model.trials import by_case, shown_trial
from assay.ports import Store
from assay.service.cases import baseline_of


def reader_of(
    record: RunRecord, comparison: Comparison, store: Store, base: Outcomes | None = None
) -> Baseline:
    """Reads the run `base`, or the baseline of the run, once it is needed."""
    reader = _Reader(record, comparison, store, base)
    return Baseline(reader.answer, reader.tables)


class _Reader:
    def __init__(
        self, record: RunRecord, comparison: Comparison, store: Store, base: Outcomes | None
    ) -> None:
        self._record, self._comparison, self._store = record, comparison, store
        self._given = base

    def answer(self, ref: CaseRef) -> str | None:
        """The answer to a case of the run; None for one that passed in both, or has none."""
        position = self._positions.get(ref)
        if position is None or self._base is None:
            return None
        trials = list(self._store.trials(self._base.run_id, positions=only(position)))
        return decode_observed(shown_trial(trials).observation).response

    def tables(self) -> ComparisonTables | None:
        """How many cases changed, by suite and by tag; None if the baseline is gone."""
        if self._base is None:
            return None
        tags = (
            decode_content(trials[0].content).tags
            for trials in by_case(self._store.trials(self._record.id))
        )
        return tables(self._base, stored(self._record, self._store), tags)

    @cached_property
    def _base(self) -> Outcomes | None:
        return self._given or baseline_of(self._store, self._record)

    @cached_property
    def _positions(self) -> dict[CaseRef, int]:
        """Where the baseline has the cases that the comparison names; empty if it is a file."""
        if self._base is None or not self._base.run_id:
            return {}
        wanted = set(self._named())
        found: dict[CaseRef, int] = {}
        with suppress(NotInStore):
            for trial in self._store.facts(self._store.run(self._base.run_id).id):
                ref = CaseRef(trial.suite, trial.case_id)
                if not trial.repeat and ref in wanted:
                    found.setdefault(ref, trial.position)
        return found

    def _named(self) -> Iterator[CaseRef]:
        """The cases that did not just pass in both."""
        compared = self._comparison
        for refs in (compared.regressions, compared.new_passes, compared.still_failing):
            yield from refs
        yield from compared.not_comparable
        yield from compared.unjudged
