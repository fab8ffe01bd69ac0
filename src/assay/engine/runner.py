"""Runner: asks all trials of a plan in concurrent lanes, and decides when to stop.

A trial is on disk before it is reported; whether to continue is decided as soon as it is graded.
When the run gives up, the remaining trials are recorded as errored and not final, so that a
resumed run asks them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from assay.engine.in_step import Place
from assay.engine.live_pieces import RemoteTrials
from assay.engine.losses import LostCase
from assay.engine.plan import TIERS, Plan, PlannedCase, Trial
from assay.engine.rubric_gating import rubric_skip_reasons
from assay.engine.run_spec import RunSpec
from assay.engine.sequential_stop import SequentialStop
from assay.engine.trial import FinishedTrial, TrialRunner
from assay.engine.trial_writer import TrialWriter
from assay.errors import AssayError
from assay.model.case import Tier
from assay.model.events import Notice, TrialFinished
from assay.model.options import RunOptions
from assay.model.result import Outcome
from assay.model.run import RunStatus, TrialFacts, TrialRecord, only
from assay.model.score import TOLERANCE
from assay.text import count

#: The run gives up after this many trials in a row that could not connect or timed out.
MAX_UNREACHABLE = 20
#: How long trials in flight may continue after the first Ctrl-C.
GRACE_SECONDS = 10.0
#: After this long without any answer, the trials in flight are reported; then less and less often.
SILENCE_SECONDS = 30.0
#: How many of them are named.
_MAX_NAMED = 3
#: How many saves of unasked trials may be in progress at once.
_MAX_SAVES = 256
#: This many lanes start together, the others one by one: requests go out while later lanes still
#: connect, and answers do not keep arriving in bursts.
_START_TOGETHER = 10

#: Asks or skips a trial, and hands its record to the writer.
Work = Callable[[Trial], Awaitable[None]]


class Spending(msgspec.Struct):
    """What was spent so far, by all runs that share a budget."""

    usd: float = 0.0


class Tally(msgspec.Struct):
    """The counts that decide whether to continue."""

    options: RunOptions
    spending: Spending
    #: Have workers of other processes spent the budget?
    is_spent: bool = False
    failures: int = 0
    failed_trials: dict[int, int] = {}
    unreachable: dict[str, int] = {}

    @property
    def has_limits(self) -> bool:
        """Is there a limit that counts from the start of the run, across resumptions?"""
        return self.options.budget_usd is not None or self.options.max_failures is not None

    def count(self, trial: TrialRecord | TrialFacts, repeats: int) -> None:
        self.spending.usd += (trial.cost_usd or 0.0) + (trial.judge_cost_usd or 0.0)
        if trial.outcome != "failed" or trial.confirms:
            return
        failed = self.failed_trials.get(trial.position, 0) + 1
        self.failed_trials[trial.position] = failed
        # The case fails with the trial after which it can no longer reach its pass rate.
        needed = trial.min_pass_rate * repeats - TOLERANCE
        self.failures += repeats - failed < needed <= repeats - failed + 1

    def count_reachability(self, target: str, *, unreachable: bool) -> None:
        self.unreachable[target] = self.unreachable.get(target, 0) + 1 if unreachable else 0

    def reason_to_stop(self, *, confirming: bool = False) -> str:
        """Why nothing more is asked; empty if there is no reason.

        The limit of failures does not keep lost cases from being asked again.
        """
        budget, max_failures = self.options.budget_usd, self.options.max_failures
        if budget is not None and (self.is_spent or self.spending.usd >= budget):
            return f"the budget of ${budget:g} is spent"
        if max_failures is not None and self.failures >= max_failures and not confirming:
            return f"{count(self.failures, 'case')} failed, and max-failures is {max_failures}"
        for target, times in self.unreachable.items():
            if times >= MAX_UNREACHABLE:
                return f"{target} could not be reached {times} times in a row"
        return ""


class Runner:
    """Runs the remaining trials of a plan. `live` is false if all answers are recorded ones.

    Other runs may share the `spending`, and are kept in step by the `place`.
    """

    def __init__(
        self,
        plan: Plan,
        trials: TrialRunner,
        spec: RunSpec,
        sequential_stop: SequentialStop | None,
        *,
        workers: int,
        live: bool,
        spending: Spending,
        place: Place,
        remote: RemoteTrials | None = None,
    ) -> None:
        #: Asks the trials, if this process does not ask them itself.
        self._remote = remote
        self._plan, self.trials, self.workers, self._live = plan, trials, workers, live
        self._store, self._listen, self._cancellation = spec.store, spec.listen, spec.cancellation
        self._tally, self._place = Tally(plan.options, spending), place
        self._lanes: list[asyncio.Task[None]] = []
        #: By position and repeat.
        self._in_flight: dict[tuple[int, int], PlannedCase] = {}
        #: When the last answer came, by the clock of the event loop.
        self._last_answer = 0.0
        #: Each group of lanes has a new one.
        self._trial_writer: TrialWriter
        #: Was a cancellation requested?
        self.stopped = False
        #: How many trials were not asked because the run had given up.
        self._unasked = 0
        #: Why the run gave up; empty if it did not.
        self.gave_up = ""
        #: Why the budget cannot be enforced; empty if it can, or there is none.
        self.unpriced = ""
        self._sequential_stop = sequential_stop
        #: Why the comparison is decided, so that the rest need not be asked; empty if it is not.
        self.decided = "" if sequential_stop is None else sequential_stop.reason

    def restore(self) -> None:
        """Count the costs and failures of earlier processes of this run."""
        if not self._tally.has_limits:
            return
        for trial in self._store.facts(self.trials.run_id):
            if trial.outcome != "skipped" and trial.final:
                self._tally.count(trial, self._plan.at(trial.position).repeats)

    async def run(self, confirm: Callable[[], Awaitable[None]]) -> RunStatus:
        """Run every trial that is not in the store yet; returns how the run ended.

        `confirm` asks lost cases again: deterministic ones before the rubric cases, which depend
        on them.
        """
        self._cancellation.connect(self._on_cancellation)
        self._check_limits()
        *deterministic, rubric = TIERS
        await self._run_phase(self._remaining(deterministic), self._run_trial)
        if any(suite.tier == rubric for suite in self._plan.suites):
            await confirm()
            skip_reasons = rubric_skip_reasons(self._plan, self._store, self.trials.run_id)
            await self._run_phase(
                self._remaining([rubric]),
                lambda trial: self._run_gated(trial, skip_reasons),
                lambda trial: self._plan.suites[trial.planned.suite].tool_name in skip_reasons,
            )
        await confirm()
        if not self._unasked:
            self.gave_up = ""  # it made no difference
        return "interrupted" if self.stopped or self.gave_up else "finished"

    async def ask_again(self, losses: Sequence[LostCase]) -> None:
        """Ask lost cases again: in each round, the next time every one that is not settled.

        Re-asks that are not made because the run gave up or was stopped are recorded as errored, so
        that the loss is not confirmed. A resumed run makes them.
        """
        asked: set[tuple[int, int]] = set()
        while left := [trials for loss in losses if (trials := self._reasks_left(loss, asked))]:
            if self._is_over(confirming=True):
                for trial in chain.from_iterable(left):
                    await self.skip_reask(*trial, self.gave_up or "the run was stopped")
                return
            first = [trials[0] for trials in left]
            asked.update((trial.planned.position, trial.repeat) for trial in first)
            rest, unasked = iter(first), list[Trial]()
            work = partial(self._run_trial, confirms=True)
            await self._run_lanes(self._lanes_of(rest, work, unasked, confirms=True))
            if self._remote is not None:
                unasked += self._remote.left
            for trial in chain(unasked, rest):
                await self.skip_reask(*trial, self.gave_up or "the run was stopped")

    def _reasks_left(self, loss: LostCase, asked: Collection[tuple[int, int]]) -> list[Trial]:
        """The re-asks of a lost case that were not made and are not `asked`; none if settled."""
        planned, made = loss.planned, self.reasks_of(loss.planned)
        left = [Trial(planned, repeat) for repeat in loss.repeats if repeat not in made]
        if loss.is_settled(made):
            return []
        return [trial for trial in left if (planned.position, trial.repeat) not in asked]

    async def _ask_remotely(
        self, remote: RemoteTrials, trials: Iterator[Trial], *, confirms: bool = False
    ) -> None:
        """Count the trials that workers have asked and saved."""
        is_over = partial(self._is_over, confirming=confirms)
        spent_usd = partial(getattr, self._tally.spending, "usd")
        asked = remote.ask(trials, is_over, spent_usd, confirms=confirms)
        async with aclosing(asked) as saved:
            async for planned, finished in saved:
                self._last_answer = asyncio.get_running_loop().time()
                self._count(finished, planned)
                self._saved(finished)
        self.trials.asked_otherwise |= remote.asked_otherwise
        self._tally.is_spent = remote.is_spent
        self._check_limits(confirming=confirms)

    def reasks_of(self, planned: PlannedCase) -> dict[int, Outcome]:
        """The outcomes of the re-asks that were made already, by repeat."""
        known = self._store.facts(self.trials.run_id, only(planned.position))
        return {trial.repeat: trial.outcome for trial in known if trial.confirms and trial.final}

    async def skip_reask(self, planned: PlannedCase, repeat: int, why: str) -> None:
        """Record that a case is not asked again."""
        record = self.trials.unasked_record(
            planned, repeat, "errored", f"not asked again: {why}", final=False, confirms=True
        )
        await asyncio.wrap_future(self._store.save(record))

    def _remaining(self, tiers: list[Tier]) -> Iterator[Trial]:
        done = self._store.finished(self.trials.run_id)
        return self._plan.trials(tiers, done, shuffled=self._live)

    async def _run_phase(
        self,
        trials: Iterator[Trial],
        work: Work,
        skips: Callable[[Trial], bool] = lambda trial: False,
    ) -> None:
        """Do the work on trials in lanes, or let workers ask all but those that it `skips`."""

        def wanted() -> Iterator[Trial]:
            for trial in trials:
                # The gate checks every critical case: they are asked even if all is decided.
                if self.decided and not trial.planned.case.critical:
                    unasked.append(trial)
                elif self._remote is not None and skips(trial):
                    skipped.append(trial)
                else:
                    yield trial

        unasked: list[Trial] = []
        skipped: list[Trial] = []
        await self._run_lanes(self._lanes_of(wanted(), work, unasked))
        if self._remote is not None:
            unasked += self._remote.left
            await self._run_lanes([self._lane(iter(skipped), work, unasked)])
        if (self.gave_up or self.decided) and not self.stopped:
            await self._record_unasked(unasked, trials)

    def _lanes_of(
        self, trials: Iterator[Trial], work: Work, unasked: list[Trial], *, confirms: bool = False
    ) -> list[Coroutine[Any, Any, None]]:
        """Lanes that do the work on trials, or one that lets workers ask them."""
        if self._remote is not None:
            return [self._ask_remotely(self._remote, trials, confirms=confirms)]
        return [self._lane(trials, work, unasked, confirms=confirms) for _ in range(self.workers)]

    async def _lane(
        self, trials: Iterator[Trial], work: Work, unasked: list[Trial], *, confirms: bool = False
    ) -> None:
        """Do the work on one trial after the other; one that was taken too late is `unasked`."""
        for trial in trials:
            if not confirms:
                await self._place.turn()
            if self._is_over(confirming=confirms):
                unasked.append(trial)
                return
            await work(trial)

    async def _run_lanes(self, lanes: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run lanes until all are done and their trials saved; an error of one ends all."""
        watcher = asyncio.create_task(self._watch_silence())
        try:
            async with asyncio.TaskGroup() as group:
                # A single lane waits for each save; several may each be one trial ahead.
                max_unsaved = len(lanes) - 1
                self._trial_writer = TrialWriter(
                    self._store, self._saved, group.create_task, max_unsaved
                )
                self._lanes = []
                for number, lane in enumerate(lanes, 1):
                    self._lanes.append(group.create_task(lane))
                    if number >= _START_TOGETHER:
                        await asyncio.sleep(0)
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        finally:
            watcher.cancel()
            # Break reference cycles: both refer to this runner, and through the task group to the
            # result of the run. Else a dropped store would be closed only by the cyclic collector.
            del self._trial_writer
            self._lanes = []

    async def _run_trial(self, trial: Trial, *, confirms: bool = False) -> None:
        planned, repeat = trial
        self._in_flight[planned.position, repeat] = planned
        try:
            finished = await self.trials.run(planned, repeat, confirms=confirms)
        finally:
            del self._in_flight[planned.position, repeat]
            self._last_answer = asyncio.get_running_loop().time()
        await self._finish(finished, planned)

    async def _watch_silence(self) -> None:
        """Report the trials in flight when no answer comes for a while."""
        clock = asyncio.get_running_loop().time
        self._last_answer, patience = clock(), SILENCE_SECONDS
        while True:
            silent = clock() - self._last_answer
            if silent < SILENCE_SECONDS:
                patience = SILENCE_SECONDS
            elif silent >= patience:
                patience = 2 * silent
                if self._in_flight:
                    notice = f"no answer for {silent:.0f} s: waiting for {self._names_in_flight()}"
                    self._listen(Notice(notice))
            await asyncio.sleep(patience - silent)

    def _names_in_flight(self) -> str:
        """The trials in flight, oldest first."""
        files, waiting = self.trials.files, list(self._in_flight.values())
        named = [f"{files[p.suite]}: {p.case.id}" for p in waiting[:_MAX_NAMED]]
        more = len(waiting) - len(named)
        return ", ".join(named) + (f" and {more:,} more" if more else "")

    async def _run_gated(self, trial: Trial, skip_reasons: dict[str, str]) -> None:
        """Run a rubric trial, unless the deterministic cases of its tool did not pass."""
        planned, repeat = trial
        skip_reason = skip_reasons.get(self._plan.suites[planned.suite].tool_name)
        if skip_reason is None or planned.case.skip is not None:
            await self._run_trial(trial)
            return
        record = self.trials.unasked_record(planned, repeat, "skipped", skip_reason, final=True)
        await self._finish(FinishedTrial(record), planned)

    async def _finish(self, finished: FinishedTrial, planned: PlannedCase) -> None:
        """Count a trial and hand it to the writer, which reports it once it is saved."""
        self._count(finished, planned)
        await self._trial_writer.add(finished)

    def _count(self, finished: FinishedTrial, planned: PlannedCase) -> None:
        record = finished.record
        self._check_decided(record)
        if record.outcome != "skipped":
            self._tally.count(record, planned.repeats)
            target = self.trials.target_of(planned)
            self._tally.count_reachability(target.name, unreachable=finished.unreachable)
            self._check_limits(confirming=record.confirms)
            if record.outcome != "errored" and record.cost_usd is None and not target.recorded:
                self._warn_unpriced(target.name)

    def _saved(self, finished: FinishedTrial) -> None:
        self.report(finished.record, cached=finished.cached)

    def _is_over(self, *, confirming: bool = False) -> bool:
        """Is nothing more to be asked? Another run may have spent the rest of the budget."""
        self._check_limits(confirming=confirming)
        return self.stopped or bool(self.gave_up)

    def _check_limits(self, *, confirming: bool = False) -> None:
        """Give up if the tally says so."""
        reason = "" if self.gave_up else self._tally.reason_to_stop(confirming=confirming)
        if reason:
            self.gave_up = reason
            self._place.leave()
            self._stop_workers()
            self._listen(Notice(f"stopped asking: {reason}"))

    def _warn_unpriced(self, target: str) -> None:
        """Warn once, early enough to stop the run, that the budget cannot be enforced."""
        if self._plan.options.budget_usd is not None and not self.unpriced:
            self.unpriced = f"the budget does not cover {target}: its answers do not report a cost"
            self._listen(Notice(self.unpriced))

    def _check_decided(self, record: TrialRecord) -> None:
        """Add a trial to the comparison with the baseline, and see whether that is decided."""
        if self._sequential_stop is not None and not self.decided:
            self.decided = self._sequential_stop.add(record)
            if self.decided:
                self._place.leave()
                self._listen(Notice(f"stopped asking: {self.decided}"))

    async def _record_unasked(self, taken: list[Trial], rest: Iterator[Trial]) -> None:
        """Record the trials that are not asked: those that lanes had taken, and all others.

        They are final when the run is decided, not when it gave up.
        """
        saves: deque[Future[None]] = deque()
        reason = f"not asked: {self.gave_up or self.decided}"
        outcome: Outcome = "errored" if self.gave_up else "skipped"
        final = not self.gave_up

        for trial in chain(taken, rest):
            skip = trial.planned.case.skip
            if skip is None:
                self._unasked += not final
                record = self.trials.unasked_record(*trial, outcome, reason, final=final)
            else:
                record = self.trials.unasked_record(*trial, "skipped", skip, final=True)
            saves.append(self._store.save(record))
            self.report(record)
            if len(saves) >= _MAX_SAVES:
                await asyncio.wrap_future(saves.popleft())
        for save in saves:
            await asyncio.wrap_future(save)

    def report(self, record: TrialRecord, *, cached: bool = False) -> None:
        self._listen(
            TrialFinished(
                record.position,
                record.repeat,
                record.suite,
                record.case_id,
                record.outcome,
                record.duration_ms,
                record.cost_usd,
                cached,
                record.confirms,
                None if self._sequential_stop is None else self._sequential_stop.test.e_value,
            )
        )

    def _on_cancellation(self) -> None:
        """Start no new trials; cancel those in flight after a grace period or a second request."""
        loop = asyncio.get_running_loop()
        if not self.stopped:
            self._stop_workers()
        self.stopped = True
        self._place.leave()
        if self._cancellation.requests > 1:
            self._cancel()
        else:
            text = f"stopping: trials in flight have {GRACE_SECONDS:g} s to finish"
            self._listen(Notice(text, of_group=True))
            loop.call_later(GRACE_SECONDS, self._cancel)

    def _stop_workers(self) -> None:
        if self._remote is not None:
            self._remote.stop(self.trials.run_id)

    def _cancel(self) -> None:
        for lane in self._lanes:
            lane.cancel()


def first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a task group: several tasks may fail for the same reason."""
    first = errors.exceptions[0]
    if isinstance(first, BaseExceptionGroup) and not isinstance(first, AssayError):
        return first_of(first)
    return first
