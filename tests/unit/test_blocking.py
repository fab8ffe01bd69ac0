"""Calls of the async core from blocking code, with a running event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from assay.blocking import wait_for
from assay.redaction import Redactor, cut, redacting


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


def test_the_work_sees_the_context_of_the_caller() -> None:
    async def redacted() -> str:
        return cut("." * 20 + "a-secret-of-the-project" + "." * 20, 30)

    with redacting(lambda: Redactor(["a-secret-of-the-project"])):
        assert in_a_notebook(redacted) == "." * 20 + "[redact..."


@pytest.mark.parametrize("thread", [threading.main_thread, threading.current_thread])
def test_an_interrupted_wait_cancels_the_work(thread: Callable[[], threading.Thread]) -> None:
    """A signal that another thread receives does not wake the main thread."""
    left: list[str] = []

    async def forever() -> None:
        signal.pthread_kill(thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            left.append("in order")

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(forever)
    assert left == ["in order"]
