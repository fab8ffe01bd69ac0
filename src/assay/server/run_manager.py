"""The runs of this server, each in a thread of its own.

A run computes, waits for locks and reads files, and must not block the event loop of the server.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.blocking import wait_for
from assay.comparison.outcomes import newest_first
from assay.engine.cancellation import WAS_CANCELLED, Cancellation
from assay.errors import AssayError, NotInStore, RunHeld, StoreError, UsageError, cause_of
from assay.model.events import Event, RunStarted
from assay.model.group_result import GroupResult
from assay.model.run import CANCELLED, RunRecord, RunStatus
from assay.ports import Store
from assay.redaction import redacted
from assay.server.envelope import invalid
from assay.server.feed import Feed
from assay.server.result_pages import progress_before
from assay.service import history, matrix, runs
from assay.settings import Settings

log = logging.getLogger("assay.server")
#: What a server's runs record as their starter; a server resumes no others.
SERVE = "serve"
#: More concurrent runs would only slow each other down.
MAX_RUNS = 16
TOO_MANY = f"{MAX_RUNS} runs are in progress: wait for one to end, or cancel it"
#: The note of a run that stopped because its server did; the next server resumes it.
STOPPED = "stopped with the server"
#: The pause between retries while the store cannot be reached.
RETRY_SECONDS = 2.0
#: How often to look for runs that other servers abandoned.
WATCH_SECONDS = 5.0
#: How many of the newest runs are checked each time, besides those last known to be held.
WATCHED = 100

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class RunHandle(msgspec.Struct):
    """A run in progress. Its id is in `begun` once it is stored, and in `run_id` for its thread."""

    feed: Feed
    begun: asyncio.Future[str]
    ended: asyncio.Event
    cancellation: Cancellation = msgspec.field(default_factory=Cancellation)
    run_id: str = ""


class RunManager:
    """Starts and stops runs, and resumes those that another server abandoned."""

    def __init__(self, settings: Settings, store: Store, root: Path, now: Clock) -> None:
        self.settings, self.store, self.root, self._now = settings, store, root, now
        self._handles: list[RunHandle] = []
        self._stopping = threading.Event()
        self._watcher: asyncio.Task[None] | None = None
        #: The abandoned runs; a future is done once its run is resumed here, or will not be.
        self._abandoned: dict[str, asyncio.Future[None]] = {}
        #: The runs that some process held at the last check.
        self._held: set[str] = set()

    async def start(self, paths: Sequence[str | Path], given: dict[str, Any]) -> str:
        """Start a run; returns its id once it is stored."""
        if len(self._handles) >= MAX_RUNS:
            raise invalid(TOO_MANY)
        (run_id,) = await self._launch(self._request(cases=list(paths), expands=False), given)
        return run_id

    async def start_group(
        self, paths: Sequence[str | Path], given: dict[str, Any], targets: Sequence[str]
    ) -> str:
        """Start a run for each target; returns the id of their group once they are stored."""
        request = self._request(cases=list(paths), several=tuple(targets))
        labels = await asyncio.to_thread(matrix.labels_of, request, given, self.settings)
        if len(self._handles) + len(labels) > MAX_RUNS:
            raise invalid(TOO_MANY)
        first, *_ = await self._launch(request, given, labels)
        record = await asyncio.to_thread(self.store.run, first)
        return str(record.group)

    async def resume(self, record: RunRecord) -> None:
        """Resume a run that ended before all was asked, even if it was cancelled."""
        if len(self._handles) >= MAX_RUNS:
            raise invalid(TOO_MANY)
        if record.cancelled:
            known = {name: value for name, value in record.environment.items() if name != CANCELLED}
            await asyncio.to_thread(self.store.describe, record.id, record.suites, known)
        await self._launch(self._request(resume=record.id), {})

    @property
    def under_way(self) -> int:
        """How many runs are in progress here."""
        return len(self._handles)

    @property
    def stopping(self) -> bool:
        """Is the server shutting down?"""
        return self._stopping.is_set()

    async def settled(self, run_id: str) -> RunHandle | None:
        """As `find`, once it is settled whether an abandoned run is resumed here."""
        if run_id in self._abandoned:
            await asyncio.shield(self._abandoned[run_id])
        return self.find(run_id)

    def find(self, run_id: str) -> RunHandle | None:
        """The handle of a run, if it is in progress here."""
        for handle in self._handles:
            if (
                handle.begun.done()
                and not handle.begun.cancelled()
                and handle.begun.result() == run_id
            ):
                return handle
        return None

    def stop(self) -> None:
        """Stop all runs gracefully: trials in flight may finish, however often this is called."""
        self._stopping.set()
        for handle in self._handles:
            if not handle.cancellation.requests:
                handle.cancellation.request(STOPPED)
            handle.feed.close()

    async def cancel(self, handle: RunHandle | None, record: RunRecord) -> None:
        """Cancel a run. That is stored too, so that the process which holds the run sees it."""
        times = record.environment.get(CANCELLED, 0) + 1
        known = record.environment | {CANCELLED: times}
        await asyncio.to_thread(self.store.describe, record.id, record.suites, known)
        if handle is not None:
            handle.cancellation.request(WAS_CANCELLED, times)

    async def cancel_abandoned(self, run_id: str) -> bool:
        """Cancel a run that no process holds; False when one does."""
        find = partial(self.store.run, run_id)
        return await asyncio.to_thread(self._interrupt, find, WAS_CANCELLED)

    def abort(self) -> None:
        """Stop all runs at once, without waiting for trials in flight."""
        for handle in self._handles:
            handle.cancellation.request()

    async def shut_down(self) -> None:
        """Stop all runs and wait for their ends."""
        self.stop()
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        for handle in list(self._handles):
            await handle.ended.wait()

    async def recover(self) -> None:
        """Find abandoned runs, and resume them in the background while requests are served.

        The background task also resumes runs that are abandoned from now on.
        """
        self._set_abandoned(await asyncio.to_thread(self._find_abandoned))
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await self._resume_abandoned()
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(StoreError):  # the next round tries again
                self._set_abandoned(await asyncio.to_thread(self._find_newly_abandoned))

    def _set_abandoned(self, run_ids: Iterable[str]) -> None:
        loop = asyncio.get_running_loop()
        self._abandoned = {run_id: loop.create_future() for run_id in run_ids}

    async def _resume_abandoned(self) -> None:
        try:
            for run_id in list(self._abandoned):
                await self._resume(run_id)
                self._abandoned.pop(run_id).set_result(None)
        finally:  # the server may stop first
            for future in self._abandoned.values():
                future.cancel()

    async def _resume(self, run_id: str) -> None:
        """Resume a run of a server; interrupt any other."""
        try:
            record = await asyncio.to_thread(self.store.run, run_id)
        except StoreError:  # it was deleted, or the next round finds it again
            return
        if self.stopping or self.find(run_id) is not None or not is_unfinished(record):
            return
        reason = "the process that ran it was killed"
        if record.cancelled:
            reason = WAS_CANCELLED
        elif record.started_by == SERVE:
            try:
                await self._launch(self._request(resume=record.id), {})
                return
            except RunHeld:
                return  # another server resumes it
            except Exception as error:  # code of the project may raise anything
                reason = f"it could not be resumed: {error}"
        await asyncio.to_thread(self._interrupt_with_retries, lambda: record, reason)

    def _interrupt_with_retries(self, find: Callable[[], RunRecord], reason: str) -> bool:
        """As `_interrupt`, but waits until the store can be reached or the server stops."""
        while True:
            try:
                return self._interrupt(find, reason)
            except StoreError:
                if self._stopping.wait(RETRY_SECONDS):  # the next server deals with it
                    return False

    def _interrupt(self, find: Callable[[], RunRecord], reason: str) -> bool:
        """Mark a run as interrupted; False when a process holds it, or it changed or is gone."""
        try:
            record = find()
            done = history.interrupt(record, self.store, self._now(), reason)
        except NotInStore:  # it was deleted
            return False
        if done:
            log.warning("the run %s is interrupted: %s", record.id, reason)
        return done

    def _find_abandoned(self) -> list[str]:
        """The unfinished runs that no process holds; first those to end, then those to resume."""
        unfinished = [record for record in newest_first(self.store) if is_unfinished(record)]
        unfinished.sort(key=lambda record: not record.cancelled)
        found = [record.id for record in unfinished]
        self._held = {run_id for run_id in found if self.store.held(run_id)}
        return [run_id for run_id in found if run_id not in self._held]

    def _find_newly_abandoned(self) -> set[str]:
        """The runs that a process let go since the last check; some may just have finished."""
        found = [record for record in self.store.runs(WATCHED) if is_unfinished(record)]
        stopped = {record.id for record in found if record.status == "interrupted"}
        known = self._held | {record.id for record in found}
        before, self._held = self._held, {run_id for run_id in known if self.store.held(run_id)}
        return (before | stopped) - self._held

    def _request(self, **more: Any) -> runs.RunRequest:
        # No streaming: it forks, which can deadlock in a process with threads.
        return runs.RunRequest(stream=False, targets=_targets(self.settings), **more)

    async def _launch(
        self, request: runs.RunRequest, given: dict[str, Any], targets: Sequence[str] = ("",)
    ) -> list[str]:
        """Execute a request in a thread; returns the ids of its runs once they are stored."""
        loop = asyncio.get_running_loop()
        handles = {
            target: RunHandle(Feed(loop, token_hex(4)), loop.create_future(), asyncio.Event())
            for target in targets
        }
        self._handles += handles.values()

        def hooks_of(target: str) -> runs.RunHooks:
            handle = handles[target]
            listen = partial(self._listen, loop, handle)
            return runs.RunHooks(listen, handle.cancellation, SERVE)

        first = replace(hooks_of(targets[0]), of_target=hooks_of if request.several else None)

        def work() -> None:
            ended = self._execute(replace(request, hooks=first), given)
            for handle in handles.values():
                loop.call_soon_threadsafe(self._finish, handle, self._settle(handle, ended))

        context = copy_context()  # which has what messages are redacted with
        threading.Thread(target=context.run, args=(work,), name="assay-run", daemon=True).start()
        # The runs continue when the client that asked for them disconnects.
        begun = (asyncio.shield(handle.begun) for handle in handles.values())
        found = await asyncio.gather(*begun, return_exceptions=True)
        for error in found:
            if isinstance(error, BaseException):
                raise error
        return [str(run_id) for run_id in found]

    def _listen(self, loop: asyncio.AbstractEventLoop, handle: RunHandle, event: Event) -> None:
        if isinstance(event, RunStarted) and event.done:
            handle.feed.resume_from(progress_before(self.store, event.run_id))
        handle.feed.push(event)
        if isinstance(event, RunStarted):
            handle.run_id = event.run_id
            loop.call_soon_threadsafe(handle.begun.set_result, event.run_id)

    def _execute(
        self, request: runs.RunRequest, given: dict[str, Any]
    ) -> dict[str, RunStatus] | BaseException:
        """How each run ended, by its id, or why they failed."""
        try:
            done = wait_for(lambda: matrix.execute_in(self.settings, self.store, request, given))
        except BaseException as error:  # raised where `begun` is awaited, or recorded
            return error
        ended = done.runs if isinstance(done, GroupResult) else (done,)
        return {result.id: result.record.status for result in ended}

    def _settle(
        self, handle: RunHandle, ended: dict[str, RunStatus] | BaseException
    ) -> RunStatus | BaseException | None:
        """How a run ended, or why it did not start; None if another process decides that."""
        run_id = handle.run_id
        if not isinstance(ended, BaseException):
            return ended[run_id]
        if not run_id:
            return ended
        log.error("the run %s failed", run_id, exc_info=ended)
        find = partial(self.store.run, run_id)
        was_interrupted = self._interrupt_with_retries(find, f"it failed: {_reason(ended)}")
        return "interrupted" if was_interrupted else None

    def _finish(self, handle: RunHandle, result: RunStatus | BaseException | None) -> None:
        self._handles.remove(handle)
        if isinstance(result, Exception):
            handle.begun.set_exception(result)
        elif isinstance(result, BaseException):  # such as SystemExit: it must not end the server
            handle.begun.set_exception(UsageError(f"it could not begin: {cause_of(result)}"))
        else:
            handle.feed.close(result)
        handle.ended.set()


def _reason(error: BaseException) -> str:
    """Why a run failed, for clients; they must not learn where the store is."""
    if isinstance(error, StoreError):
        return "the store failed; the server's log has the details"
    return redacted(str(error) if isinstance(error, AssayError) else cause_of(error))


def is_unfinished(record: RunRecord) -> bool:
    """Is the run still going, or abandoned, or stopped only because its server was?"""
    if record.status == "interrupted":
        return STOPPED in record.verdict.notes and not record.cancelled
    return record.status == "running"


def _targets(settings: Settings) -> frozenset[str]:
    """The targets that the server's configuration names: no others may be called."""
    config = settings.config
    named = {*settings.target_names, *(config.defaults.target or ())}
    return frozenset(named | ({config.judge} if isinstance(config.judge, str) else set()))
