"""Rates that hold for several processes: each limiter here stands for one."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from assay.errors import StoreError, TargetError
from assay.targets.pool.retries import SystemClock
from assay.targets.pool.shared_limits import SharedRateLimiter


class Slots:
    """Permits in memory."""

    def __init__(self) -> None:
        self.next: dict[str, float] = {}
        self.taken: list[int] = []
        self.broken = ""
        self._lock = threading.Lock()

    def take(self, target: str, number: int, per_second: float) -> float:
        if self.broken:
            raise StoreError(self.broken)
        with self._lock:
            now = time.monotonic()
            first = max(self.next.get(target, now), now)
            self.next[target] = first + number / per_second
            self.taken.append(number)
            return first - now

    def hold(self, target: str, seconds: float) -> None:
        with self._lock:
            begin = time.monotonic() + seconds
            self.next[target] = max(self.next.get(target, begin), begin)

    def spend(self, budget: str, usd: float, at_least: float = 0.0) -> float:
        raise NotImplementedError("a target has no budget")


def limiter(slots: Slots, requests: float | None, tokens: float | None = None) -> SharedRateLimiter:
    return SharedRateLimiter(SystemClock(), 50, requests, tokens, permits=slots, target="t")


async def asks(limiter: SharedRateLimiter, tokens: int = 0) -> float:
    async with limiter.attempt():
        limiter.charge(0, tokens)
        return time.monotonic()


def run(work: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await work()

    return asyncio.run(bounded())


def test_all_together_stay_below_the_rate() -> None:
    slots, began = Slots(), time.monotonic()

    async def ask() -> list[float]:
        limiters = [limiter(slots, 6000) for _ in range(4)]
        return await asyncio.gather(*(asks(limiters[n % 4]) for n in range(40)))

    last = max(run(ask))
    assert last - began >= 39 / 100
    assert len(slots.taken) < 40, "one request to the store is for all that wait"


def test_tokens_of_one_delay_the_others() -> None:
    slots, began = Slots(), time.monotonic()

    async def ask() -> float:
        first, second = limiter(slots, None, 6000), limiter(slots, None, 6000)
        await asks(first, tokens=30)
        while not any(name.endswith("tokens") and 30 in slots.taken for name in slots.next):
            await asyncio.sleep(0.001)
        return await asks(second)

    assert run(ask) - began >= 30 / 100


def test_retry_after_holds_all_back() -> None:
    slots, began = Slots(), time.monotonic()

    async def ask() -> float:
        first, second = limiter(slots, None), limiter(slots, None)
        busy = TargetError("busy", retryable=True, retry_after=0.3, overloaded=True)
        with pytest.raises(TargetError):
            async with first.attempt():
                raise busy
        while max(slots.next.values()) < began + 0.3:
            await asyncio.sleep(0.001)
        return await asks(second)

    assert run(ask) - began >= 0.3


def test_an_error_of_the_store_is_that_of_the_attempt_and_leaves_room() -> None:
    slots = Slots()

    async def ask() -> int:
        limiting = limiter(slots, 600_000)
        slots.broken = "the server is gone"
        with pytest.raises(StoreError, match="the server is gone"):
            await asks(limiting)
        slots.broken = ""
        await asks(limiting)
        return limiting.in_flight

    assert run(ask) == 0
