"""The blocking door to the async core; works beside a running event loop, as in a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds in which a thread begins, unless its start was interrupted.
_STARTING = 5.0


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine; in a thread of its own when this one has a loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    return _beside_a_loop(start)


def _beside_a_loop(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """An interrupted wait cancels the work as well, as it may cost money."""
    outcome: list[T] = []
    failure: list[BaseException] = []
    tasks: list[asyncio.Task[Any]] = []
    # Not `join`: once that was interrupted, it takes the thread for ended.
    begun, ended = threading.Event(), threading.Event()

    async def work() -> T:
        tasks.extend(asyncio.all_tasks())
        begun.set()
        return await start()

    def run() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:
            failure.append(error)
        finally:
            begun.set()
            ended.set()

    try:
        threading.Thread(target=run, name="assay").start()
        ended.wait()
    except BaseException:
        if begun.wait(_STARTING):
            for task in tasks:
                with suppress(RuntimeError):  # it has just ended, and its loop is closed
                    task.get_loop().call_soon_threadsafe(task.cancel)
            ended.wait()
        raise
    if failure:
        raise failure[0]
    return outcome[0]
