"""The streamed suites of a run, which are graded one by one before all other suites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from operator import or_
from typing import cast

from msgspec.structs import replace

from assay.engine.plan import Plan
from assay.engine.run_spec import RunSpec
from assay.engine.run_targets import RunTargets, unused_answers
from assay.engine.runner import Runner
from assay.engine.stream import UNRELATED, StreamRun
from assay.errors import AssayError, TargetError
from assay.model.calibration import recorded_uses
from assay.model.run import RunRecord
from assay.ports import CaseStream, RecordedAnswers
from assay.problems import Problem
from assay.redaction import Redactor


class StreamedSuites:
    """Grades the streamed suites."""

    def __init__(
        self, spec: RunSpec, plan: Plan, run_targets: RunTargets, redactor: Redactor
    ) -> None:
        self._spec, self._plan = spec, plan
        self._run_targets, self._redactor = run_targets, redactor
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
        streams = (self._spec.suites[index].cases for index in self._plan.streams)
        return [fault for cases in streams for fault in cast("CaseStream", cases).faults()]

    def unused(self) -> str:
        """A note on recorded answers that belong to no case of any suite; may be empty."""
        if (
            not self._runs or self._spec.cancellation.requests
        ):  # a stopped run has not read all cases
            return ""
        answers = self._answers()
        used, *others = [run.used for run in self._runs]
        for more in others:
            used = bytearray(map(or_, used, more))
        for planned in self._plan:
            with suppress(TargetError):  # the case has no answer
                used[answers.answer(planned.case.id, 0)[0]] = 1
        lines = answers.count_unmatched(used) if 0 in used else 0
        return unused_answers(self._run_targets.target_of_run(), lines) if lines else ""

    async def _run(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        """Check and grade a suite; after an error in a line, the run is deleted."""
        spec = self._spec
        run = StreamRun(spec, record, index, self._answers(), runner.report, self.faults)
        try:
            await run.run()
        except AssayError as error:  # in the file, or a judge is missing
            if spec.resumed is None and not isinstance(error, UNRELATED):
                spec.store.delete(record.id)
            raise
        if run.judges:
            uses = recorded_uses([*record.judges, *run.judges])
            record.environment["judges"] = self._redactor.json(uses)
        if not spec.cancellation.requests:  # a stopped run has not counted all cases
            record.suites[index] = replace(record.suites[index], selected=run.cases)
        known = spec.store.run(record.id).environment  # it may have been cancelled elsewhere
        spec.store.describe(record.id, record.suites, known | record.environment)
        return run

    def _answers(self) -> RecordedAnswers:
        """The recorded answers."""
        return cast("RecordedAnswers", self._run_targets.target_of_run().target)
