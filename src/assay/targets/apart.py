"""Where coroutines of a project are awaited, so that one that hangs can be abandoned.

`Apart`: on an event loop of their own, in a daemon thread. A coroutine that blocks its loop, or
ignores its cancellation, delays neither us nor the exit. `Here`: on the caller's own loop, as
objects that the function uses may be bound to it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

#: How long a cancelled coroutine may take to end, and then its loop to respond, in seconds.
GRACE_SECONDS = 1.0

#: The return value, and the exception if one was raised.
Outcome = tuple[Any, BaseException | None]
Start = Callable[[], Awaitable[Any]]


class Place(Protocol):
    """Awaits the coroutines of a function."""

    async def outcome(self, start: Start) -> Outcome: ...
    async def close(self) -> None: ...


class Here:
    """On the running loop; a cancellation waits for the coroutine for the grace period at most."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace

    async def outcome(self, start: Start) -> Outcome:
        task = asyncio.ensure_future(_settled(start))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=self._grace)
            raise

    async def close(self) -> None:
        pass


class Apart:
    """On a loop in a daemon thread, started on first use, and replaced if it is stuck.

    Users are counted: each calls `join` and `close`, and the last `close` ends the loop.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._lock, self._users = threading.Lock(), 0
        self._loop: _Loop | None = None
        self._process = 0

    def join(self) -> Apart:
        with self._lock:
            self._users += 1
        return self

    async def outcome(self, start: Start) -> Outcome:
        loop = self._get_loop()
        started: set[asyncio.Task[Any]] = set()

        async def work() -> Outcome:
            started.add(_current())
            return await _settled(start)

        # It runs in a copy of our context, and is cancelled with us.
        call = asyncio.run_coroutine_threadsafe(work(), loop.loop)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if not await self._responds(loop, lambda done: _wait(started, self._grace, done)):
                self._abandon(loop)
            raise

    async def close(self) -> None:
        """End the loop; if it is stuck, or a task does not end, it ends later by itself."""
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            loop, self._loop = self._loop, None
        if loop is not None and self._process == os.getpid():
            await self._responds(loop, lambda done: loop.end(done, cancel=True))

    def _get_loop(self) -> _Loop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # fork does not copy its thread
                self._loop, self._process = _start_loop(), os.getpid()
            return self._loop

    async def _responds(
        self, loop: _Loop, work: Callable[[Future[None]], Coroutine[Any, Any, None]]
    ) -> bool:
        """Have the loop do some work; False if it does not get it done in time."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()
        asyncio.run_coroutine_threadsafe(work(done), loop.loop)
        seen = asyncio.wrap_future(done)
        try:
            await asyncio.wait([seen], timeout=2 * self._grace)
            return seen.done()
        finally:
            seen.cancel()  # the stuck loop may recover when ours is already closed

    def _abandon(self, loop: _Loop) -> None:
        """Use a new loop from now on. If the old one recovers, it finishes its tasks and ends."""
        with self._lock:
            if self._loop is loop:
                self._loop = None
                asyncio.run_coroutine_threadsafe(loop.end(Future(), cancel=False), loop.loop)


#: One loop for all functions of a project, as objects that they share are bound to one loop.
SHARED = Apart()


class _Loop(NamedTuple):
    """A loop, and whether it is over: if the project merely stops it, it is started again."""

    loop: asyncio.AbstractEventLoop
    over: threading.Event

    async def end(self, done: Future[None], *, cancel: bool) -> None:
        """Stop once no task of the project is left."""
        await asyncio.sleep(0)
        for task in _others() if cancel else ():
            task.cancel()
        while others := _others():
            await asyncio.wait(others)
        await self.loop.shutdown_asyncgens()
        self.over.set()
        self.loop.call_soon(self.loop.stop)
        done.set_result(None)


class _Threads(ThreadPoolExecutor):
    """For `asyncio.to_thread`: a daemon thread per call, as threads of a pool delay the exit."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # raised again where the future is awaited
                future.set_exception(error)

        threading.Thread(target=work, name="assay-call", daemon=True).start()
        return future


def _start_loop() -> _Loop:
    """A loop that runs in a daemon thread until it is over."""
    loop, over = asyncio.new_event_loop(), threading.Event()
    loop.set_default_executor(_Threads())

    def run() -> None:
        while not over.is_set():
            # A task of the project may raise SystemExit, or stop the loop.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
        loop.close()

    threading.Thread(target=run, name="assay-loop", daemon=True).start()
    return _Loop(loop, over)


async def _settled(start: Start) -> Outcome:
    try:
        return await start(), None
    except BaseException as error:  # the caller reports it
        return None, error


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a coroutine is run by a task
        raise LookupError("a task")
    return task


def _others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {_current()}


async def _wait(tasks: set[asyncio.Task[Any]], grace: float, done: Future[None]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=grace)
    done.set_result(None)
