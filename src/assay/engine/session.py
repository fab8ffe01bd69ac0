"""Session: a run from its plan to its result."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from assay.engine.asking import asking_notes
from assay.engine.discretion import RedactedJudge, SecretFreeCache
from assay.engine.early import Early
from assay.engine.grading import Preparation
from assay.engine.job import Ending, FileHashes, Job, headers_of, plan_of, project_path
from assay.engine.lineup import Lineup, roster_for
from assay.engine.losses import MAX_CASES as MAX_REASKED
from assay.engine.losses import Loss, expected_cost, open_losses
from assay.engine.plan import TIERS, Plan, Planned
from assay.engine.provenance import environment_of
from assay.engine.resuming import check_cases, reopen
from assay.engine.runner import Runner
from assay.engine.streams import Streams
from assay.engine.trial import Trials
from assay.errors import AssayError, refusal_of
from assay.model.calibration import recorded_uses
from assay.model.comparison import CaseRef, Comparison
from assay.model.events import Notice, RunFinished, RunStarted
from assay.model.options import CONFIRM
from assay.model.run import DOOR, RunRecord, RunStatus, id_time_ms, new_run_id, only, timestamp
from assay.model.run_result import RunResult
from assay.ports import Resources, Target
from assay.redaction import Redactor, redacted, redacting
from assay.roster.targets import Roster
from assay.stats.sequential import Sequential
from assay.suites.programs import MissingPrograms
from assay.text import count


async def run(job: Job) -> RunResult:
    """Ask and grade every case, record the results, and compare them with the baseline."""
    plan = job.plan()
    roster = roster_for(job.settings, job.options, job.judge, job.targets, plan.workers)
    async with roster:
        return await _Session(job, plan, roster).run()


class _Session:
    """One run with all its targets and judges."""

    def __init__(self, job: Job, plan: Plan, roster: Roster) -> None:
        self.job, self.plan, self.roster = job, plan, roster
        self._began, self._began_monotonic = job.now(), time.monotonic()
        self.redactor = Redactor(job.secrets)
        self.lineup = Lineup(job, roster)
        self.cache = SecretFreeCache(job.store, self.redactor) if job.options.cache else None
        self.preparation = Preparation(Resources(self._judge, job.sources, self.cache))
        self.notes: list[str] = []
        self.streams = Streams(job, plan, self.lineup, self.redactor)
        #: Does the baseline have cases that still exist, but were not selected?
        self.narrowed = False
        self.early: Early | None = None
        #: How many lost cases were asked again.
        self.reasked = 0

    def _now(self) -> datetime:
        """When the session began, plus what has passed on a clock that cannot be set."""
        return self._began + timedelta(seconds=time.monotonic() - self._began_monotonic)

    async def run(self) -> RunResult:
        redactor = self.redactor  # not `self`: a context may outlive the run
        with redacting(lambda: redactor):
            return await self._run()

    async def _run(self) -> RunResult:
        job = self.job
        hashes = FileHashes(job.suites if job.resumed is None else ())
        try:
            self._preflight()
        except AssayError:
            # Errors in eval files come first, as for files that are not streamed.
            if refusal := refusal_of(self.streams.faults(), strict=job.options.strict):
                raise refusal from None
            raise
        if job.resumed is not None:
            check_cases(job.resumed, self.plan, self.preparation.grader, job.store)
        record = job.resumed or self._new_record(hashes)
        with job.store.lease(record.id):
            if job.resumed is None:
                job.store.begin(record)
            else:
                record = reopen(job.store, record.id, job.door)
            runner = self._runner(record)
            with job.brake.heeded():
                status = await self._ask(runner, record)
                comparison = None if runner.stopped else self._compare(record)
            return self._finish(record, runner, status, self._without_unselected(comparison))

    def _preflight(self) -> None:
        """Select the cases, and find everything that is wrong before the first one is asked."""
        if self.job.judge is None and self.job.options.judge is not None:
            self.roster.spec(self.job.options.judge)  # even if no case needs it
        if self.plan.streams:
            self.lineup.target_of_streams()
        programs = MissingPrograms(to_run=True)

        def look(planned: Planned) -> None:
            programs.look(planned.case)
            self.preparation.grader(planned.case)
            if planned.case.skip is None:
                self.lineup.target_of(planned)

        self.plan.select(look)
        if refusal := refusal_of(programs.problems):
            raise refusal
        for note in self.lineup.unreadable():
            self._add_note(note)
        # With streams, the unused answers are known only when all of them have been read.
        for note in () if self.plan.streams else self.lineup.unused(self.plan):
            self._add_note(note)

    def _new_record(self, hashes: FileHashes) -> RunRecord:
        job = self.job
        environment = environment_of(job.settings.root)
        environment["settings"] = job.settings.recorded()
        if job.door:
            environment[DOOR] = job.door
        if uses := self.preparation.uses:
            environment["judges"] = recorded_uses(uses.values())
        return RunRecord(
            id=self._new_id(),
            started_at=timestamp(self._began),
            status="running",
            target=", ".join(self.lineup.names),
            plan=plan_of(job),
            options=self.redactor.json(job.options.shown()),
            environment=self.redactor.json(environment),
            suites=headers_of(job, self.plan, self.lineup.target_name_of, hashes.of),
        )

    def _new_id(self) -> str:
        """An id after those in the store: their order is that of the runs, whatever clocks say."""
        began_ms = int(self._began.timestamp() * 1000)
        newest = self.job.store.runs(1)
        after = id_time_ms(newest[0].id) if newest else None
        return new_run_id(began_ms if after is None else max(began_ms, after + 1), secrets.randbits)

    def _runner(self, record: RunRecord) -> Runner:
        job = self.job
        trials = Trials(
            record.id,
            [header.file for header in record.suites],
            self.lineup.target_of,
            self.preparation,
            self.redactor,
            self.cache,
            job.options.timeout_seconds,
            job.now,
        )
        self.early = self._early(record)
        return Runner(
            self.plan,
            trials,
            job,
            self.early,
            workers=self.plan.workers or self.roster.workers,
            live=self.lineup.is_live,
        )

    def _early(self, record: RunRecord) -> Early | None:
        """The test that stops the run once its comparison is decided, if the options say so."""
        if self.job.options.stop_when is None:
            return None
        *first, last = TIERS
        order = self.plan.order(first) + self.plan.order([last])
        early = Early(self.job.base, order, self.plan.repeats_of, self.job.accepts)
        if self.job.resumed is not None:
            early.restore(self.job.store.facts(record.id))
        return early

    @property
    def _test(self) -> Sequential | None:
        return None if self.early is None else self.early.test

    async def _ask(self, runner: Runner, record: RunRecord) -> RunStatus:
        job = self.job
        done = sum(1 for _ in job.store.finished(record.id)) if job.resumed else 0
        planned = None if self.plan.streams else self.plan.planned
        if planned is not None:  # re-asks are not planned
            done = min(done, planned)
        job.listen(RunStarted(record.id, record.target, planned, done))
        await self.streams.run(record, runner)
        for warning in self.streams.warnings:
            job.listen(Notice(str(warning)))
        if note := self.streams.unused():
            self._add_note(note)
        status = await runner.run(lambda: self._ask_losses_again(runner, record))
        job.listen(RunFinished(status))
        return status

    def _compare(self, record: RunRecord) -> Comparison | None:
        compare = self.job.compare
        return None if compare is None else compare(record.id, self._test)

    async def _ask_losses_again(self, runner: Runner, record: RunRecord) -> None:
        """Ask the cases again that the gate needs to know more about."""
        if runner.stopped or self.job.options.gate != "regression" or not self.lineup.is_live:
            return
        found = self._compare(record)
        if found is None or found.is_worse:  # then the gate fails whatever they would show
            return
        files = [header.file for header in record.suites]
        known = open_losses(found, self.plan, files.__getitem__, self._confirm_times)
        losses = [loss for loss in known if not loss.is_settled(runner.reasks_of(loss.planned))]
        room = MAX_REASKED - self.reasked
        chosen, rest = losses[:room], losses[room:]
        self.reasked += len(chosen)
        if chosen and not runner.gave_up:
            left = [(loss, loss.times - len(runner.reasks_of(loss.planned))) for loss in chosen]
            self.job.listen(Notice(self._announce(left, record)))
        if chosen:
            await runner.ask_again(chosen)
        for loss in rest:
            why = f"at most {MAX_REASKED} cases are"
            await runner.skip_reask(loss.planned, loss.repeats[0], why)
        if runner.gave_up and losses:
            self._add_note(f"not every re-ask was made: {runner.gave_up}")
        elif rest:
            self._add_note(f"at most {MAX_REASKED} lost cases are asked again; there were more")

    def _announce(self, left: Sequence[tuple[Loss, int]], record: RunRecord) -> str:
        """How many re-asks there will be, of those that each loss has left, and their cost."""
        facts = self.job.store.facts
        cost = expected_cost(left, lambda position: facts(record.id, only(position)))
        times = sum(times for _, times in left)
        trials = f"{'' if times == 1 else 'up to '}{count(times, 'trial')}"
        text = f"asking {count(len(left), 'case')} again that passed in the baseline: {trials}"
        return f"{text}, at most about ${cost:.2g}" if cost else text

    def _confirm_times(self, planned: Planned) -> int:
        """How often a lost case is asked again."""
        target = self.lineup.target_of(planned)
        if target.recorded:
            return 0
        chosen = (self.job.options.confirm, target.confirm, CONFIRM)
        return next(times for times in chosen if times is not None)

    def _without_unselected(self, comparison: Comparison | None) -> Comparison | None:
        """Cases that still exist, but were not selected this time, do not count as removed."""
        if comparison is None or not comparison.removed:
            return comparison
        gone = set(comparison.removed)
        for index, suite in enumerate(self.job.suites):
            if index in self.plan.streams and self.plan.is_unfiltered:
                continue  # all of its cases were run: do not read the file again
            file = project_path(suite.file, self.job.settings)
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
        job = self.job
        for remark in self.lineup.remarks():
            self._add_note(remark)
        if runner.trials.asked_otherwise or (job.resumed and self.lineup.is_live):
            self.notes += asking_notes(job.store.trials(record.id))
        if runner.stopped and job.brake.note:
            self.notes.append(job.brake.note)
        if runner.unpriced:
            self.notes.append(runner.unpriced)
        if runner.decided:
            self.notes.append(f"stopped early: {runner.decided}")
        ended = timestamp(self._now())
        record = replace(job.store.run(record.id), status=status, finished_at=ended)
        result = job.results.finish(
            Ending(
                job=job,
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
        job.store.finish(record.id, status, ended, result.record.summary or {})
        return result

    def _faults_of_targets(self, record: RunRecord) -> list[str]:
        faults = self.lineup.faults(self.plan, lambda: self.job.store.trials(record.id))
        return list(map(redacted, faults))

    def _judge(self, target: str | None, model: str | None) -> Target:
        return RedactedJudge(self.roster.judge(target, model), self.redactor)

    def _add_note(self, note: str) -> None:
        """Add a note and report it at once, unless it is there already."""
        if note not in self.notes:
            self.notes.append(note)
            self.job.listen(Notice(note))
