"""Calling the async core from blocking code, even while an event loop runs, as in a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from assay.threads import call_in_thread

T = TypeVar("T")

_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)

#: A thread that has not started after this long never will: its start was interrupted.
_START_SECONDS = 5.0
#: How often a wait looks for Ctrl-C.
_SIGNAL_SECONDS = 0.1


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine; run in another thread if this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_in_our_loop(start))
    return _run_in_thread(lambda: _in_our_loop(start))


def is_our_loop() -> bool:
    """Was the running event loop started by `wait_for`? Then no object of a user is bound to it."""
    return _is_ours.get()


async def _in_our_loop(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    _is_ours.set(True)
    return await start()


def _run_in_thread(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the work in a thread; if the wait is interrupted, it is cancelled: it may cost money."""
    tasks: list[asyncio.Task[Any]] = []
    # Not the future: there is none if the start of the thread is interrupted.
    started, ended = threading.Event(), threading.Event()

    async def work() -> T:
        tasks.extend(asyncio.all_tasks())
        started.set()
        return await start()

    def run() -> T:
        try:
            return asyncio.run(work())
        finally:
            started.set()
            ended.set()

    try:
        call = call_in_thread(run)
        _wait(ended)
    except BaseException:
        if started.wait(_START_SECONDS):
            for task in tasks:
                with suppress(RuntimeError):  # the loop was closed just now
                    task.get_loop().call_soon_threadsafe(task.cancel)
            _wait(ended)
        raise
    return call.result()


def _wait(event: threading.Event) -> None:
    """Wait for an event; a signal interrupts the wait even if it arrives at the wrong moment.

    Python handles signals between two steps of the main thread. One that arrives just before the
    wait begins, or in another thread, would not end a wait without a timeout.
    """
    while not event.wait(_SIGNAL_SECONDS):
        pass
