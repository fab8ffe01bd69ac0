"""Run: the result of a run as Python code gets it."""

from __future__ import annotations

import io
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

from msgspec.structs import asdict, replace

from assay.engine.recorded import was_asked
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.service.report import report

T = TypeVar("T")


class _Held:
    """A store that is closed when nobody holds this object any more."""

    def __init__(self, store: Store) -> None:
        self._store = store
        weakref.finalize(self, store.close)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _read(read: Callable[[], Iterator[T]], held: _Held) -> Iterator[T]:
    """What is read from the store; the iterator holds it too."""
    yield from read()


class Run(RunResult, frozen=True, kw_only=True):
    """A RunResult that can be printed, and read for as long as somebody holds it.

    run = assay.run("evals/", target=my_agent)
    assert run.passed, run.report()
    """

    store: Store

    @classmethod
    def of(cls, result: RunResult, store: Store) -> Run:
        """The result with the store that its cases are read from.

        It is closed when nobody holds the run, a copy, one of its suites or their iterators.
        """
        held = _Held(store)
        given: dict[str, Any] = asdict(result)
        given["suites"] = tuple(
            replace(
                suite,
                entries=partial(_read, suite.entries, held),
                comparability=partial(_read, suite.comparability, held),
            )
            for suite in result.suites
        )
        return cls(**given, store=cast("Store", held))

    def __repr__(self) -> str:
        """One line: all its suites would fill the page of a notebook."""
        counts = f"{self.summary.passed} of {self.summary.total_cases} passed"
        return f"<Run {self.id}: {counts}, exit code {self.exit_code}>"

    def report(self, format: str = "text") -> str:  # noqa: A002 - what users call it
        """The run as a text: for the terminal, or in any format of `assay run -o`."""
        out = io.StringIO()
        report(self, format, out)
        return out.getvalue()

    def observations(self) -> Iterator[bytes]:
        """What the target did, as lines of a replay file: one a trial, repeats in order."""
        for trial in self.store.trials(self.id):
            if was_asked(trial) and not trial.confirms:
                yield trial.observation
