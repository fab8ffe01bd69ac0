"""All trials of a plan: lanes that ask at the same time, the journal, and when to stop.

A trial is on disk before it is reported. What the run does not ask any more, because it has
given up, is recorded as errored and not final, so that a resumed run asks it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from assay.engine.gating import rubric_refusals
from assay.engine.plan import TIERS, Plan, Planned, Trial
from assay.engine.trial import Finished, Trials
from assay.model.case import Tier
from assay.model.events import Listener, Notice, TrialFinished
from assay.model.options import RunOptions
from assay.model.run import RunStatus, TrialRecord
from assay.ports import Store

#: So many trials in a row that could not connect or timed out end the asking.
MOST_UNREACHABLE = 20
#: How long trials in flight may go on after the first Ctrl-C, in seconds.
GRACE_SECONDS = 10.0
#: How many saves of trials that were not asked wait for the disk at once.
_UNDER_WAY = 256


class Brake:
    """Stops a run from outside, from any thread: once gently, twice at once."""

    def __init__(self) -> None:
        self.presses = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pressed: Callable[[], None] = lambda: None

    def press(self) -> None:
        self.presses += 1
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pressed)

    def connect(self, pressed: Callable[[], None]) -> None:
        """Call this in the running loop whenever the brake is pressed, and if it was already."""
        self._loop, self._pressed = asyncio.get_running_loop(), pressed
        if self.presses:
            pressed()


@dataclass(slots=True)
class Tally:
    """What decides whether it makes sense to go on asking."""

    options: RunOptions
    cost_usd: float = 0.0
    failures: int = 0
    unreachable: dict[str, int] = field(default_factory=dict)

    def count(self, finished: Finished, target: str) -> None:
        record = finished.record
        self.cost_usd += (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)
        self.failures += record.outcome == "failed"
        in_a_row = self.unreachable.get(target, 0) + 1 if finished.unreachable else 0
        self.unreachable[target] = in_a_row

    def reason_to_stop(self) -> str:
        """Why nothing more is asked; empty when all is well."""
        budget, most = self.options.budget_usd, self.options.max_failures
        if budget is not None and self.cost_usd >= budget:
            return f"the budget of ${budget:g} is spent"
        if most is not None and self.failures >= most:
            return f"{self.failures} failed, and the run was to stop then"
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
        store: Store,
        listen: Listener,
        *,
        workers: int,
        live: bool,
        brake: Brake | None = None,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._plan, self.trials, self._store, self._listen = plan, trials, store, listen
        self._workers, self._live, self._grace = workers, live, grace
        self._brake = brake or Brake()
        self._tally = Tally(plan.options)
        self._lanes: list[asyncio.Task[None]] = []
        self._stopped = False
        #: Why the run gave up; empty when it did not.
        self.gave_up = ""

    async def run(self) -> RunStatus:
        """Every trial that the store does not have; how it ended."""
        self._brake.connect(self._braked)
        *deterministic, judged = TIERS
        await self._phase(self._open(deterministic), self._one)
        refusals = rubric_refusals(self._plan, self._store, self.trials.run_id)
        await self._phase(self._open([judged]), lambda trial: self._gated(trial, refusals))
        if self._stopped:
            return "interrupted"
        return "interrupted" if self.gave_up else "finished"

    async def confirm(self, planned: Planned, first: int, times: int) -> bool:
        """Ask a case again; did it fail every time? Each attempt is recorded."""
        for repeat in range(first, first + times):
            if self._stopped or self.gave_up:
                return True
            finished = await self.trials.run(planned, repeat, confirms=True)
            await self._keep(finished, planned)
            if finished.record.outcome == "passed":
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
                if self._stopped or self.gave_up:
                    rest.append(trial)
                    return
                await work(trial)

        rest: list[Trial] = []
        async with asyncio.TaskGroup() as group:
            self._lanes = [group.create_task(lane()) for _ in range(self._workers)]
        if self.gave_up and not self._stopped:
            await self._leave(rest, trials)

    async def _one(self, trial: Trial) -> None:
        finished = await self.trials.run(*trial)
        await self._keep(finished, trial.planned)

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
        """On disk first, then told."""
        record = finished.record
        saving = asyncio.wrap_future(self._store.save(record))
        # What was asked is kept, even if the wait for it is cancelled.
        await asyncio.shield(saving)
        self.tell(record, cached=finished.cached)
        if record.outcome != "skipped":
            self._tally.count(finished, self.trials.target_of(planned).name)
        if not self.gave_up and (reason := self._tally.reason_to_stop()):
            self.gave_up = reason
            self._listen(Notice(f"no more is asked: {reason}"))

    async def _leave(self, rest: list[Trial], trials: Iterator[Trial]) -> None:
        """Record what is not asked any more."""
        under_way: deque[Future[None]] = deque()
        reason = f"not asked: {self.gave_up}"

        def leave(trial: Trial) -> None:
            record = self.trials.unasked(*trial, "errored", reason, final=False)
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
        self._stopped = True
        if self._brake.presses > 1:
            self._cancel()
        else:
            self._listen(Notice(f"stopping: trials in flight have {self._grace:g} s to finish"))
            loop.call_later(self._grace, self._cancel)

    def _cancel(self) -> None:
        for lane in self._lanes:
            lane.cancel()
