"""Rate limits of a target: concurrent attempts, and requests and tokens per minute.

When a target is overloaded, the concurrency is halved, and no attempt begins before the time that
it asked for. After that, each round of answers adds one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from assay.errors import TargetError
from assay.targets.pool.retries import LONGEST_ASKED, Clock

#: Tolerance for rounding errors, so that no attempt waits because of them.
_EPSILON = 1e-6


class RateLimiter:
    """Admits attempts in the order of arrival. One event loop at a time may use it."""

    def __init__(
        self,
        clock: Clock,
        workers: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self._clock, self.workers = clock, workers
        #: How many attempts may be in flight now, and how many are in flight.
        self.limit, self.in_flight = workers, 0
        self._requests = _Bucket(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = _Bucket(tokens_per_minute, clock) if tokens_per_minute else None
        self._opens_at = clock.monotonic()
        #: Counts how often the limit was lowered, and the answers in a row.
        self._round = self._answers = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Entered when the attempt may begin; the limit depends on how it ends."""
        await self._enter()
        begun = self._round
        try:
            yield
        except TargetError as error:
            if error.overloaded:
                self._slow_down(begun, error.retry_after or 0.0)
            raise
        else:
            if begun == self._round:
                self._speed_up()
        finally:
            self.in_flight -= 1
            self._changed.set()

    def charge(self, requests: int, tokens: int) -> None:
        """Charge what an attempt used beyond its one request; later attempts wait for it."""
        if self._requests:
            self._requests.take(requests)
        if self._tokens:
            self._tokens.take(tokens)

    async def _enter(self) -> None:
        self._bind_to_loop()
        async with self._turn:  # the others wait for their turn
            while True:
                if self.in_flight >= self.limit:
                    self._changed.clear()
                    await self._changed.wait()
                elif (wait := self._wait()) > 0:
                    await self._clock.sleep(wait)
                else:
                    break
            self.in_flight += 1
            if self._requests:
                self._requests.take(1)

    def _bind_to_loop(self) -> None:
        """Renew the locks for a new event loop: a target may serve several in sequence."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._turn, self._changed = loop, asyncio.Lock(), asyncio.Event()

    def _wait(self) -> float:
        """Seconds until the rates allow the next attempt."""
        waits = [bucket.wait() for bucket in (self._requests, self._tokens) if bucket]
        return max(self._opens_at - self._clock.monotonic(), *waits, 0.0)

    def _slow_down(self, begun: int, retry_after: float) -> None:
        """Halve the limit, once for all attempts that were in flight together."""
        now = self._clock.monotonic()
        self._opens_at = max(self._opens_at, now + min(retry_after, LONGEST_ASKED))
        self._answers = 0
        if begun == self._round:
            self._round += 1
            self.limit = max(self.limit // 2, 1)

    def _speed_up(self) -> None:
        """Raise the limit by one after as many answers in a row as the limit is."""
        self._answers += 1
        if self._answers >= self.limit and self.limit < self.workers:
            self._answers = 0
            self.limit += 1


class _Bucket:
    """A token bucket that holds one second's worth, so that no minute gets much too many."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._clock, self._rate = clock, per_minute / 60
        self._size = max(self._rate, 1.0)
        self._level, self._refilled_at = self._size, clock.monotonic()

    def take(self, amount: float) -> None:
        """Take an amount that has been used already; the level may become negative."""
        self._level = self._refill() - amount

    def wait(self) -> float:
        """Seconds until one can be taken."""
        missing = 1.0 - self._refill()
        return missing / self._rate if missing > _EPSILON else 0.0

    def _refill(self) -> float:
        now = self._clock.monotonic()
        self._level = min(self._level + (now - self._refilled_at) * self._rate, self._size)
        self._refilled_at = now
        return self._level
