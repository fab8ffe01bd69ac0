"""As many at once as there are cores, in all event loops together."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from assay.process.cpu_slots import CpuSlots, core_count, cpu_slot
from timeouts import WAIT_SECONDS


def guarded(work: Coroutine[Any, Any, None]) -> None:
    """Does work that must not hang."""
    asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


class Tally:
    """How many hold a core now, and how many did at most."""

    def __init__(self) -> None:
        self.held = self.most = 0
        self.lock = threading.Lock()

    async def hold(self, cores: CpuSlots) -> None:
        async with cores:
            self.count(1)
            for _ in range(5):
                await asyncio.sleep(0)
            self.count(-1)

    def count(self, change: int) -> None:
        with self.lock:
            self.held += change
            self.most = max(self.most, self.held)

    async def hold_often(self, cores: CpuSlots, tasks: int) -> None:
        await asyncio.gather(*(self.hold(cores) for _ in range(tasks)))


def test_no_more_run_at_once_than_there_are_cores() -> None:
    assert 1 <= core_count() <= (os.cpu_count() or 1)
    tally = Tally()
    guarded(tally.hold_often(cpu_slot(), core_count() * 3))
    assert tally.most == cpu_slot().free == core_count()


class Pair:
    """Whoever comes waits for one more, from any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: asyncio.Future[None] | None = None

    async def meet(self) -> None:
        own: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            other = self._first
            self._first = own if other is None else None
        if other is None:
            await own
        else:
            other.get_loop().call_soon_threadsafe(other.set_result, None)


def test_threads_with_loops_of_their_own_share_the_cores() -> None:
    """A holder keeps its slot until another has one too: with too few slots, all would wait."""
    cores, tally, pair = CpuSlots(2), Tally(), Pair()
    tasks, threads = 20, 8
    gone = 0
    let_in: list[int] = []

    async def hold() -> None:
        nonlocal gone
        async with cores:
            tally.count(1)
            await pair.meet()
            # Whose turn it is has left the queue, whether it knows of it yet or not.
            let_in.append(threads * tasks - len(cores._waiting) - gone)
            with tally.lock:
                gone += 1
            tally.count(-1)

    async def hold_often() -> None:
        await asyncio.gather(*(hold() for _ in range(tasks)))

    # All threads have tasks that wait before any of them is let in.
    guarded(cores.__aenter__())
    guarded(cores.__aenter__())
    running = [threading.Thread(target=lambda: guarded(hold_often())) for _ in range(threads)]
    for thread in running:
        thread.start()
    while len(cores._waiting) < threads * tasks:
        assert all(thread.is_alive() for thread in running)
    guarded(cores.__aexit__())
    guarded(cores.__aexit__())
    for thread in running:
        thread.join(WAIT_SECONDS)
    assert (tally.held, tally.most, cores.free) == (0, 2, 2)
    assert (gone, max(let_in)) == (threads * tasks, 2)


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_a_waiter_that_is_cancelled_keeps_no_slot(before: int, after: int) -> None:
    async def contend() -> None:
        async with cores:
            waiting = asyncio.create_task(Tally().hold(cores))
            await steps(before)
        await steps(after)
        waiting.cancel()
        await asyncio.wait([waiting])
        await steps(1)

    cores = CpuSlots(1)
    guarded(contend())
    assert cores.free == 1
    assert not cores._waiting


def test_a_cancelled_waiter_leaves_the_queue() -> None:
    async def contend() -> None:
        async with cores:
            waiting = asyncio.create_task(Tally().hold(cores))
            await steps(2)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert not cores._waiting

    cores = CpuSlots(1)
    guarded(contend())
    assert cores.free == 1


def test_a_closed_loop_is_skipped() -> None:
    cores = CpuSlots(1)
    guarded(cores.__aenter__())
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(Tally().hold(cores))
    loop.run_until_complete(steps(2))
    loop.close()
    guarded(cores.__aexit__())
    assert cores.free == 1
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]
