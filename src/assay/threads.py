"""Where code of a project runs, so that a call that hangs can be abandoned.

`call_in_thread` calls a function in a daemon thread. Coroutines are awaited in one of two places.
`Apart`: on an event loop of their own, in a daemon thread. A coroutine that blocks its loop, or
ignores its cancellation, delays neither us nor the exit. `Here`: on the caller's own loop, as
objects that the function uses may be bound to it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

#: How long a cancelled coroutine may take to end, and then its loop to respond, in seconds.
GRACE_SECONDS = 1.0

#: How long code in a thread may keep the interpreter from the event loop. Python's default, 5 ms,
#: is added to every step of a request, and would count as the time of its target.
SWITCH_SECONDS = 0.001
#: A thread ends when it had no call for this long.
IDLE_SECONDS = 5.0

Start = Callable[[], Awaitable[Any]]
T = TypeVar("T")


class Outcome(NamedTuple):
    """The return value, the exception if one was raised, and how long the call took.

    The duration is measured where the code ran: it does not include waiting for our event loop.
    """

    value: Any
    error: BaseException | None
    duration_ms: float


def call_in_thread(function: Callable[[], T]) -> Future[T]:
    """Call a function in a daemon thread, so that one that hangs delays neither us nor the exit.

    It sees a copy of this context. A thread pool would be joined at exit, and may have fewer
    threads than there are workers.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # whoever cancels it may rely on the call being made
    context = contextvars.copy_context()

    def work() -> Callable[[], None]:
        try:
            return partial(future.set_result, context.run(function))
        except BaseException as error:  # raised where the result is read
            return partial(future.set_exception, error)

    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Thread()
    thread.work.put(work)
    return future


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call a function in a daemon thread; its exception is part of the outcome."""
    call = call_in_thread(lambda: _outcome(lambda: function(*arguments)))
    return await asyncio.wrap_future(call)


class _Thread:
    """A daemon thread that makes one call after the other."""

    def __init__(self) -> None:
        #: Each item makes a call, and returns what delivers its outcome.
        self.work: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        threading.Thread(target=self._run, name="assay-call", daemon=True).start()

    def _run(self) -> None:
        deliver = self.work.get()()
        while True:
            _idle.append(self)  # first: the caller may have its next call ready
            deliver()
            del deliver  # it refers to the outcome
            try:
                work = self.work.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # just taken: its call is about to arrive
                    work = self.work.get()
                else:
                    return
            deliver = work()
            del work


#: The threads without a call. List operations are atomic, and a fork does not copy threads.
_idle: list[_Thread] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _outcome(call: Callable[[], Any]) -> Outcome:
    started = time.perf_counter()
    value, error = None, None
    try:
        value = call()
    except BaseException as raised:  # the caller reports it
        error = raised
    return Outcome(value, error, (time.perf_counter() - started) * 1000)


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


#: One loop for all targets of a project, as objects that they share are bound to one loop.
SHARED = Apart()
#: The same for its evaluators: a slow one must not delay the targets.
EVALUATORS = Apart()


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
    """For `asyncio.to_thread`: daemon threads, as those of a pool delay the exit."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return call_in_thread(partial(fn, *args, **kwargs))


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
    started = time.perf_counter()
    value, error = None, None
    try:
        value = await start()
    except BaseException as raised:  # the caller reports it
        error = raised
    return Outcome(value, error, (time.perf_counter() - started) * 1000)


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
