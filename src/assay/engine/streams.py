"""The suites of a run that are read as a stream, one after the other, before all others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from operator import or_
from typing import cast

from msgspec.structs import replace

from assay.engine.express import Express
from assay.engine.job import Job
from assay.engine.lineup import Lineup, unused_lines
from assay.engine.plan import Done, Plan
from assay.engine.runner import Runner
from assay.engine.spool import Spool
from assay.engine.stream import UNRELATED, Answers, ChunkGrader, StreamRun, Surroundings
from assay.errors import AssayError, Problem, TargetError
from assay.judges.judgements import recorded_uses, uses_of
from assay.model.run import RunRecord
from assay.ports import CaseStream
from assay.redaction import Redactor
from assay.registry import executors
from assay.results.run import head_of_suite


class Streams:
    """Has each of them graded, and keeps what was noted of it for the result file."""

    def __init__(self, job: Job, plan: Plan, lineup: Lineup, redactor: Redactor) -> None:
        self._job, self._plan, self._lineup, self._redactor = job, plan, lineup, redactor
        self._runs: list[StreamRun] = []
        self._spools: dict[int, Spool] = {}

    async def run(self, record: RunRecord, runner: Runner) -> None:
        """Grade all of them; the record gets what only reading them can tell."""
        for index in self._plan.streams:
            self._runs.append(await self._run(index, record, runner))

    @property
    def warnings(self) -> Iterator[Problem]:
        """What is warned of in lines that were read."""
        return (problem for run in self._runs for problem in run.warnings)

    @property
    def spools(self) -> dict[int, Spool]:
        """What was noted of suites, by their number, as far as nothing is missing."""
        return {index: spool for index, spool in self._spools.items() if spool.is_kept}

    def faults(self) -> list[Problem]:
        """All that is wrong with them, as if they had been loaded."""
        return [fault for index in self._plan.streams for fault in self._cases(index).faults()]

    def unused(self) -> str:
        """Answers that belong to no case, neither of the streams nor of other suites, in words."""
        if not self._runs or self._job.brake.presses:  # stopped, it has not read them all
            return ""
        answers = self._answers()
        used, *others = [run.used for run in self._runs]
        for more in others:
            used = bytearray(map(or_, used, more))
        for planned in self._plan:
            with suppress(TargetError):  # it has none
                used[answers.answer(planned.case.id, 0)[0]] = 1
        lines = answers.strangers(used) if 0 in used else 0
        return unused_lines(self._lineup.of_streams().name, lines) if lines else ""

    def close(self) -> None:
        for spool in self._spools.values():
            spool.close()

    async def _run(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        """A suite that is checked while it is graded; if a line is wrong, no run was begun."""
        job, run = self._job, self._prepared(index, record, runner)
        try:
            await run.run()
        except AssayError as error:  # a judge that is needed may not be there
            if job.resumed is None and not isinstance(error, UNRELATED):
                job.store.delete(record.id)
            raise
        if run.judges:
            uses = recorded_uses([*uses_of(record), *run.judges])
            record.environment["judges"] = self._redactor.json(uses)
        if not job.brake.presses:  # else how many cases it has is not known yet
            record.suites[index] = replace(record.suites[index], selected=run.cases)
        job.store.describe(record.id, record.suites, record.environment)
        return run

    def _prepared(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        job, plan, trials = self._job, self._plan, runner.trials
        answers, stream = self._answers(), self._cases(index)
        done, express, spool = Done(), None, None
        if job.resumed is not None:
            done = Done(job.store.finished(record.id))
        else:
            head = head_of_suite(record, record.suites[index])
            spool = self._spools[index] = Spool(job.folder, head)
            if plan.takes_all and stream.inherited.repeat in (None, 1):
                express = Express(index, stream, trials, answers)
        grader = ChunkGrader(
            *(index, stream, plan, trials, answers, done),
            spooled=spool is not None,
            express=express,
        )
        around = Surroundings(
            store=job.store,
            executor=executors.get("processes" if hasattr(os, "fork") else "local")(),
            tell=runner.tell,
            stop=lambda: job.brake.presses > 0,
            faults=self.faults,
            strict=job.options.strict,
        )
        return StreamRun(grader, stream, answers, around, spool)

    def _cases(self, index: int) -> CaseStream:
        return cast("CaseStream", self._job.suites[index].cases)

    def _answers(self) -> Answers:
        """The recorded answers, with their index made before any process is forked."""
        answers = cast("Answers", self._lineup.of_streams().target)
        _ = answers.records
        return answers
