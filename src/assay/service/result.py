"""Run: the result of a run in Python."""

from __future__ import annotations

import io
import weakref
from collections.abc import Callable, Iterator, Set
from functools import partial
from typing import Any, TypeVar, cast

from msgspec.structs import asdict, replace

from assay.comparison.outcomes import Outcomes
from assay.engine.recorded import was_asked
from assay.model.comparison import CaseRef
from assay.model.result import CaseResult
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.service.baseline_reader import reader_of
from assay.service.notebooks import data_frame_of, html_of
from assay.service.report import report

T = TypeVar("T")


class StoreHandle:
    """A store that is closed when this object is garbage collected."""

    def __init__(self, store: Store) -> None:
        self._store = store
        weakref.finalize(self, store.close)

    @classmethod
    def of(cls, store: Store) -> StoreHandle:
        """The handle of a store, which is shared by all that read from it."""
        return store if isinstance(store, cls) else cls(store)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _read(iterate: Callable[[], Iterator[T]], handle: StoreHandle) -> Iterator[T]:
    """Iterate, and keep the store open for as long as the iterator exists."""
    yield from iterate()


class Run(RunResult, frozen=True, kw_only=True):
    """A RunResult that can be printed, and whose store stays open while it is referenced.

    run = assay.run("evals/", target=my_agent)
    assert run.passed, run.report()
    """

    store: Store

    @classmethod
    def of(cls, result: RunResult, store: Store, base: Outcomes | None = None) -> Run:
        """The result with the store that its cases are read from.

        `base` is the run that it is compared with, if that is not its baseline. The store is closed
        when the run, its copies, its suites and their iterators are gone.
        """
        handle = StoreHandle.of(store)
        given: dict[str, Any] = asdict(result)
        given["suites"] = tuple(
            replace(
                suite,
                entries=partial(_read, suite.entries, handle),
                records=suite.records and partial(_read, suite.records, handle),
                comparability=partial(_read, suite.comparability, handle),
            )
            for suite in result.suites
        )
        if result.trials is not None:
            given["trials"] = partial(_read, result.trials, handle)
        kept = cast("Store", handle)
        if result.comparison is not None:
            given["baseline"] = reader_of(result.record, result.comparison, kept, base)
        return cls(**given, store=kept)

    def __repr__(self) -> str:
        """One line, as all suites would fill a page in a notebook."""
        counts = f"{self.summary.passed} of {self.summary.total_cases} passed"
        return f"<Run {self.id}: {counts}, exit code {self.exit_code}>"

    def _repr_html_(self) -> str:
        """How a notebook shows the run: counts with intervals, and what failed."""
        return html_of(self)

    def cases(self) -> Iterator[CaseResult]:
        """The results of all cases, read one by one."""
        for suite in self.suites:
            yield from suite.cases

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each case; pandas must be installed."""
        return data_frame_of(self)

    def report(self, format: str = "text") -> str:  # noqa: A002 - the natural name
        """The report as text, or in another format of `assay run -o`."""
        out = io.StringIO()
        report(self, format, out)
        return out.getvalue()

    def observations(self, only: Set[CaseRef] | None = None) -> Iterator[bytes]:
        """What the target did, as lines of a replay file: one per trial, repeats in order.

        `only` are the cases to include; None for all.
        """
        for trial in self.store.trials(self.id):
            wanted = only is None or (trial.suite, trial.case_id) in only
            if wanted and was_asked(trial) and not trial.confirms:
                yield trial.observation
