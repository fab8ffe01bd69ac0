"""The blocking door to the async core; works beside a running event loop, as in a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine; in a thread of its own when this one has a loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(start()))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="assay")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
