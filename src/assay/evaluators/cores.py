"""The cores of this machine, shared by all that computes in children of this process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import suppress


class Cores:
    """A semaphore for the tasks of all event loops in all threads; those who wait block none."""

    def __init__(self, count: int) -> None:
        self.free = count
        self._lock = threading.Lock()  # never held for longer than a few steps
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        with self._lock:
            if self.free:
                self.free -= 1
                return
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with self._lock, suppress(ValueError):  # it may be its turn by now: see _grant
                    self._waiting.remove(turn)
            else:
                self._give_back()
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                with suppress(RuntimeError):  # its loop was closed while it waited
                    turn.get_loop().call_soon_threadsafe(self._grant, turn)
                    return
            self.free += 1

    def _grant(self, turn: asyncio.Future[None]) -> None:
        if turn.cancelled():
            self._give_back()
        else:
            turn.set_result(None)


def a_core() -> Cores:
    """To be held while a child computes: as many at once as there are cores.

    Not for children that mostly wait, such as agents.
    """
    return _CORES


def core_count() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_CORES = Cores(core_count())
