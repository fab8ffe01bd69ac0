"""The gate in front of a target: how many attempts at once, and how many a minute.

A target that says it has too much to do gets half as many attempts at once, and none before
the time that it asked for. Each round of answers then lets one more in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from assay.errors import TargetError
from assay.roster.retries import LONGEST_ASKED, Clock

#: Nobody waits for what is lost when floating point numbers are rounded.
_NEARLY = 1e-6


class RateGate:
    """Lets attempts begin in the order they came. One event loop at a time may use it."""

    def __init__(
        self,
        clock: Clock,
        workers: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self._clock, self.workers = clock, workers
        #: How many attempts may be in flight now, and how many are.
        self.limit, self.in_flight = workers, 0
        self._requests = _Bucket(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = _Bucket(tokens_per_minute, clock) if tokens_per_minute else None
        self._opens = clock.monotonic()
        self._round = self._answers = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Entered when the attempt may begin; it sees how the attempt ends."""
        await self._enter()
        begun = self._round
        try:
            yield
        except TargetError as error:
            if error.overloaded:
                self._ease(begun, error.retry_after or 0.0)
            raise
        else:
            if begun == self._round:
                self._climb()
        finally:
            self.in_flight -= 1
            self._changed.set()

    def charge(self, requests: int, tokens: int) -> None:
        """Take what an attempt used beside its one request; who comes next waits for it."""
        if self._requests:
            self._requests.take(requests)
        if self._tokens:
            self._tokens.take(tokens)

    async def _enter(self) -> None:
        self._settle()
        async with self._turn:  # only the first in the line looks whether there is room
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

    def _settle(self) -> None:
        """Locks belong to an event loop, and a target may serve one loop after the other."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._turn, self._changed = loop, asyncio.Lock(), asyncio.Event()

    def _wait(self) -> float:
        """Seconds until the next attempt may begin, as far as is known now."""
        waits = [bucket.wait() for bucket in (self._requests, self._tokens) if bucket]
        return max(self._opens - self._clock.monotonic(), *waits, 0.0)

    def _ease(self, begun: int, asked: float) -> None:
        """Fewer at once. All that were in flight may fail together: they count as one."""
        now = self._clock.monotonic()
        self._opens = max(self._opens, now + min(asked, LONGEST_ASKED))
        self._answers = 0
        if begun == self._round:
            self._round += 1
            self.limit = max(self.limit // 2, 1)

    def _climb(self) -> None:
        """One more at once, after as many answers in a row as there are attempts at once."""
        self._answers += 1
        if self._answers >= self.limit and self.limit < self.workers:
            self._answers = 0
            self.limit += 1


class _Bucket:
    """Fills evenly, and holds no more than a second's worth: no minute gets much too much."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._clock, self._rate = clock, per_minute / 60
        self._size = max(self._rate, 1.0)
        self._level, self._seen = self._size, clock.monotonic()

    def take(self, amount: float) -> None:
        """Take it, even if it is not there: it has been used already."""
        self._level = self._filled() - amount

    def wait(self) -> float:
        """Seconds until there is one to take."""
        missing = 1.0 - self._filled()
        return missing / self._rate if missing > _NEARLY else 0.0

    def _filled(self) -> float:
        now = self._clock.monotonic()
        self._level = min(self._level + (now - self._seen) * self._rate, self._size)
        self._seen = now
        return self._level
