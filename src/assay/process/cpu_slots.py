"""A limit on child processes that compute: at most one per core."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import suppress


class CpuSlots:
    """A semaphore for the tasks of all event loops in all threads; waiting blocks no loop."""

    def __init__(self, count: int) -> None:
        self.free = count
        self._lock = threading.Lock()  # only ever held briefly, so a loop may wait for it
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
                with self._lock, suppress(ValueError):  # already dequeued: _grant passes it on
                    self._waiting.remove(turn)
            else:
                self._release()
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._release()

    def _release(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                with suppress(RuntimeError):  # its loop was closed while it waited
                    turn.get_loop().call_soon_threadsafe(self._grant, turn)
                    return
            self.free += 1

    def _grant(self, turn: asyncio.Future[None]) -> None:
        if turn.cancelled():
            self._release()
        else:
            turn.set_result(None)


def cpu_slot() -> CpuSlots:
    """The semaphore to hold while a child computes; not for children that mostly wait (agents)."""
    return _CPU_SLOTS


def core_count() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_CPU_SLOTS = CpuSlots(core_count())
