"""Run: the result of a run as Python code gets it."""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator
from dataclasses import fields

from assay.engine.recorded import was_asked
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.registry import reporters


class Run(RunResult):
    """A RunResult that can be printed, and read for as long as somebody holds it.

    run = assay.run("evals/", target=my_agent)
    assert run.passed, run.report()
    """

    store: Store

    @classmethod
    def of(cls, result: RunResult, store: Store) -> Run:
        """The result with the store that its cases are read from; it is closed with the run."""
        run = cls(**{field.name: getattr(result, field.name) for field in fields(result)})
        object.__setattr__(run, "store", store)  # the record itself is frozen
        weakref.finalize(run, store.close)
        return run

    def report(self, format: str = "text") -> str:  # noqa: A002 - what users call it
        """The run as a text: for the terminal, or in any format of `assay run -o`."""
        out = io.StringIO()
        reporters.get(format).write(self, out)
        return out.getvalue()

    def observations(self) -> Iterator[bytes]:
        """What the target did, as lines of a replay file: one a trial, repeats in order."""
        for trial in self.store.trials(self.id):
            if was_asked(trial) and not trial.confirms:
                yield trial.observation
