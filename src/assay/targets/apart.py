"""Where coroutines of a project are awaited, so that one that hangs can be left.

Apart: on an event loop of their own, in a daemon thread. Neither one that blocks its loop nor one
that does not let itself be cancelled holds up us or the exit. Here: on the loop of a caller who
is in one, as what his function uses may belong to it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

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
    """On the running loop; whoever does not want the outcome any more waits for a grace only."""

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
    """On a loop in a daemon thread: begun with the first question, and anew when it is stuck."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._loop: asyncio.AbstractEventLoop | None = None

    async def outcome(self, start: Start) -> Outcome:
        loop = self._loop = self._loop or _begun()
        under_way: set[asyncio.Task[Any]] = set()

        async def work() -> Outcome:
            under_way.add(_current())
            return await _settled(start)

        # It runs in a copy of our context. When we are cancelled, so is it.
        call = asyncio.run_coroutine_threadsafe(work(), loop)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if not await self._does(loop, _ended(under_way, self._grace)):
                self._leave(loop)
            raise

    async def close(self) -> None:
        """End the loop; one that is stuck, or has a task that does not end, is left."""
        loop = self._loop
        if loop is not None:
            if not await self._does(loop, _finish(self._grace)):
                self._leave(loop)
            self._loop = None

    async def _does(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> bool:
        """Does the loop come to do it, or is it stuck?"""
        done = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
        try:
            await asyncio.wait([done], timeout=2 * self._grace)
            return done.done()
        finally:
            done.cancel()  # the loop may come free when ours is closed

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ask on a new loop. Should the old one come free, it does what it was asked, and ends."""
        if self._loop is loop:
            self._loop = None
            asyncio.run_coroutine_threadsafe(_retire(), loop)


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


def _begun() -> asyncio.AbstractEventLoop:
    """A loop that runs in a thread until it is stopped."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_Threads())

    def run() -> None:
        while not loop.is_closed():
            # A task that the project began may raise SystemExit, which would end the loop.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                loop.close()

    threading.Thread(target=run, name="assay-loop", daemon=True).start()
    return loop


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


async def _ended(tasks: set[asyncio.Task[Any]], grace: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=grace)


async def _finish(grace: float) -> None:
    """Cancel what the project has begun, and stop the loop unless some of that goes on."""
    await asyncio.sleep(0)  # a loop that was stuck learns here that nobody waits for this
    for task in (others := _others()):
        task.cancel()
    await _ended(others, grace)
    if not _others():
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()
        loop.call_soon(loop.stop)


async def _retire() -> None:
    while others := _others():
        await asyncio.wait(others)
    asyncio.get_running_loop().stop()
