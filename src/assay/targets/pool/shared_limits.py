"""Rate limits of a target that several processes ask: they take slots in time from the store.

Slots are evenly spaced, so that no span of time has more requests than the rate. A process takes
slots for what waits right now, for a second at most: if it dies, only those are lost.
"""

from __future__ import annotations

import asyncio
from functools import partial
from hashlib import sha256
from typing import Any

from assay.store_parts import Permits
from assay.targets.pool.rate_limits import RateLimiter
from assay.targets.pool.retries import LONGEST_ASKED, Clock
from assay.threads import call_in_thread

#: The rate of a target without a limit: its slots only make all wait that it asked to.
_UNLIMITED = 1e6


class SharedRateLimiter(RateLimiter):
    """The rates hold for all processes together, the number of workers for this one."""

    def __init__(
        self,
        clock: Clock,
        workers: int,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        *,
        permits: Permits,
        target: str,
    ) -> None:
        super().__init__(clock, workers)
        self._permits = permits
        #: A name that shows nothing of the target's settings.
        self._name = sha256(target.encode()).hexdigest()
        self._per_second = (requests_per_minute or 60 * _UNLIMITED) / 60
        self._tokens_per_second = tokens_per_minute and tokens_per_minute / 60
        self._waiting: list[asyncio.Future[float]] = []
        self._buying: asyncio.Task[None] | None = None

    def charge(self, requests: int, tokens: int) -> None:
        if requests > 0:
            self._call(self._permits.take, self._name, requests, self._per_second)
        if tokens and self._tokens_per_second:
            self._call(self._permits.take, self._tokens_name, tokens, self._tokens_per_second)

    @property
    def _tokens_name(self) -> str:
        return f"{self._name} tokens"

    async def _enter(self) -> None:
        await super()._enter()
        try:
            begin = await self._slot()
            while (wait := begin - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait)
        except BaseException:
            self.in_flight -= 1
            self._changed.set()
            raise

    async def _slot(self) -> float:
        """When an attempt may begin, by the clock of this process."""
        slot: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        if self._buying is None or self._buying.done():
            self._buying = asyncio.create_task(self._buy())
        return await slot

    async def _buy(self) -> None:
        """Take slots for all attempts that wait, a second's worth at a time."""
        while self._waiting:
            most = max(int(min(self._per_second, len(self._waiting))), 1)
            slots, self._waiting = self._waiting[:most], self._waiting[most:]
            try:
                first = await asyncio.wrap_future(call_in_thread(partial(self._take, len(slots))))
            except Exception as error:  # of the store: it belongs to the attempts
                for slot in slots:
                    if not slot.done():
                        slot.set_exception(error)
                continue
            begin = self._clock.monotonic() + first
            for number, slot in enumerate(slots):
                if not slot.done():
                    slot.set_result(begin + number / self._per_second)
            await self._clock.sleep(max(first - 1.0, 0.0))

    def _take(self, number: int) -> float:
        wait = self._permits.take(self._name, number, self._per_second)
        if self._tokens_per_second:
            wait = max(wait, self._permits.take(self._tokens_name, 0, self._tokens_per_second))
        return wait

    def _slow_down(self, begun: int, retry_after: float) -> None:
        super()._slow_down(begun, retry_after)
        if retry_after:
            self._call(self._permits.hold, self._name, min(retry_after, LONGEST_ASKED))

    def _call(self, function: Any, *arguments: Any) -> None:
        """Nothing waits for this; if the store has failed, the next slot cannot be taken."""
        call_in_thread(partial(function, *arguments))
