"""The runs that this server has under way, each in a thread of its own.

A run computes, waits for locks and reads files; the loop of the server must do none of that.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.comparison.outcomes import newest_first
from assay.engine.brake import Brake
from assay.errors import AssayError, NotInStore, RunHeld, StoreError, UsageError, cause_of
from assay.model.events import Event, RunStarted
from assay.model.run import CANCELLED, RunRecord, RunStatus
from assay.ports import Store
from assay.server.envelope import invalid
from assay.server.feed import Feed
from assay.server.result_pages import progress_before
from assay.service import history, runs
from assay.settings import Settings

log = logging.getLogger("assay.server")
#: The door of the runs of a server; only these are resumed by a server.
SERVE = "serve"
#: More runs than that at once would only be in each other's way.
MOST = 16
#: What a run says that the end of the server stopped: it is to go on with the next one.
STOPPED = "stopped with the server"
#: What a run says that somebody stopped for good.
WAS_CANCELLED = "it was cancelled"
#: How often a store that cannot be reached is tried again, in seconds.
RETRY_SECONDS = 2.0
#: How often it is looked for what other servers left behind or cancelled, in seconds.
WATCH_SECONDS = 5.0
#: So many of the newest runs are looked at then, beside those that others were at work on.
WATCHED = 100

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Job(msgspec.Struct):
    """A run under way. `begun` has its id once it is recorded, `run_id` for its own thread."""

    feed: Feed
    begun: asyncio.Future[str]
    ended: asyncio.Event
    brake: Brake = msgspec.field(default_factory=Brake)
    run_id: str = ""

    def cancel(self, times: int) -> None:
        """Stop it once more, unless it was stopped as often already; only in the server's loop."""
        if self.brake.presses < times:
            self.brake.press(WAS_CANCELLED)


class Jobs:
    """Starts runs and stops them; goes on with those that another server left behind."""

    def __init__(self, settings: Settings, store: Store, root: Path, now: Clock) -> None:
        self.settings, self.store, self.root, self._now = settings, store, root, now
        self._jobs: list[Job] = []
        self._ending = threading.Event()
        self._recovering: asyncio.Task[None] | None = None
        #: The runs that others left behind, each done once it goes on here, or not.
        self._left: dict[str, asyncio.Future[None]] = {}
        #: The runs that somebody was at work on when it was looked last.
        self._held: set[str] = set()

    async def start(self, paths: Sequence[str | Path], given: dict[str, Any]) -> str:
        """Start a run; its id, once the store knows of it."""
        if len(self._jobs) >= MOST:
            raise invalid(f"{MOST} runs are under way: wait for one to end, or cancel it")
        return await self._begin(self._order(cases=list(paths)), given)

    @property
    def under_way(self) -> int:
        """How many runs there are."""
        return len(self._jobs)

    @property
    def stopping(self) -> bool:
        """Is the server about to end?"""
        return self._ending.is_set()

    async def settled(self, run_id: str) -> Job | None:
        """The run, if it is under way here; one that was left behind is given time to go on."""
        if run_id in self._left:
            await asyncio.shield(self._left[run_id])
        return self.find(run_id)

    def find(self, run_id: str) -> Job | None:
        """The run, if it is under way here."""
        for job in self._jobs:
            if job.begun.done() and not job.begun.cancelled() and job.begun.result() == run_id:
                return job
        return None

    def stop(self) -> None:
        """Let all runs end soon: trials in flight have their grace, however often it is called."""
        self._ending.set()
        for job in self._jobs:
            if not job.brake.presses:
                job.brake.press(STOPPED)
            job.feed.close()

    async def cancel(self, job: Job | None, record: RunRecord) -> None:
        """Stop a run for good; that is recorded, for another server too that is at work on it."""
        times = record.environment.get(CANCELLED, 0) + 1
        known = record.environment | {CANCELLED: times}
        await asyncio.to_thread(self.store.describe, record.id, record.suites, known)
        if job is not None:
            job.cancel(times)

    async def give_up(self, run_id: str) -> bool:
        """End a run that nobody works on; False when somebody does."""
        find = partial(self.store.run, run_id)
        return await asyncio.to_thread(self._interrupted, find, WAS_CANCELLED)

    def hurry(self) -> None:
        """Let all runs end at once, without what is in flight."""
        for job in self._jobs:
            job.brake.press()

    async def end(self) -> None:
        """Wait until all runs have ended."""
        self.stop()
        if self._recovering is not None:
            self._recovering.cancel()
            await asyncio.wait([self._recovering])
        for job in list(self._jobs):
            await job.ended.wait()

    async def recover(self) -> None:
        """Find the runs that a server before left behind; they go on while others are served.

        So do those that another server leaves behind from now on.
        """
        self._note(await asyncio.to_thread(self._left_before))
        self._recovering = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await self._go_on()
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(StoreError):  # it is looked again
                await self._heed()
                self._note(await asyncio.to_thread(self._left_since))

    async def _heed(self) -> None:
        """Stop the runs here that were cancelled at another server, as often as they were."""
        for job in [job for job in self._jobs if job.run_id]:
            record = await asyncio.to_thread(self.store.run, job.run_id)
            job.cancel(record.environment.get(CANCELLED, 0))

    def _note(self, left: Iterable[str]) -> None:
        loop = asyncio.get_running_loop()
        self._left = {run_id: loop.create_future() for run_id in left}

    async def _go_on(self) -> None:
        try:
            for run_id in list(self._left):
                await self._go_on_with(run_id)
                self._left.pop(run_id).set_result(None)
        finally:  # also when the server ends before
            for waiting in self._left.values():
                waiting.cancel()

    async def _go_on_with(self, run_id: str) -> None:
        try:
            record = await asyncio.to_thread(self.store.run, run_id)
        except StoreError:  # somebody removed it, or it is found again
            return
        if self.stopping or self.find(run_id) is not None or not is_to_go_on(record):
            return
        reason = "the process that ran it was killed"
        if record.cancelled:
            reason = WAS_CANCELLED
        elif record.door == SERVE:
            try:
                await self._begin(self._order(resume=record.id), {})
                return
            except RunHeld:
                return  # another server goes on with it
            except Exception as error:  # whatever a project's own modules do
                reason = f"it could not be resumed: {error}"
        await asyncio.to_thread(self._interrupt, lambda: record, reason)

    def _interrupt(self, find: Callable[[], RunRecord], reason: str) -> bool:
        """Call a run interrupted as soon as the store can be reached, unless it is left alone."""
        while True:
            try:
                return self._interrupted(find, reason)
            except StoreError:
                if self._ending.wait(RETRY_SECONDS):  # the next server goes on with it
                    return False

    def _interrupted(self, find: Callable[[], RunRecord], reason: str) -> bool:
        try:
            record = find()
            done = history.interrupt(record, self.store, self._now(), reason)
        except NotInStore:  # somebody removed it
            return False
        if done:
            log.warning("the run %s is interrupted: %s", record.id, reason)
        return done

    def _left_before(self) -> list[str]:
        """The runs that nobody works on although they are to go on."""
        found = [record.id for record in newest_first(self.store) if is_to_go_on(record)]
        self._held = {run_id for run_id in found if self.store.held(run_id)}
        return [run_id for run_id in found if run_id not in self._held]

    def _left_since(self) -> set[str]:
        """The runs that somebody gave up since it was looked last; they may have ended well."""
        found = [record for record in self.store.runs(WATCHED) if is_to_go_on(record)]
        stopped = {record.id for record in found if record.status == "interrupted"}
        known = self._held | {record.id for record in found}
        before, self._held = self._held, {run_id for run_id in known if self.store.held(run_id)}
        return (before | stopped) - self._held

    def _order(self, **more: Any) -> runs.Order:
        # Forking beside the threads of a server could hang: files are not streamed here.
        return runs.Order(stream=False, targets=_targets(self.settings), **more)

    async def _begin(self, order: runs.Order, given: dict[str, Any]) -> str:
        loop = asyncio.get_running_loop()
        job = Job(Feed(loop, token_hex(4)), loop.create_future(), asyncio.Event())
        self._jobs.append(job)

        def listen(event: Event) -> None:
            if isinstance(event, RunStarted) and event.done:
                job.feed.recall(progress_before(self.store, event.run_id))
            job.feed.push(event)
            if isinstance(event, RunStarted):
                job.run_id = event.run_id
                loop.call_soon_threadsafe(job.begun.set_result, event.run_id)

        def work() -> None:
            door = runs.Door(listen, job.brake, SERVE)
            result = self._carried_out(job, replace(order, door=door), given)
            loop.call_soon_threadsafe(self._ended, job, result)

        threading.Thread(target=work, name="assay-run", daemon=True).start()
        # Whoever asked for the run may hang up; it goes on all the same.
        return await asyncio.shield(job.begun)

    def _carried_out(
        self, job: Job, order: runs.Order, given: dict[str, Any]
    ) -> RunStatus | BaseException | None:
        """How the run ended, or why it did not begin; None when others know better."""
        try:
            done = asyncio.run(runs.carry_out_in(self.settings, self.store, order, given))
            return done.record.status
        except BaseException as error:  # it is told to whoever waits, or noted
            run_id = job.run_id
            if not run_id:
                return error
            log.error("the run %s failed", run_id, exc_info=error)
            reason = _reason(error)
        failed = self._interrupt(lambda: self.store.run(run_id), f"it failed: {reason}")
        return "interrupted" if failed else None

    def _ended(self, job: Job, result: RunStatus | BaseException | None) -> None:
        self._jobs.remove(job)
        if isinstance(result, Exception):
            job.begun.set_exception(result)
        elif isinstance(result, BaseException):  # it must not end the server as well
            job.begun.set_exception(UsageError(f"it could not begin: {cause_of(result)}"))
        else:
            job.feed.close(result)
        job.ended.set()


def _reason(error: BaseException) -> str:
    """Why a run failed, for everybody to read; where the store is stays in the log."""
    if isinstance(error, StoreError):
        return "the store failed; the server's log has the details"
    return str(error) if isinstance(error, AssayError) else cause_of(error)


def is_to_go_on(record: RunRecord) -> bool:
    """Was the run left behind, unless somebody is at work on it?"""
    if record.status == "interrupted":
        return STOPPED in record.verdict.notes and not record.cancelled
    return record.status == "running"


def _targets(settings: Settings) -> frozenset[str]:
    """The targets that the configuration of the server names."""
    config = settings.config
    named = {entry.name for entry in config.targets}
    named |= {name for name in (config.judge, config.defaults.target) if isinstance(name, str)}
    return frozenset(named)
