"""All trials of a plan: lanes that ask at the same time, and when to stop.

A trial is on disk before it is reported; whether to go on is decided as soon as it is graded. What
the run does not ask any more, because it has given up, is recorded as errored and not final, so
that a resumed run asks it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import msgspec

from assay.engine.early import Early
from assay.engine.gating import rubric_refusals
from assay.engine.job import Job
from assay.engine.journal import Journal
from assay.engine.plan import TIERS, Plan, Planned, Trial
from assay.engine.trial import Finished, Trials
from assay.model.case import Tier
from assay.model.events import Notice, TrialFinished
from assay.model.options import RunOptions
from assay.model.result import Outcome
from assay.model.run import RunStatus, TrialFacts, TrialRecord, only
from assay.model.score import TOLERANCE

#: So many trials in a row that could not connect or timed out end the asking.
MOST_UNREACHABLE = 20
#: How long trials in flight may go on after the first Ctrl-C, in seconds.
GRACE_SECONDS = 10.0
#: After so many seconds without any answer it is told who is waited for; then less and less often.
SILENCE_SECONDS = 30.0
#: How many of them are named.
_MOST_NAMED = 3
#: How many saves of trials that were not asked wait for the disk at once.
_UNDER_WAY = 256
#: So many lanes begin together, all others one after the other: while they connect, the first
#: questions are out already, and answers do not come back all at once for ever after.
_BEGIN_TOGETHER = 10


class Tally(msgspec.Struct):
    """What decides whether it makes sense to go on asking."""

    options: RunOptions
    cost_usd: float = 0.0
    failures: int = 0
    failed_trials: dict[int, int] = {}
    unreachable: dict[str, int] = {}

    @property
    def has_limits(self) -> bool:
        """Is there a limit that goes back to the beginning of the run?"""
        return self.options.budget_usd is not None or self.options.max_failures is not None

    def count(self, trial: TrialRecord | TrialFacts, repeats: int) -> None:
        self.cost_usd += (trial.cost_usd or 0.0) + (trial.judge_cost_usd or 0.0)
        if trial.outcome != "failed" or trial.confirms:
            return
        known = self.failed_trials
        known[trial.position] = failed = known.get(trial.position, 0) + 1
        # The case fails with the first trial after which the rest cannot make up for it.
        needed = trial.min_pass_rate * repeats - TOLERANCE
        self.failures += repeats - failed < needed <= repeats - failed + 1

    def reached(self, target: str, unreachable: bool) -> None:
        """Could the target be reached this time?"""
        self.unreachable[target] = self.unreachable.get(target, 0) + 1 if unreachable else 0

    def reason_to_stop(self) -> str:
        """Why nothing more is asked; empty when all is well."""
        budget, most = self.options.budget_usd, self.options.max_failures
        if budget is not None and self.cost_usd >= budget:
            return f"the budget of ${budget:g} is spent"
        if most is not None and self.failures >= most:
            cases = "1 case" if self.failures == 1 else f"{self.failures} cases"
            return f"{cases} failed, and max-failures is {most}"
        for target, count in self.unreachable.items():
            if count >= MOST_UNREACHABLE:
                return f"{target} could not be reached {count} times in a row"
        return ""


class Runner:
    """Runs what is left of a plan. `live` is false when the answers were recorded before."""

    def __init__(
        self,
        plan: Plan,
        trials: Trials,
        job: Job,
        early: Early | None,
        *,
        workers: int,
        live: bool,
    ) -> None:
        self._plan, self.trials, self._workers, self._live = plan, trials, workers, live
        self._store, self._listen, self._brake = job.store, job.listen, job.brake
        self._tally = Tally(plan.options)
        self._lanes: list[asyncio.Task[None]] = []
        #: The trials that are under way, and when the last one came back.
        self._awaited: dict[tuple[int, int], Planned] = {}
        self._heard = 0.0
        #: Made anew for each group of lanes.
        self._journal: Journal
        #: Was the brake pressed?
        self.stopped = False
        #: How many trials were not asked, as the run had given up.
        self._left = 0
        #: Why the run gave up; empty when it did not.
        self.gave_up = ""
        #: Why the budget cannot hold; empty when it can, or there is none.
        self.unpriced = ""
        self._early = early
        #: Why the rest need not be asked; empty when it must be.
        self.decided = "" if early is None else early.reason

    async def run(self) -> RunStatus:
        """Every trial that the store does not have; how it ended."""
        self._brake.connect(self._braked)
        self._recall()
        *deterministic, judged = TIERS
        await self._phase(self._open(deterministic), self._one)
        refusals = rubric_refusals(self._plan, self._store, self.trials.run_id)
        await self._phase(self._open([judged]), lambda trial: self._gated(trial, refusals))
        if not self._left:
            self.gave_up = ""  # nothing was left to be asked
        return "interrupted" if self.stopped or self.gave_up else "finished"

    def _recall(self) -> None:
        """Count what an earlier process of this run has spent, and what failed there."""
        if not self._tally.has_limits:
            return
        for trial in self._store.facts(self.trials.run_id):
            if trial.outcome != "skipped" and trial.final:
                self._tally.count(trial, self._plan.at(trial.position).repeats)
        self._reconsider()

    async def confirm(self, planned: Planned, times: int) -> bool:
        """Ask a case again; did it fail every time? Each attempt is recorded, and made once."""
        known = self._store.facts(self.trials.run_id, only(planned.position))
        outcomes = {
            trial.repeat: trial.outcome for trial in known if trial.confirms and trial.final
        }

        async def ask(repeat: int) -> None:
            finished = await self._answer(planned, repeat, confirms=True)
            await self._keep(finished, planned)
            outcomes[repeat] = finished.record.outcome

        for repeat in range(planned.repeats, planned.repeats + times):
            if repeat not in outcomes and not (self.stopped or self.gave_up):
                await self._together([ask(repeat)])
            if outcomes.get(repeat) == "passed":
                return False
        return True

    def _open(self, tiers: list[Tier]) -> Iterator[Trial]:
        done = self._store.finished(self.trials.run_id)
        return self._plan.trials(tiers, done, shuffled=self._live)

    async def _phase(
        self, trials: Iterator[Trial], work: Callable[[Trial], Awaitable[None]]
    ) -> None:
        async def lane() -> None:
            for trial in trials:
                if self.stopped or self.gave_up:
                    rest.append(trial)
                    return
                # The gate watches critical cases one by one: they are asked, decided or not.
                if self.decided and not trial.planned.case.critical:
                    rest.append(trial)
                else:
                    await work(trial)

        rest: list[Trial] = []
        await self._together(lane() for _ in range(self._workers))
        if (self.gave_up or self.decided) and not self.stopped:
            await self._leave(rest, trials)

    async def _together(self, lanes: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Lanes until they end and all that they asked is saved; one's fault ends them all."""
        watch = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as group:
                # A lane by itself asks on when its trial is saved; with others, each may be ahead.
                most = self._workers - 1
                self._journal = Journal(self._store, self._saved, group.create_task, most)
                self._lanes = []
                for number, lane in enumerate(lanes, 1):
                    self._lanes.append(group.create_task(lane))
                    if number >= _BEGIN_TOGETHER:
                        await asyncio.sleep(0)
        except BaseExceptionGroup as group_of_faults:
            # Several may meet the same fault, such as a full disk: one of them tells enough.
            raise _first(group_of_faults) from None
        finally:
            watch.cancel()
            # Both know us, and the group of lanes knows the result of the run that we are part of:
            # a store that nobody holds any more would be closed when garbage is looked for.
            del self._journal
            self._lanes = []

    async def _one(self, trial: Trial) -> None:
        finished = await self._answer(*trial)
        await self._keep(finished, trial.planned)

    async def _answer(self, planned: Planned, repeat: int, *, confirms: bool = False) -> Finished:
        self._awaited[planned.position, repeat] = planned
        try:
            return await self.trials.run(planned, repeat, confirms=confirms)
        finally:
            del self._awaited[planned.position, repeat]
            self._heard = asyncio.get_running_loop().time()

    async def _watch(self) -> None:
        """Tell who is waited for while nothing comes back."""
        clock = asyncio.get_running_loop().time
        self._heard, patience = clock(), SILENCE_SECONDS
        while True:
            silent = clock() - self._heard
            if silent < SILENCE_SECONDS:
                patience = SILENCE_SECONDS
            elif silent >= patience:
                patience = 2 * silent
                if self._awaited:
                    told = f"no answer for {silent:.0f} s: waiting for {self._named()}"
                    self._listen(Notice(told))
            await asyncio.sleep(patience - silent)

    def _named(self) -> str:
        """Those that are under way, the oldest first."""
        files, awaited = self.trials.files, list(self._awaited.values())
        named = [f"{files[p.suite]}: {p.case.id}" for p in awaited[:_MOST_NAMED]]
        more = len(awaited) - len(named)
        return ", ".join(named) + (f" and {more:,} more" if more else "")

    async def _gated(self, trial: Trial, refusals: dict[str, str]) -> None:
        """A rubric case, unless the deterministic cases of its tool did not pass."""
        planned, repeat = trial
        refusal = refusals.get(self._plan.suites[planned.suite].tool_name)
        if refusal is None or planned.case.skip is not None:
            await self._one(trial)
            return
        record = self.trials.unasked(planned, repeat, "skipped", refusal, final=True)
        await self._keep(Finished(record), planned)

    async def _keep(self, finished: Finished, planned: Planned) -> None:
        """Counted at once, told when it is on disk; the lane may ask on before that."""
        record = finished.record
        self._look(record)
        if record.outcome != "skipped":
            self._tally.count(record, planned.repeats)
            target = self.trials.target_of(planned)
            self._tally.reached(target.name, finished.unreachable)
            self._reconsider()
            if record.outcome != "errored" and record.cost_usd is None and not target.recorded:
                self._miss_cost(target.name)
        await self._journal.keep(finished)

    def _saved(self, finished: Finished) -> None:
        self.tell(finished.record, cached=finished.cached)

    def _reconsider(self) -> None:
        """Does it make sense to go on asking?"""
        if not self.gave_up and (reason := self._tally.reason_to_stop()):
            self.gave_up = reason
            self._listen(Notice(f"stopped asking: {reason}"))

    def _miss_cost(self, target: str) -> None:
        """Tell once, while there is time to stop, that a budget does not see what is spent."""
        if self._plan.options.budget_usd is not None and not self.unpriced:
            self.unpriced = f"the budget does not cover {target}: its answers do not report a cost"
            self._listen(Notice(self.unpriced))

    def _look(self, record: TrialRecord) -> None:
        """Is the comparison with the baseline decided?"""
        if self._early is not None and not self.decided:
            self.decided = self._early.see(record)
            if self.decided:
                self._listen(Notice(f"stopped asking: {self.decided}"))

    async def _leave(self, rest: list[Trial], trials: Iterator[Trial]) -> None:
        """Record what is not asked any more; for good, when that is not needed to decide."""
        under_way: deque[Future[None]] = deque()
        reason = f"not asked: {self.gave_up or self.decided}"
        outcome: Outcome = "errored" if self.gave_up else "skipped"
        final = not self.gave_up

        def leave(trial: Trial) -> None:
            skip = trial.planned.case.skip
            if skip is None:
                self._left += not final
                record = self.trials.unasked(*trial, outcome, reason, final=final)
            else:
                record = self.trials.unasked(*trial, "skipped", skip, final=True)
            under_way.append(self._store.save(record))
            self.tell(record)

        for trial in rest:
            leave(trial)
        for trial in trials:
            leave(trial)
            if len(under_way) >= _UNDER_WAY:
                await asyncio.wrap_future(under_way.popleft())
        for saving in under_way:
            await asyncio.wrap_future(saving)

    def tell(self, record: TrialRecord, *, cached: bool = False) -> None:
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
            )
        )

    def _braked(self) -> None:
        """Take no new trials; after a while, or when pressed again, cancel those in flight."""
        loop = asyncio.get_running_loop()
        self.stopped = True
        if self._brake.presses > 1:
            self._cancel()
        else:
            self._listen(Notice(f"stopping: trials in flight have {GRACE_SECONDS:g} s to finish"))
            loop.call_later(GRACE_SECONDS, self._cancel)

    def _cancel(self) -> None:
        for lane in self._lanes:
            lane.cancel()


def _first(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    first = faults.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
