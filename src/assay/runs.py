"""Run: the result of a run as Python code gets it."""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from assay.engine.recorded import was_asked
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.reporting import report


class Run(RunResult, frozen=True, kw_only=True, weakref=True):
    """A RunResult that can be printed, and read for as long as somebody holds it.

    run = assay.run("evals/", target=my_agent)
    assert run.passed, run.report()
    """

    store: Store

    @classmethod
    def of(cls, result: RunResult, store: Store) -> Run:
        """The result with the store that its cases are read from; it is closed with the run."""
        given: dict[str, Any] = asdict(result)
        run = cls(**given, store=store)
        weakref.finalize(run, store.close)
        return run

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
