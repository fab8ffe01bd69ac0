"""The streamed suites of a run, which are graded one by one before all other suites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from operator import or_
from typing import cast

from msgspec.structs import replace

from assay.engine.job import Job
from assay.engine.lineup import Lineup, unused_answers
from assay.engine.plan import Done, Plan
from assay.engine.runner import Runner
from assay.engine.stream import UNRELATED, StreamRun, StreamSetup
from assay.errors import AssayError, Problem, TargetError
from assay.model.calibration import recorded_uses
from assay.model.run import RunRecord
from assay.ports import CaseStream, RecordedAnswers
from assay.redaction import Redactor
from assay.registry import executors


class Streams:
    """Grades the streamed suites."""

    def __init__(self, job: Job, plan: Plan, lineup: Lineup, redactor: Redactor) -> None:
        self._job, self._plan, self._lineup, self._redactor = job, plan, lineup, redactor
        self._runs: list[StreamRun] = []

    async def run(self, record: RunRecord, runner: Runner) -> None:
        """Grade all streams; adds to the record what is known only once they are read."""
        for index in self._plan.streams:
            self._runs.append(await self._run(index, record, runner))

    @property
    def warnings(self) -> Iterator[Problem]:
        """The warnings about lines that were read."""
        return (problem for run in self._runs for problem in run.warnings)

    def faults(self) -> list[Problem]:
        """All problems of the streams; reads each file from its start."""
        return [fault for index in self._plan.streams for fault in self._stream(index).faults()]

    def unused(self) -> str:
        """A note on recorded answers that belong to no case of any suite; may be empty."""
        if not self._runs or self._job.brake.presses:  # a stopped run has not read all cases
            return ""
        answers = self._answers()
        used, *others = [run.used for run in self._runs]
        for more in others:
            used = bytearray(map(or_, used, more))
        for planned in self._plan:
            with suppress(TargetError):  # the case has no answer
                used[answers.answer(planned.case.id, 0)[0]] = 1
        lines = answers.strangers(used) if 0 in used else 0
        return unused_answers(self._lineup.target_of_streams(), lines) if lines else ""

    async def _run(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        """Check and grade a suite; after an error in a line, the run is deleted."""
        job, run = self._job, self._prepare(index, record, runner)
        try:
            await run.run()
        except AssayError as error:  # in the file, or a judge is missing
            if job.resumed is None and not isinstance(error, UNRELATED):
                job.store.delete(record.id)
            raise
        if run.judges:
            uses = recorded_uses([*record.judges, *run.judges])
            record.environment["judges"] = self._redactor.json(uses)
        if not job.brake.presses:  # a stopped run has not counted all cases
            record.suites[index] = replace(record.suites[index], selected=run.cases)
        job.store.describe(record.id, record.suites, record.environment)
        return run

    def _prepare(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        job = self._job
        assert job.describe is not None  # suites are streamed only if they can be described
        setup = StreamSetup(
            store=job.store,
            executor=executors.get(job.executor)(),
            describe=partial(job.describe, record, index),
            done=Done() if job.resumed is None else Done(job.store.finished(record.id)),
            report=runner.report,
            should_stop=lambda: job.brake.presses > 0,
            faults=self.faults,
            strict=job.options.strict,
        )
        return StreamRun(index, self._stream(index), self._answers(), setup)

    def _stream(self, index: int) -> CaseStream:
        return cast("CaseStream", self._job.suites[index].cases)

    def _answers(self) -> RecordedAnswers:
        """The recorded answers."""
        return cast("RecordedAnswers", self._lineup.target_of_streams().target)
