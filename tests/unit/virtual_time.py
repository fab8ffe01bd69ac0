"""Hours in no time: an event loop whose time jumps to the next thing that is to happen.

Unlike a clock that moves when a task sleeps, it serves many tasks that wait concurrently, and
time limits too. A test in which everybody waits for ever fails at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from assay.targets.pool.retries import SystemClock

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        prepare = super().select(0)
        if not prepare:
            assert timeout is not None, "everybody waits for ever"
            self.now += timeout
        return prepare


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._hands = _Selector()
        super().__init__(self._hands)

    def time(self) -> float:
        return self._hands.now


class LoopClock(SystemClock):
    """The time of the running loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of work whose waits take no time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
