"""A run from its plan to its result: whoever is asked is found, all is asked, then compared."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import or_
from typing import Any, cast

from msgspec.structs import replace

from assay import calibrations
from assay.engine.discretion import DiscreetCache, DiscreetJudge
from assay.engine.early import Early
from assay.engine.express import Express
from assay.engine.job import FileHashes, Job, headers_of, plan_of, project_path
from assay.engine.lineup import Lineup, unused_lines
from assay.engine.plan import TIERS, Done, Plan
from assay.engine.provenance import environment_of
from assay.engine.resuming import reopened
from assay.engine.runner import Runner
from assay.engine.spool import Spool
from assay.engine.stream import UNRELATED, Answers, ChunkGrader, StreamRun, Surroundings
from assay.engine.trial import Trials
from assay.errors import AssayError, Problem, TargetError, refusal_of
from assay.grading import Preparation
from assay.judgements import uses_of
from assay.model.calibration import JudgeUse
from assay.model.comparison import CaseRef, Comparison
from assay.model.events import Notice, RunFinished, RunStarted
from assay.model.options import TIMEOUT_SECONDS
from assay.model.run import RunRecord, RunStatus, new_run_id, timestamp
from assay.model.run_result import RunResult
from assay.model.target import RateLimits
from assay.ports import CaseStream, Resources, Target
from assay.redaction import Redactor
from assay.registry import executors
from assay.results import (
    conclude,
    folder_shown,
    head_of_suite,
    recorded_summary,
    result_of,
    write_files,
)
from assay.retrying import RetryPolicy
from assay.roster import Roster
from assay.stats.sequential import Sequential


async def run(job: Job) -> RunResult:
    """Ask, grade, record and compare."""
    options = job.options
    plan = job.plan()
    limits = RateLimits(
        workers=options.workers,
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
    )
    policy = RetryPolicy(max_retries=options.max_retries, timeout=TIMEOUT_SECONDS)
    judge = job.judge or options.judge
    async with Roster(
        job.settings, judge, job.targets, policy=policy, limits=limits, seed=options.seed
    ) as roster:
        return await _Session(job, plan, roster).run()


class _Session:
    """One run with everybody that it asks."""

    def __init__(self, job: Job, plan: Plan, roster: Roster) -> None:
        self.job, self.plan, self.roster = job, plan, roster
        self.redactor = Redactor(job.secrets)
        self.lineup = Lineup(job, roster)
        self.cache = DiscreetCache(job.store, self.redactor) if job.options.cache else None
        self.preparation = Preparation(Resources(self._judge, job.sources, self.cache))
        self.notes: list[str] = []
        #: What was noted of streamed suites, by their number.
        self.spools: dict[int, Spool] = {}
        #: The critical regressions that failed in every rerun; None when none was asked again.
        self.confirmed: frozenset[CaseRef] | None = None
        self.early: Early | None = None
        # Read before the first question: a broken file should not cost a run.
        self.calibrations = calibrations.read(job.settings.root)

    async def run(self) -> RunResult:
        try:
            return await self._run()
        finally:
            for spool in self.spools.values():
                spool.close()

    async def _run(self) -> RunResult:
        job = self.job
        hashes = FileHashes(job.suites if job.resumed is None else ())
        try:
            self._preflight()
        except AssayError:
            if refusal := refusal_of(self._faults(), strict=job.options.strict):
                raise refusal from None  # as of files that are loaded
            raise
        record = job.resumed or self._record(hashes)
        with job.store.lease(record.id):
            if job.resumed is None:
                job.store.begin(record)
            else:
                record = reopened(job.store, record.id)
            runner = self._runner(record)
            with job.brake.heeded():
                status = await self._asked(runner, record)
                comparison = await self._compared(runner, record, status)
            if runner.stopped or runner.gave_up:  # maybe only while it confirmed
                status = "interrupted"
                comparison = None if runner.stopped else comparison
            return self._finished(record, runner, status, self._selected_only(comparison))

    def _preflight(self) -> None:
        """All that can be wrong before the first question is told before it."""
        if self.job.judge is None and self.job.options.judge is not None:
            self.roster.spec(self.job.options.judge)  # even if no case needs it
        if self.plan.streams:
            self.lineup.of_streams()
        for planned in self.plan:
            self.preparation.grader(planned.case)
            if planned.case.skip is None:
                self.lineup.of(planned)
        for note in self.lineup.broken():
            self._tell(note)
        # What streams leave over is known at their end.
        for note in () if self.plan.streams else self.lineup.unused(self.plan):
            self._tell(note)

    def _record(self, hashes: FileHashes) -> RunRecord:
        job, now = self.job, self.job.now()
        environment = environment_of(job.settings.root)
        environment["settings"] = job.settings.recorded()
        if job.door:
            environment["door"] = job.door
        if uses := self.preparation.uses:
            environment["judges"] = _listed(uses.values())
        return RunRecord(
            id=new_run_id(int(now.timestamp() * 1000), secrets.randbits),
            started_at=timestamp(now),
            status="running",
            target=", ".join(self.lineup.names),
            plan=plan_of(job),
            options=self.redactor.json(job.options.shown()),
            environment=self.redactor.json(environment),
            suites=headers_of(job, self.plan, self.lineup.of_suite, hashes.of),
        )

    def _runner(self, record: RunRecord) -> Runner:
        job, options = self.job, self.job.options
        trials = Trials(
            record.id,
            [header.file for header in record.suites],
            self.lineup.of,
            self.preparation,
            self.redactor,
            self.cache,
            lambda planned: options.timeout_seconds or planned.case.timeout_seconds,
        )
        self.early = self._early(record)
        return Runner(
            self.plan, trials, job.store, job.listen, job.brake, self.early, live=self.lineup.live
        )

    def _early(self, record: RunRecord) -> Early | None:
        """What stops the run as soon as its comparison is decided, when the options say so."""
        if self.job.options.stop_when is None:
            return None
        *first, last = TIERS
        order = self.plan.order(first) + self.plan.order([last])
        early = Early(self.job.base, order, self.plan.repeats_of)
        if self.job.resumed is not None:
            early.recall(self.job.store.facts(record.id))
        return early

    @property
    def _test(self) -> Sequential | None:
        return None if self.early is None else self.early.test

    async def _asked(self, runner: Runner, record: RunRecord) -> RunStatus:
        job = self.job
        done = sum(1 for _ in job.store.finished(record.id)) if job.resumed else 0
        streamed = self.plan.streams
        planned = None if streamed else self.plan.planned
        job.listen(RunStarted(record.id, record.target, planned, done))
        streams = [await self._stream(index, record, runner) for index in streamed]
        for warning in (problem for run in streams for problem in run.warnings):
            job.listen(Notice(str(warning)))
        if streams and not job.brake.presses:
            self._tell_unused(streams)
        status = await runner.run()
        job.listen(RunFinished(status))
        return status

    async def _stream(self, index: int, record: RunRecord, runner: Runner) -> StreamRun:
        """A suite that is checked while it is graded; if a line is wrong, no run was begun."""
        job = self.job
        answers, stream = self._answers(), self._cases(index)
        done = Done(job.store.finished(record.id) if job.resumed else ())
        fresh = job.resumed is None
        express = None
        if fresh and self.plan.takes_all and stream.inherited.repeat in (None, 1):
            express = Express(index, stream, runner.trials, answers)
        grader = ChunkGrader(
            index,
            stream,
            self.plan,
            runner.trials,
            answers,
            done,
            spooled=fresh,
            express=express,
        )
        executor = executors.get("processes" if hasattr(os, "fork") else "local")()
        around = Surroundings(
            job.store,
            executor,
            runner.tell,
            lambda: job.brake.presses > 0,
            self._faults,
            job.options.strict,
        )
        spool = None
        if fresh:
            spool = self.spools[index] = Spool(
                job.folder, head_of_suite(record, record.suites[index])
            )
        run = StreamRun(grader, stream, answers, around, spool)
        try:
            await run.run()
        except AssayError as error:  # a judge that is needed may not be there
            if fresh and not isinstance(error, UNRELATED):
                job.store.delete(record.id)
            raise
        if run.judges:
            known = uses_of(record)
            record.environment["judges"] = self.redactor.json(_listed([*known, *run.judges]))
        if not job.brake.presses:  # else how many cases it has is not known yet
            record.suites[index] = replace(record.suites[index], selected=run.cases)
        job.store.describe(record.id, record.suites, record.environment)
        return run

    def _cases(self, index: int) -> CaseStream:
        return cast("CaseStream", self.job.suites[index].cases)

    def _faults(self) -> list[Problem]:
        """All that is wrong with streams, as if they had been loaded."""
        return [fault for index in self.plan.streams for fault in self._cases(index).faults()]

    def _tell_unused(self, streams: Sequence[StreamRun]) -> None:
        """Answers that belong to no case, neither of the streams nor of other suites."""
        answers = self._answers()
        used, *others = [run.used for run in streams]
        for more in others:
            used = bytearray(map(or_, used, more))
        for planned in self.plan:
            with suppress(TargetError):  # it has none
                used[answers.answer(planned.case.id, 0)[0]] = 1
        if 0 in used and (lines := answers.strangers(used)):
            self._tell(unused_lines(self.lineup.of_streams().name, lines))

    def _answers(self) -> Answers:
        """The recorded answers, with their index made before any process is forked."""
        answers = cast("Answers", self.lineup.of_streams().target)
        _ = answers.records
        return answers

    async def _compared(
        self, runner: Runner, record: RunRecord, status: RunStatus
    ) -> Comparison | None:
        """What changed since the baseline; a live target is asked again about what is critical."""
        compare, times = self.job.compare, self.job.options.confirm
        if compare is None or runner.stopped:
            return None
        if runner.gave_up:  # nobody is asked again, so that nothing critical is confirmed
            unconfirmed = frozenset[CaseRef]() if self.lineup.live else None
            return compare(record.id, unconfirmed, self._test)
        first = compare(record.id, None, self._test)
        if not (self.lineup.live and times and first.critical_regressions):
            return first
        confirmed: set[CaseRef] = set()
        refs = set(first.critical_regressions)
        for planned in self.plan:
            ref = CaseRef(record.suites[planned.suite].file, planned.case.id)
            if ref in refs:
                self.job.listen(Notice(f"asking {ref} again: it passed in the baseline"))
                if await runner.confirm(planned, times):
                    confirmed.add(ref)
        self.confirmed = frozenset(confirmed)
        return compare(record.id, self.confirmed, self._test)

    def _selected_only(self, comparison: Comparison | None) -> Comparison | None:
        """Cases that are still there, and were not selected this time, are not gone."""
        if comparison is None or not comparison.removed:
            return comparison
        there = {
            CaseRef(project_path(suite.file, self.job.settings), case.id)
            for suite in self.job.suites
            if not suite.streamed
            for case in suite
        }
        return replace(comparison, removed=tuple(r for r in comparison.removed if r not in there))

    def _finished(
        self,
        record: RunRecord,
        runner: Runner,
        status: RunStatus,
        comparison: Comparison | None,
    ) -> RunResult:
        job = self.job
        for remark in self.lineup.remarks():
            self._tell(remark)
        if runner.stopped and job.brake.note:
            self.notes.append(job.brake.note)
        if runner.decided:
            self.notes.append(f"stopped early: {runner.decided}")
        ended = timestamp(job.now())
        record = replace(job.store.run(record.id), status=status, finished_at=ended)
        spools = {index: spool for index, spool in self.spools.items() if spool.is_kept}
        result = result_of(
            job.store,
            record,
            comparison=comparison,
            notes=tuple(self.notes),
            calibrations=self.calibrations,
            counts={index: spool.count for index, spool in spools.items()},
        )
        gave_up = "" if runner.stopped else runner.gave_up
        result = conclude(result, job.options, gave_up=gave_up)
        summary = recorded_summary(result, self.confirmed, self._test)
        result = replace(result, record=replace(record, summary=summary))
        folder = folder_shown(write_files(_noted(result, spools), job.folder))
        # Last of all: a run that is called finished has its files, whenever we are killed.
        job.store.finish(record.id, status, ended, summary)
        return replace(result, folder=folder)

    def _judge(self, target: str | None, model: str | None) -> Target:
        return DiscreetJudge(self.roster.judge(target, model), self.redactor)

    def _tell(self, note: str) -> None:
        self.notes.append(note)
        self.job.listen(Notice(note))


def _listed(uses: Iterable[JudgeUse]) -> list[dict[str, Any]]:
    """Every judge once; it counts when it does so for any case."""
    found: dict[tuple[str, str], JudgeUse] = {}
    for use in uses:
        key = (use.evaluator, use.id)
        if key not in found or use.counts:
            found[key] = use
    return [found[key].to_dict() for key in sorted(found)]


def _noted(result: RunResult, spools: Mapping[int, Spool]) -> RunResult:
    """The result with its cases as they were noted, where they were."""
    suites = list(result.suites)
    for index, spool in spools.items():
        suites[index] = replace(suites[index], written=spool)
    return replace(result, suites=tuple(suites))
