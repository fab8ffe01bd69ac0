"""The blocking door, beside a loop that runs already."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from assay.blocking import wait_for


def in_a_notebook(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """As a cell calls it: inside a loop that leaves Ctrl-C alone."""

    async def cell() -> Any:
        return wait_for(work)

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def test_a_result_and_an_error_come_through() -> None:
    async def fine() -> int:
        return 4

    async def broken() -> None:
        raise ValueError("broken")

    assert in_a_notebook(fine) == 4
    with pytest.raises(ValueError, match="broken"):
        in_a_notebook(broken)


def test_who_is_interrupted_takes_the_work_down_too() -> None:
    left: list[str] = []

    async def forever() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            left.append("in order")

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(forever)
    assert left == ["in order"]
