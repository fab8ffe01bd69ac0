"""Where code of a project runs, so that a call that hangs can be abandoned.

`call_in_thread` calls a function in a daemon thread. Coroutines are awaited in one of two places.
`IsolatedLoop`: on an event loop of their own, in a daemon thread. A coroutine that blocks its loop,
or ignores its cancellation, delays neither us nor the exit. `CallerLoop`: on the caller's own loop,
as objects that the function uses may be bound to it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

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

    It sees a copy of this context. A `ThreadPoolExecutor` would be joined at exit, and may have
    fewer threads than there are workers.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # not cancellable: the call is always made
    context = contextvars.copy_context()

    def call() -> None:
        try:
            value = context.run(function)
        except BaseException as error:  # raised where the result is read
            future.set_exception(error)
        else:
            future.set_result(value)

    _pool.submit(call)
    return future


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call a function in a daemon thread; its exception is part of the outcome."""
    loop = asyncio.get_running_loop()
    outcomes = _outcomes.get(loop)
    if outcomes is None:
        outcomes = _outcomes[loop] = _Outcomes()
    future: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def call() -> Callable[[], None]:
        outcome = context.run(_outcome, function, arguments)
        return partial(outcomes.add, loop, future, outcome)

    # Coroutines that are ready go first: a thread would compete with them for the interpreter. So
    # the calls of all of them follow one another, and mostly one thread makes them all.
    try:
        await asyncio.sleep(0)
    finally:  # the call is made even if this is cancelled
        _pool.submit(call)
    return await future


class _Outcomes:
    """Outcomes for an event loop, which is woken once for all that have accumulated."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._is_woken = False

    def add(
        self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Outcome], outcome: Outcome
    ) -> None:
        """Called in any thread."""
        self._waiting.append((future, outcome))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed, so nothing awaits the outcome
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_woken = False  # first: an outcome that is added from now on wakes the loop again
        while self._waiting:
            future, outcome = self._waiting.popleft()
            if not future.done():  # it may be cancelled
                future.set_result(outcome)


_outcomes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Outcomes] = WeakKeyDictionary()


#: Makes a call and must not raise; what it returns is called next, and must not block.
Call = Callable[[], Callable[[], None] | None]


class _Pool:
    """Daemon threads that take calls from one queue.

    There are at least as many threads as unfinished calls, so that no call waits for another one.
    A thread that is awake makes several short calls in a row, without waking the others.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Call] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = self._threads = 0

    def submit(self, call: Call) -> None:
        with self._lock:
            self._unfinished += 1
            needs_thread = self._unfinished > self._threads
            self._threads += needs_thread
        if needs_thread:
            self._start_thread()
        self._queue.put(call)

    def _start_thread(self) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        try:
            threading.Thread(target=self._run, name="assay-call", daemon=True).start()
        except BaseException:  # the system has no more threads
            with self._lock:
                self._unfinished -= 1
                self._threads -= 1
            raise

    def _run(self) -> None:
        while True:
            try:
                call = self._queue.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._unfinished < self._threads:
                        self._threads -= 1
                        return
                continue  # a call is about to arrive
            report = call()
            with self._lock:  # first: what is reported may lead to the next call at once
                self._unfinished -= 1
            if report is not None:
                report()
            del call, report  # they refer to the outcome


def _new_pool() -> None:
    global _pool
    _pool = _Pool()


_pool = _Pool()
if hasattr(os, "register_at_fork"):  # a fork does not copy threads
    os.register_at_fork(after_in_child=_new_pool)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    started = time.perf_counter()
    value, error = None, None
    try:
        value = function(*arguments)
    except BaseException as raised:  # the caller reports it
        error = raised
    return Outcome(value, error, (time.perf_counter() - started) * 1000)


class CoroutineRunner(Protocol):
    """Awaits the coroutines of a function."""

    async def outcome(self, start: Start) -> Outcome: ...
    async def close(self) -> None: ...


class CallerLoop:
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


class IsolatedLoop:
    """On a loop in a daemon thread, started on first use, and replaced if it is stuck.

    Users are counted: each calls `join` and `close`, and the last `close` ends the loop.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._lock, self._users = threading.Lock(), 0
        self._loop: _Loop | None = None
        self._process = 0

    def join(self) -> IsolatedLoop:
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
        """End the loop; if it is stuck, or a task does not end, it ends later, when it can."""
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
TARGETS_LOOP = IsolatedLoop()
#: The same for its evaluators: a slow one must not delay the targets.
EVALUATORS_LOOP = IsolatedLoop()


class _Loop(NamedTuple):
    """A loop, and whether it has ended: if the project merely stops it, it is started again."""

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
    """A loop that runs in a daemon thread until `_Loop.end`."""
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
