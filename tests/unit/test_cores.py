"""As many at once as there are cores, in all event loops together."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from assay.evaluators.cores import Cores, a_core, core_count


def guarded(work: Coroutine[Any, Any, None]) -> None:
    """Does work that must not hang."""
    asyncio.run(asyncio.wait_for(work, 60))


class Tally:
    """How many hold a core now, and how many did at most."""

    def __init__(self) -> None:
        self.held = self.most = 0
        self._lock = threading.Lock()

    async def hold(self, cores: Cores) -> None:
        async with cores:
            self._count(1)
            for _ in range(5):
                await asyncio.sleep(0)
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self.held += change
            self.most = max(self.most, self.held)

    async def hold_often(self, cores: Cores, tasks: int) -> None:
        await asyncio.gather(*(self.hold(cores) for _ in range(tasks)))


def test_no_more_run_at_once_than_there_are_cores() -> None:
    assert 1 <= core_count() <= (os.cpu_count() or 1)
    tally = Tally()
    guarded(tally.hold_often(a_core(), core_count() * 3))
    assert tally.most == a_core().free == core_count()


def test_threads_with_loops_of_their_own_share_the_cores() -> None:
    cores, tally = Cores(2), Tally()
    # All threads have tasks that wait before any of them is let in.
    guarded(cores.__aenter__())
    guarded(cores.__aenter__())
    threads = [
        threading.Thread(target=lambda: guarded(tally.hold_often(cores, 20))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    while len(cores._waiting) < 8 * 20:
        assert all(thread.is_alive() for thread in threads)
    guarded(cores.__aexit__())
    guarded(cores.__aexit__())
    for thread in threads:
        thread.join(60)
    assert (tally.held, tally.most, cores.free) == (0, 2, 2)


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_who_is_cancelled_while_waiting_keeps_no_core(before: int, after: int) -> None:
    async def contend() -> None:
        async with cores:
            waiting = asyncio.create_task(Tally().hold(cores))
            await steps(before)
        await steps(after)
        waiting.cancel()
        await asyncio.wait([waiting])
        await steps(1)

    cores = Cores(1)
    guarded(contend())
    assert cores.free == 1
    assert not cores._waiting


def test_who_gives_up_while_all_cores_are_held_is_forgotten() -> None:
    async def contend() -> None:
        async with cores:
            waiting = asyncio.create_task(Tally().hold(cores))
            await steps(2)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert not cores._waiting

    cores = Cores(1)
    guarded(contend())
    assert cores.free == 1


def test_a_loop_that_was_closed_is_passed_over() -> None:
    cores = Cores(1)
    guarded(cores.__aenter__())
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(Tally().hold(cores))
    loop.run_until_complete(steps(2))
    loop.close()
    guarded(cores.__aexit__())
    assert cores.free == 1
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]
