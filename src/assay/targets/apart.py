"""Where coroutines of a project are awaited, so that one that hangs can be left.

Apart: on an event loop of their own, in a daemon thread. Neither one that blocks its loop nor one
that does not let itself be cancelled holds up us or the exit. Here: on the loop of a caller who
is in one, as what their function uses may belong to it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

#: How long a coroutine may take to end once it is cancelled, in seconds, and its loop to notice.
GRACE_SECONDS = 1.0

#: What was returned, or what was raised.
Outcome = tuple[Any, BaseException | None]
Start = Callable[[], Awaitable[Any]]


class Place(Protocol):
    """Awaits what a function promises."""

    async def outcome(self, start: Start) -> Outcome: ...
    async def close(self) -> None: ...


class Here:
    """On the running loop; whoever cancels waits no longer than the grace period."""

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
    """On a loop in a daemon thread: begun with the first question, and anew when it is stuck.

    Whoever has joined closes it in the end; with the last of them the loop ends.
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
        loop = self._running()
        under_way: set[asyncio.Task[Any]] = set()

        async def work() -> Outcome:
            under_way.add(_current())
            return await _settled(start)

        # It runs in a copy of our context. When we are cancelled, so is it.
        call = asyncio.run_coroutine_threadsafe(work(), loop.loop)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if not await self._does(loop, lambda done: _ended(under_way, self._grace, done)):
                self._leave(loop)
            raise

    async def close(self) -> None:
        """End the loop; one that is stuck, or has a task that does not end, ends after that."""
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            loop, self._loop = self._loop, None
        if loop is not None and self._process == os.getpid():
            await self._does(loop, lambda done: loop.end(done, cancel=True))

    def _running(self) -> _Loop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # a fork has no thread for it
                self._loop, self._process = _begun(), os.getpid()
            return self._loop

    async def _does(
        self, loop: _Loop, work: Callable[[Future[None]], Coroutine[Any, Any, None]]
    ) -> bool:
        """Does the loop get to it, or is it stuck?"""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()
        asyncio.run_coroutine_threadsafe(work(done), loop.loop)
        seen = asyncio.wrap_future(done)
        try:
            await asyncio.wait([seen], timeout=2 * self._grace)
            return seen.done()
        finally:
            seen.cancel()  # the loop may come free when ours is closed

    def _leave(self, loop: _Loop) -> None:
        """Ask on a new loop. Should the old one come free, it does what it was asked, and ends."""
        with self._lock:
            if self._loop is loop:
                self._loop = None
                asyncio.run_coroutine_threadsafe(loop.end(Future(), cancel=False), loop.loop)


#: What all functions of a project are asked on, as what they share belongs to one loop.
SHARED = Apart()


class _Loop(NamedTuple):
    """A loop, and whether it is to end: a project that stops it does not end it."""

    loop: asyncio.AbstractEventLoop
    over: threading.Event

    async def end(self, done: Future[None], *, cancel: bool) -> None:
        """Stop when nothing that the project has begun is left."""
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
    """A daemon thread for each call, for `asyncio.to_thread`: those of a pool hold up the exit."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # it is told where the future is waited for
                future.set_exception(error)

        threading.Thread(target=work, name="assay-call", daemon=True).start()
        return future


def _begun() -> _Loop:
    """A loop that runs in a thread until it is over."""
    loop, over = asyncio.new_event_loop(), threading.Event()
    loop.set_default_executor(_Threads())

    def run() -> None:
        while not over.is_set():
            # A task that the project began may raise SystemExit, or stop the loop.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
        loop.close()

    threading.Thread(target=run, name="assay-loop", daemon=True).start()
    return _Loop(loop, over)


async def _settled(start: Start) -> Outcome:
    try:
        return await start(), None
    except BaseException as error:  # whoever asked tells what it was
        return None, error


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a coroutine is run by a task
        raise LookupError("a task")
    return task


def _others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {_current()}


async def _ended(tasks: set[asyncio.Task[Any]], grace: float, done: Future[None]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=grace)
    done.set_result(None)
