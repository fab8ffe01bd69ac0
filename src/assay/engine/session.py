"""Session: a run from its plan to its result, or several runs that are kept in step."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from assay.engine.answer_notes import answer_notes
from assay.engine.cancellation import watch
from assay.engine.grading import Preparation
from assay.engine.in_step import InStep
from assay.engine.live_pieces import RemoteTrials
from assay.engine.losses import MAX_CASES as MAX_REASKED
from assay.engine.losses import LostCase, expected_cost, open_losses
from assay.engine.plan import TIERS, Plan, PlannedCase
from assay.engine.provenance import environment_of
from assay.engine.redaction import RedactedJudge, SecretFreeCache
from assay.engine.resuming import check_cases, reopen
from assay.engine.run_spec import FileHashes, RunEnding, RunSpec, headers_of, plan_of, project_path
from assay.engine.run_targets import RunTargets, pool_for
from assay.engine.runner import Runner, Spending, first_of
from assay.engine.sequential_stop import SequentialStop
from assay.engine.streamed_suites import StreamedSuites
from assay.engine.trial import TrialRunner
from assay.errors import AssayError, error_for
from assay.model.calibration import recorded_uses
from assay.model.comparison import CaseRef, Comparison
from assay.model.events import Notice, RunFinished, RunStarted
from assay.model.options import CONFIRM
from assay.model.run import (
    STARTED_BY,
    RunRecord,
    RunStatus,
    id_time_ms,
    new_run_id,
    only,
    timestamp,
)
from assay.model.run_result import RunResult
from assay.ports import Resources, Store, Target
from assay.redaction import Redactor, redacted, redacting
from assay.stats.sequential import Sequential
from assay.suites.missing_programs import MissingPrograms
from assay.targets.pool.retries import RetryingTarget
from assay.targets.pool.target_pool import TargetPool
from assay.text import count


async def run(spec: RunSpec, spent_usd: float = 0.0) -> RunResult:
    """Ask and grade every case, record the results, and compare them with the baseline.

    `spent_usd` of the budget are spent by other runs.
    """
    (result,) = await run_together([spec], spent_usd=spent_usd)
    return result


async def run_together(
    specs: Sequence[RunSpec],
    announce: Callable[[Sequence[Plan]], None] = lambda plans: None,
    spent_usd: float = 0.0,
) -> list[RunResult]:
    """Run several specs that differ in their targets, and keep them in step.

    They share limits, and a budget of which `spent_usd` is spent. `announce` is called once all is
    checked, before anything is recorded or asked.
    """
    first, redactor = specs[0], Redactor(specs[0].secrets)
    plans = [spec.plan() for spec in specs]
    pool = pool_for(first.settings, first.options, first.judge, first.targets, plans[0].workers)
    shared = Shared(pool, redactor, InStep(), Spending(spent_usd), asyncio.Lock())
    with redacting(lambda: redactor):
        async with pool:
            sessions = [_Session(s, plan, shared) for s, plan in zip(specs, plans, strict=True)]
            for session in sessions:
                session.prepare()
            announce(plans)
            with ExitStack() as leases:
                _begin(sessions, first.store, leases)
                return await _run_all(sessions)


def _begin(sessions: Sequence[_Session], store: Store, leases: ExitStack) -> None:
    """Record the runs as running: new ones all together, or none."""
    for session in sessions:
        leases.enter_context(store.lease(session.record.id))
    if new := [session.record for session in sessions if session.spec.resumed is None]:
        store.begin(*new)
    for session in sessions:
        if session.spec.resumed is not None:
            session.record = reopen(store, session.record.id, session.spec.started_by)
    for session in sessions:
        session.make_ready()


async def _run_all(sessions: Sequence[_Session]) -> list[RunResult]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(session.run()) for session in sessions]
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return [task.result() for task in tasks]


class Shared(NamedTuple):
    """What the runs of a group share."""

    pool: TargetPool
    redactor: Redactor
    in_step: InStep
    spending: Spending
    #: Held by the run whose streamed suites are graded, which takes all processors.
    streaming: asyncio.Lock


@asynccontextmanager
async def _watched(spec: RunSpec, run_id: str) -> AsyncIterator[None]:
    watcher = asyncio.create_task(watch(spec.store, run_id, spec.cancellation))
    try:
        yield
    finally:
        watcher.cancel()


class _Session:
    """One run with all its targets and judges."""

    #: The record of the run, once it is prepared.
    record: RunRecord
    _runner: Runner

    def __init__(self, spec: RunSpec, plan: Plan, shared: Shared) -> None:
        self.spec, self.plan, self._shared = spec, plan, shared
        self.pool, self.redactor = shared.pool, shared.redactor
        self._began, self._began_monotonic = spec.now(), time.monotonic()
        self._place = shared.in_step.join()
        self.run_targets = RunTargets(spec, self.pool)
        self.cache = SecretFreeCache(spec.store, self.redactor) if spec.options.cache else None
        self.preparation = Preparation(Resources(self._judge, spec.sources, self.cache))
        self._judges: list[RetryingTarget] = []
        self.notes: list[str] = list(spec.notes)
        self.streams = StreamedSuites(spec, plan, self.run_targets, self.redactor)
        #: Does the baseline have cases that still exist, but were not selected?
        self.narrowed = False
        self.sequential_stop: SequentialStop | None = None
        #: How many lost cases were asked again.
        self.reasked = 0

    def _now(self) -> datetime:
        """When the session began, plus the time since then on the monotonic clock."""
        return self._began + timedelta(seconds=time.monotonic() - self._began_monotonic)

    def prepare(self) -> None:
        """Find everything that is wrong, before anything is recorded or asked."""
        spec = self.spec
        hashes = FileHashes(spec.suites if spec.resumed is None else ())
        try:
            self._preflight()
        except AssayError:
            # Errors in eval files come first, as for files that are not streamed.
            if error := error_for(self.streams.faults(), strict=spec.options.strict):
                raise error from None
            raise
        if spec.resumed is not None:
            check_cases(spec.resumed, self.plan, self.preparation.grader, spec.store)
        self.record = spec.resumed or self._new_record(hashes)

    def make_ready(self) -> None:
        """Count what earlier processes of the run have spent, before any run of the group asks."""
        self._runner = self._make_runner(self.record)
        self._runner.restore()

    async def run(self) -> RunResult:
        """Ask what is left, compare, and end the run, whose lease the caller holds."""
        spec, record, runner = self.spec, self.record, self._runner
        try:
            with spec.cancellation.observed():
                async with _watched(spec, record.id):
                    status = await self._ask(runner, record)
                comparison = None if runner.stopped else self._compare(record)
            return self._finish(record, runner, status, self._without_unselected(comparison))
        finally:
            self._place.leave()

    def _preflight(self) -> None:
        """Select the cases, and find everything that is wrong before the first one is asked."""
        if self.spec.judge is None and self.spec.options.judge is not None:
            self.pool.spec(self.spec.options.judge)  # even if no case needs it
        # Even if all cases are skipped, the runs of a group are told apart by their targets.
        if self.plan.streams or self.spec.group is not None:
            self.run_targets.target_of_run()
        programs = MissingPrograms(to_run=True)

        def look(planned: PlannedCase) -> None:
            programs.look(planned.case)
            self.preparation.grader(planned.case)
            if planned.case.skip is None:
                self.run_targets.target_of(planned)

        self.plan.select(look)
        if error := error_for(programs.problems):
            raise error
        for note in self.run_targets.unreadable():
            self._add_note(note)
        # With streams, the unused answers are known only when all of them have been read.
        for note in () if self.plan.streams else self.run_targets.unused(self.plan):
            self._add_note(note)

    def _new_record(self, hashes: FileHashes) -> RunRecord:
        spec = self.spec
        environment = environment_of(spec.settings.root)
        environment["settings"] = spec.settings.recorded()
        if spec.started_by:
            environment[STARTED_BY] = spec.started_by
        if uses := self.preparation.uses:
            environment["judges"] = recorded_uses(uses.values())
        return RunRecord(
            id=self._new_id(),
            started_at=timestamp(self._began),
            status="running",
            target=", ".join(self.run_targets.names),
            plan=plan_of(spec),
            options=self.redactor.json(spec.options.shown()),
            environment=self.redactor.json(environment),
            suites=headers_of(spec, self.plan, self.run_targets.target_name_of, hashes.of),
            group=spec.group,
        )

    def _new_id(self) -> str:
        """An id after those in the store: ids are in the order of runs, even if clocks are not."""
        began_ms = int(self._began.timestamp() * 1000)
        newest = self.spec.store.runs(1)
        after = id_time_ms(newest[0].id) if newest else None
        return new_run_id(began_ms if after is None else max(began_ms, after + 1), secrets.randbits)

    def _make_runner(self, record: RunRecord) -> Runner:
        spec = self.spec
        trials = TrialRunner(
            record.id,
            [header.file for header in record.suites],
            self.run_targets.target_of,
            self.preparation,
            self.redactor,
            self.cache,
            spec.options.timeout_seconds,
            spec.now,
        )
        self.sequential_stop = self._sequential_stop(record)
        asked = (*self.run_targets.known, *self._judges)
        workers = self.plan.workers or self.pool.workers_of(asked)
        remote = None
        if spec.executor and spec.describe_live and self.run_targets.is_live:
            order = partial(spec.describe_live, record)
            remote = RemoteTrials(spec.executor, order, workers, spec.store, spec.listen)
        return Runner(
            self.plan,
            trials,
            spec,
            self.sequential_stop,
            workers=workers,
            live=self.run_targets.is_live,
            spending=self._shared.spending,
            place=self._place,
            remote=remote,
        )

    def _sequential_stop(self, record: RunRecord) -> SequentialStop | None:
        """The test that stops the run once its comparison is decided, if the options say so."""
        if self.spec.options.stop_when is None:
            return None
        *first, last = TIERS
        order = self.plan.order(first) + self.plan.order([last])
        sequential_stop = SequentialStop(
            self.spec.base, order, self.plan.repeats_of, self.spec.accepts
        )
        if self.spec.resumed is not None:
            sequential_stop.restore(self.spec.store.facts(record.id))
        return sequential_stop

    @property
    def _test(self) -> Sequential | None:
        return None if self.sequential_stop is None else self.sequential_stop.test

    async def _ask(self, runner: Runner, record: RunRecord) -> RunStatus:
        spec = self.spec
        done = sum(1 for _ in spec.store.finished(record.id)) if spec.resumed else 0
        planned = None if self.plan.streams else self.plan.planned
        if planned is not None:  # re-asks are not planned
            done = min(done, planned)
        spec.listen(RunStarted(record.id, record.target, planned, done))
        if self.run_targets.is_live and spec.describe_live is None:
            self._place.begin(done, runner.workers)
        else:
            self._place.leave()  # the answers are recorded, or other processes ask
        async with self._shared.streaming:
            await self.streams.run(record, runner)
        for warning in self.streams.warnings:
            spec.listen(Notice(str(warning)))
        if note := self.streams.unused():
            self._add_note(note)
        status = await runner.run(lambda: self._ask_losses_again(runner, record))
        spec.listen(RunFinished(status))
        return status

    def _compare(self, record: RunRecord) -> Comparison | None:
        compare = self.spec.compare
        return None if compare is None else compare(record.id, self._test)

    async def _ask_losses_again(self, runner: Runner, record: RunRecord) -> None:
        """Ask lost cases again, if the gate cannot decide without that."""
        if runner.stopped or self.spec.options.gate != "regression" or not self.run_targets.is_live:
            return
        found = self._compare(record)
        if found is None or found.is_worse:  # the gate fails either way
            return
        files = [header.file for header in record.suites]
        known = open_losses(found, self.plan, files.__getitem__, self._confirm_times)
        losses = [loss for loss in known if not loss.is_settled(runner.reasks_of(loss.planned))]
        room = MAX_REASKED - self.reasked
        chosen, rest = losses[:room], losses[room:]
        self.reasked += len(chosen)
        if chosen and not runner.gave_up:
            left = [(loss, loss.times - len(runner.reasks_of(loss.planned))) for loss in chosen]
            self.spec.listen(Notice(self._announce(left, record)))
        if chosen:
            await runner.ask_again(chosen)
        for loss in rest:
            why = f"at most {MAX_REASKED} cases are"
            await runner.skip_reask(loss.planned, loss.repeats[0], why)
        if runner.gave_up and losses:
            self._add_note(f"not every re-ask was made: {runner.gave_up}")
        elif rest:
            self._add_note(f"at most {MAX_REASKED} lost cases are asked again; there were more")

    def _announce(self, left: Sequence[tuple[LostCase, int]], record: RunRecord) -> str:
        """How many re-asks there will be, of those that each loss has left, and their cost."""
        facts = self.spec.store.facts
        cost = expected_cost(left, lambda position: facts(record.id, only(position)))
        times = sum(times for _, times in left)
        trials = f"{'' if times == 1 else 'up to '}{count(times, 'trial')}"
        text = f"asking {count(len(left), 'case')} again that passed in the baseline: {trials}"
        return f"{text}, at most about ${cost:.2g}" if cost else text

    def _confirm_times(self, planned: PlannedCase) -> int:
        """How often a lost case is asked again."""
        target = self.run_targets.target_of(planned)
        if target.recorded:
            return 0
        chosen = (self.spec.options.confirm, target.confirm, CONFIRM)
        return next(times for times in chosen if times is not None)

    def _without_unselected(self, comparison: Comparison | None) -> Comparison | None:
        """Cases that still exist, but were not selected this time, do not count as removed."""
        if comparison is None or not comparison.removed:
            return comparison
        gone = set(comparison.removed)
        for index, suite in enumerate(self.spec.suites):
            if index in self.plan.streams and self.plan.is_unfiltered:
                continue  # all of its cases were run: do not read the file again
            file = project_path(suite.file, self.spec.settings)
            for case in suite:
                gone -= {CaseRef(file, case.id), CaseRef("", case.id)}
        removed = tuple(ref for ref in comparison.removed if ref in gone)
        self.narrowed = removed != comparison.removed
        return replace(comparison, removed=removed)

    def _finish(
        self,
        record: RunRecord,
        runner: Runner,
        status: RunStatus,
        comparison: Comparison | None,
    ) -> RunResult:
        spec = self.spec
        for remark in self.run_targets.remarks():
            self._add_note(remark)
        if runner.trials.asked_otherwise or (spec.resumed and self.run_targets.is_live):
            self.notes += answer_notes(spec.store.trials(record.id))
        if runner.stopped and spec.cancellation.note:
            self.notes.append(spec.cancellation.note)
        if runner.unpriced:
            self.notes.append(runner.unpriced)
        if runner.decided:
            self.notes.append(f"stopped early: {runner.decided}")
        ended = timestamp(self._now())
        record = replace(spec.store.run(record.id), status=status, finished_at=ended)
        result = spec.results.finish(
            RunEnding(
                spec=spec,
                record=record,
                comparison=comparison,
                notes=tuple(map(redacted, self.notes)),
                gave_up="" if runner.stopped else redacted(runner.gave_up),
                faults=() if runner.stopped else self._faults_of_targets(record),
                narrowed=self.narrowed,
                sequential=self._test,
            )
        )
        # Last: a run that is marked as finished has its files, even if this process is killed.
        spec.store.finish(record.id, status, ended, result.record.summary or {})
        return result

    def _faults_of_targets(self, record: RunRecord) -> list[str]:
        faults = self.run_targets.faults(self.plan, lambda: self.spec.store.trials(record.id))
        return list(map(redacted, faults))

    def _judge(self, target: str | None, model: str | None) -> Target:
        judge = self.pool.judge(target, model)
        self._judges.append(judge)
        return RedactedJudge(judge, self.redactor)

    def _add_note(self, note: str) -> None:
        """Add a note and report it at once, unless it is there already."""
        if note not in self.notes:
            self.notes.append(note)
            self.spec.listen(Notice(note))
