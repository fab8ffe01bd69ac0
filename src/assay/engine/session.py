"""A run from its plan to its result: whoever is asked is found, all is asked, then compared."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import structs

from assay import calibrations, staleness
from assay.engine.discretion import DiscreetCache, DiscreetJudge
from assay.engine.early import Early
from assay.engine.gating import lonely_rubrics
from assay.engine.plan import TIERS, Done, Plan, Planned
from assay.engine.provenance import environment_of
from assay.engine.runner import Brake, Runner
from assay.engine.spool import Spool
from assay.engine.stream import Answers, ChunkGrader, StreamRun, Surroundings
from assay.engine.trial import Trials
from assay.errors import EvalFileErrors, UsageError
from assay.grading import Preparation
from assay.model.case import EvalCase, Suite
from assay.model.comparison import CaseOutcome, CaseRef, Comparison
from assay.model.evaluator import EvaluatorSpec
from assay.model.events import Listener, Notice, RunFinished, RunStarted
from assay.model.options import TIMEOUT_SECONDS, WORKERS, RunOptions
from assay.model.run import TEST_CASES, RunRecord, RunStatus, SuiteHeader, new_run_id
from assay.model.run_result import RunResult
from assay.model.target import RateLimits
from assay.ports import CaseStream, Resources, Store, Target
from assay.redaction import Redactor
from assay.registry import executors
from assay.results import (
    conclude,
    folder_shown,
    recorded_summary,
    result_of,
    results_folder,
    write_files,
)
from assay.retrying import Retrying, RetryPolicy
from assay.roster import Roster
from assay.settings import Settings
from assay.stats.sequential import Sequential


class Compare(Protocol):
    """Compares a run with the baseline that the options name.

    `confirmed` are the critical regressions that count; None says that all do. `sequential` is
    the test of a run that was to stop when it is decided.
    """

    def __call__(
        self,
        run_id: str,
        confirmed: frozenset[CaseRef] | None,
        sequential: Sequential | None = None,
    ) -> Comparison: ...


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, and with what.

    `resumed` is the run to go on with, and `origin` the one that cases or answers are taken from.
    """

    settings: Settings
    suites: Sequence[Suite]
    options: RunOptions
    store: Store
    paths: Sequence[str] = ()
    target: Target | None = None
    judge: Target | None = None
    defaults: tuple[EvaluatorSpec, ...] = ()
    sources: Mapping[str, Any] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    resumed: RunRecord | None = None
    wanted: Callable[[int, EvalCase], bool] = lambda suite, case: True
    compare: Compare | None = None
    base: Iterable[CaseOutcome] = ()
    listen: Listener = lambda event: None
    brake: Brake = field(default_factory=Brake)
    door: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def plan(self) -> Plan:
        return Plan(self.suites, self.options, self.defaults, self.wanted)

    @property
    def folder(self) -> Path:
        """Where result files are kept."""
        return results_folder(self.settings)


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
        job.settings, judge, policy=policy, limits=limits, seed=options.seed
    ) as roster:
        return await _Session(job, plan, roster).run()


class _Session:
    """One run with everybody that it asks."""

    def __init__(self, job: Job, plan: Plan, roster: Roster) -> None:
        self.job, self.plan, self.roster = job, plan, roster
        self.redactor = Redactor(job.secrets)
        self._targets: dict[str | None, Retrying] = {}
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
        self._preflight()
        record = job.resumed or self._record()
        with job.store.lease(record.id):
            if job.resumed is None:
                job.store.begin(record)
            else:
                check_unfinished(job.store.run(record.id))
            runner = self._runner(record)
            with job.brake.heeded():
                status = await self._asked(runner, record)
                comparison = await self._compared(runner, record, status)
            if runner.stopped or runner.gave_up:  # maybe only while it confirmed
                status, comparison = "interrupted", None
            return self._finished(record, runner, status, comparison)

    def _preflight(self) -> None:
        """All that can be wrong before the first question is told before it."""
        if any(suite.streamed for suite in self.job.suites):
            self._target_named(self.job.options.target)
            return
        for planned in self.plan:
            self.preparation.grader(planned.case)
            if planned.case.skip is None:
                self._target(planned)
        for target in self._targets.values():
            hook = getattr(target.target, "unused", None)
            if hook is not None and (lines := hook(p.case.id for p in self.plan)):
                self._unused(target.name, lines)

    def _unused(self, target: str, lines: int) -> None:
        noun = "line has" if lines == 1 else "lines have"
        self._tell(f"{target}: {lines:,} {noun} an id that no selected case has")

    def _record(self) -> RunRecord:
        job, now = self.job, self.job.now()
        names = sorted({target.name for target in self._targets.values()})
        environment = environment_of(job.settings.root)
        environment["settings"] = job.settings.recorded()
        if job.door:
            environment["door"] = job.door
        if uses := self.preparation.uses:
            ordered = sorted(uses.values(), key=lambda use: (use.evaluator, use.id))
            environment["judges"] = [use.to_dict() for use in ordered]
        return RunRecord(
            id=new_run_id(int(now.timestamp() * 1000), secrets.randbits),
            started_at=_iso(now),
            status="running",
            target=", ".join(names),
            plan=plan_of(job),
            options=self.redactor.json(job.options.shown()),
            environment=self.redactor.json(environment),
            suites=headers_of(job, self.plan, self._suite_target),
        )

    def _runner(self, record: RunRecord) -> Runner:
        job, options = self.job, self.job.options
        trials = Trials(
            record.id,
            [header.file for header in record.suites],
            self._target,
            self.preparation,
            self.redactor,
            self.cache,
            lambda planned: options.timeout_seconds or planned.case.timeout_seconds,
        )
        suggested = [suite.workers for suite in job.suites if suite.workers]
        return Runner(
            self.plan,
            trials,
            job.store,
            job.listen,
            workers=options.workers or max(suggested, default=WORKERS),
            live=self._live,
            brake=job.brake,
            early=self._early(record),
        )

    def _early(self, record: RunRecord) -> Early | None:
        """What stops the run as soon as its comparison is decided, when the options say so."""
        if self.job.options.stop_when is None:
            return None
        *first, last = TIERS
        order = self.plan.order(first) + self.plan.order([last])
        self.early = Early(self.job.base, order, self.plan.repeats_of)
        if self.job.resumed is not None:
            self.early.recall(self.job.store.facts(record.id))
        return self.early

    async def _asked(self, runner: Runner, record: RunRecord) -> RunStatus:
        job = self.job
        done = sum(1 for _ in job.store.finished(record.id)) if job.resumed else 0
        tiers = job.options.tier
        streamed = [
            index
            for index, suite in enumerate(job.suites)
            if suite.streamed and not (tiers and suite.tier not in tiers)
        ]
        planned = None if streamed else self.plan.planned
        job.listen(RunStarted(record.id, record.target, planned, done))
        for index in streamed:
            self._stream(index, record, runner)
        status = await runner.run()
        job.listen(RunFinished(status))
        return status

    def _stream(self, index: int, record: RunRecord, runner: Runner) -> None:
        """A suite that is checked while it is graded; if a line is wrong, there was no run."""
        job = self.job
        answers, stream = self._answers(), cast("CaseStream", job.suites[index].cases)
        done = Done(job.store.finished(record.id) if job.resumed else ())
        grader = ChunkGrader(index, stream, self.plan, runner.trials, answers, done)
        executor = executors.get("processes" if hasattr(os, "fork") else "local")()
        around = Surroundings(job.store, executor, runner.tell, lambda: job.brake.presses > 0)
        spool = None
        if job.resumed is None:
            spool = self.spools[index] = Spool(job.folder)
        run = StreamRun(grader, stream, answers, around, spool)
        try:
            run.run()
        except EvalFileErrors:
            job.store.delete(record.id)
            raise
        if job.brake.presses:
            return  # how many cases it has is not known yet
        record.suites[index] = structs.replace(record.suites[index], selected=run.cases)
        job.store.describe(record.id, record.suites)
        if run.unused and job.resumed is None:
            self._unused(self._targets[job.options.target].name, run.unused)

    def _answers(self) -> Answers:
        """The recorded answers, with their index made before any process is forked."""
        target = self._target_named(self.job.options.target)
        answers = cast("Answers", target.target)
        assert answers.records >= 0
        return answers

    async def _compared(
        self, runner: Runner, record: RunRecord, status: RunStatus
    ) -> Comparison | None:
        """What changed since the baseline; a live target is asked again about what is critical."""
        compare, times = self.job.compare, self.job.options.confirm
        if compare is None or status != "finished":
            return None
        test = None if self.early is None else self.early.test
        first = compare(record.id, None, test)
        if not (self._live and times and first.critical_regressions):
            return first
        confirmed: set[CaseRef] = set()
        refs = set(first.critical_regressions)
        for planned in self.plan:
            ref = CaseRef(record.suites[planned.suite].file, planned.case.id)
            if ref in refs:
                self.job.listen(Notice(f"asking {ref} again: it passed in the baseline"))
                if await runner.confirm(planned, planned.repeats, times):
                    confirmed.add(ref)
        self.confirmed = frozenset(confirmed)
        return compare(record.id, self.confirmed, test)

    def _finished(
        self,
        record: RunRecord,
        runner: Runner,
        status: RunStatus,
        comparison: Comparison | None,
    ) -> RunResult:
        job = self.job
        self._remark()
        if runner.decided:
            self.notes.append(f"stopped early: {runner.decided}")
        ended = _iso(job.now())
        record = structs.replace(job.store.run(record.id), status=status, finished_at=ended)
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
        test = None if self.early is None else self.early.test
        summary = recorded_summary(result, self.confirmed, test)
        result = replace(result, record=structs.replace(record, summary=summary))
        folder = folder_shown(write_files(_noted(result, spools), job.folder))
        # Last of all: a run that is called finished has its files, whenever we are killed.
        job.store.finish(record.id, status, ended, summary)
        return replace(result, folder=folder)

    def _remark(self) -> None:
        """What a target has to say about its answers once all are given."""
        for target in self._targets.values():
            hook = getattr(target.target, "remarks", None)
            for remark in hook() if hook is not None else ():
                self._tell(remark)

    @property
    def _live(self) -> bool:
        recorded = [getattr(t.target, "recorded", False) for t in self._targets.values()]
        return not all(recorded)

    def _target(self, planned: Planned) -> Retrying:
        """Who is asked: the flag wins over the case, the case over its suite and the project."""
        name = None
        if self.job.target is None:
            name = self.job.options.target or planned.case.target or self._only_target()
        return self._target_named(name)

    def _target_named(self, name: str | None) -> Retrying:
        if name not in self._targets:
            known = self.job.target
            self._targets[name] = (
                self.roster.adopt(known) if known is not None else self.roster.target(str(name))
            )
        return self._targets[name]

    def _only_target(self) -> str:
        targets = self.job.settings.config.targets
        if len(targets) == 1:
            return targets[0].name
        known = ", ".join(target.name for target in targets)
        hint = f"known are {known}" if known else "for example --target python:my_agent:answer"
        raise UsageError(f"no target is named: give --target ({hint})")

    def _suite_target(self, index: int) -> str:
        suite = self.job.suites[index]
        if suite.streamed:
            return self._target_named(self.job.options.target).name
        planned = next((case for case in suite.cases), None)
        if planned is None or planned.skip is not None:
            return ""
        return self._target(Planned(0, index, planned, 1)).name

    def _judge(self, target: str | None, model: str | None) -> Target:
        return DiscreetJudge(self.roster.judge(target, model), self.redactor)

    def _tell(self, note: str) -> None:
        self.notes.append(note)
        self.job.listen(Notice(note))


def _noted(result: RunResult, spools: Mapping[int, Spool]) -> RunResult:
    """The result with its cases as they were noted, where they were."""
    suites = list(result.suites)
    for index, spool in spools.items():
        suites[index] = replace(suites[index], entries=spool.entries, comparability=spool.keys)
    return replace(result, suites=tuple(suites))


def plan_of(job: Job) -> dict[str, Any]:
    """What a resumed run must share; it is stored, and a target may have a key in its address."""
    plan = {"paths": list(job.paths), **job.options.plan(), **job.origin}
    redacted: dict[str, Any] = Redactor(job.secrets).json(plan)
    return redacted


def headers_of(
    job: Job, plan: Plan, target_of: Callable[[int], str] = lambda index: ""
) -> list[SuiteHeader]:
    """What is known of each suite before the first question."""
    registry = staleness.load_registry(job.settings)
    lonely = lonely_rubrics(plan)
    headers = []
    for index, suite in enumerate(plan.suites):
        notes = ["run without the deterministic cases of its tool"] if index in lonely else []
        headers.append(
            SuiteHeader(
                name=suite.name,
                file=project_path(suite.file, job.settings),
                tier=suite.tier,
                tool_name=suite.tool_name,
                target=target_of(index),
                metadata=staleness.suite_metadata(suite, registry),
                staleness_warnings=staleness.warnings(suite, registry),
                selected=None if suite.streamed else plan.selected[index],
                notes=notes,
            )
        )
    return headers


def project_path(file: str, settings: Settings) -> str:
    """A path as results name it: relative to the project root when it is below it."""
    if file.startswith(TEST_CASES):
        return TEST_CASES
    path = Path(file).absolute() if file else Path()
    return (
        path.relative_to(settings.root).as_posix() if path.is_relative_to(settings.root) else file
    )


def check_unfinished(record: RunRecord) -> None:
    if record.status == "finished":
        raise UsageError(f"the run {record.id} is finished: there is nothing to resume")


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
