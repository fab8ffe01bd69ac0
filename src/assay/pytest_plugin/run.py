"""EvalRun: the one run behind all eval items, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from assay.blocking import wait_for
from assay.engine.cancellation import Cancellation
from assay.errors import AssayError, cause_of
from assay.model.case import EvalSuite
from assay.model.comparison import CaseRef
from assay.model.events import Event, RunStarted, TrialFinished
from assay.model.options import RunOptions
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.pytest_plugin.results import (
    CaseReport,
    GateReport,
    judged,
    report_of_case,
    report_of_gate,
)
from assay.service.runs import RunHooks, RunRequest, execute_in
from assay.settings import Settings
from assay.threads import call_in_thread

#: Recorded with the run.
STARTED_BY = "pytest"
#: How often a wait looks for Ctrl-C: a signal that another thread gets would not end it.
SIGNAL_SECONDS = 0.1


class Selection(msgspec.Struct, frozen=True):
    """What to run: suites, and how often each selected case of them is asked.

    `whole` if no case of the suites is left out.
    """

    suites: Sequence[EvalSuite]
    repeats: Mapping[CaseRef, int]
    whole: bool


class EvalRun:
    """A run of the selected cases. Any thread may wait for the result of a case.

    `given` are the options of the command line, and `options` the same with those of the project.
    The caller closes the store.
    """

    def __init__(
        self, settings: Settings, store: Store, options: RunOptions, given: dict[str, Any]
    ) -> None:
        self._settings, self.store, self._options, self._given = settings, store, options, given
        self._cancellation = Cancellation()
        self._changed = threading.Condition()
        self._ended = False
        self._call: Future[RunResult] = Future()
        self._run_id = ""
        #: How many trials of a case have not finished yet.
        self._left: dict[CaseRef, int] = {}
        #: The positions of the cases whose trials have all finished.
        self._done: dict[CaseRef, int] = {}

    def start(self, selection: Selection) -> None:
        """Start the run; to be called once."""
        self._left = dict(selection.repeats)
        hooks = RunHooks(self._listen, self._cancellation, STARTED_BY)
        only = None if selection.whole else frozenset(selection.repeats)
        # No streaming: it forks, and items need every case anyway.
        request = RunRequest(selection.suites, hooks=hooks, stream=False, only=only)

        def work() -> RunResult:
            try:
                return wait_for(
                    lambda: execute_in(self._settings, self.store, request, self._given)
                )
            finally:
                with self._changed:
                    self._ended = True
                    self._changed.notify_all()

        self._call = call_in_thread(work)

    def case(self, ref: CaseRef) -> CaseReport:
        """The result of a case, once all its trials have finished.

        With a baseline, a failed case waits for the comparison too.
        """
        self._wait_until(lambda: ref in self._done)
        if ref not in self._done:
            return self._unasked()
        report = report_of_case(self.store, self._run_id, self._done[ref])
        if report.outcome != "failed":
            return report
        result = self.result() if self._options.baseline is not None else None
        comparison = None if result is None else result.comparison
        return judged(report, ref, comparison, self._options)

    def gate(self) -> GateReport:
        """The verdict about the run, once it has ended."""
        result = self.result()
        if result is None:
            return GateReport(False, "not run", self.fault or "the run was stopped")
        return report_of_gate(result)

    def result(self) -> RunResult | None:
        """The result of the run, once it has ended; None if it failed."""
        self._wait_until(lambda: False)
        return None if self._call.exception() is not None else self._call.result()

    @property
    def fault(self) -> str:
        """Why the run failed, once it has ended; empty if it did not."""
        error = self._call.exception()
        if error is None:
            return ""
        if isinstance(error, AssayError):
            return "\n".join(str(p) if p.file else p.message for p in error.problems)
        return cause_of(error)

    def stop(self) -> None:
        """Start no more trials; those in flight may finish."""
        if not self._cancellation.requests:
            self._cancellation.request()

    def finish(self) -> None:
        """Wait until the run has ended. Ctrl-C cancels trials in flight, and then the wait."""
        for _ in range(2):
            try:
                return self._wait_until(lambda: False)
            except KeyboardInterrupt:
                self._cancellation.request()
        return self._wait_until(lambda: False)

    def _listen(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._run_id = event.run_id
        elif isinstance(event, TrialFinished) and not event.confirms:
            ref = CaseRef(event.suite, event.case_id)
            self._left[ref] -= 1
            if not self._left[ref]:
                with self._changed:
                    self._done[ref] = event.position
                    self._changed.notify_all()

    def _wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, or the run has ended."""
        with self._changed:
            while not (holds() or self._ended):
                self._changed.wait(SIGNAL_SECONDS)

    def _unasked(self) -> CaseReport:
        if self.fault:
            return CaseReport("errored", tuple(self.fault.splitlines()))
        return CaseReport("unasked", ("not asked: the run was stopped",))
