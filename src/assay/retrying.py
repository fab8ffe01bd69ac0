"""Asking again: a target around a target, for errors that may pass."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import Protocol

from assay.errors import TargetError
from assay.model.observation import Observation
from assay.ports import Request, Target


class Clock(Protocol):
    """Time, so that tests need not spend any."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The time of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to ask again, and how long to wait before: `first` seconds, doubling.

    `longest` is where the doubling stops. `longest_asked` is the limit of a wait that the target
    asked for: a run that sleeps for an hour looks like one that hangs.
    """

    max_retries: int = 3
    first: float = 1.0
    longest: float = 60.0
    longest_asked: float = 300.0

    def wait(self, retry: int, asked: float | None, random: Random) -> float:
        """Seconds to wait before a retry, counted from 0.

        The jitter is full, from nothing to the whole wait, so that requests which failed
        together do not come back together; but never before the time that the target asked for.
        """
        ceiling = min(self.first * 2.0 ** min(retry, 64), self.longest)
        return max(random.uniform(0, ceiling), min(asked or 0.0, self.longest_asked))


class Retrying:
    """A target that asks another one again when its error is retryable."""

    def __init__(
        self,
        target: Target,
        policy: RetryPolicy,
        clock: Clock,
        random: Random | None = None,
        identity: str = "",
    ) -> None:
        self.name = target.name
        #: All settings that an answer depends on, where they are known; the name tells less.
        self.identity = identity or target.name
        self.target, self._policy, self._clock = target, policy, clock
        self._random = random or Random()

    async def ask(self, request: Request) -> Observation:
        started = self._clock.monotonic()
        retries = 0
        while True:
            try:
                return await self.target.ask(request)
            except TargetError as error:
                if not error.retryable or retries >= self._policy.max_retries:
                    if retries == 0:
                        raise
                    spent = self._clock.monotonic() - started
                    raise _given_up(error, retries + 1, spent) from error
                wait = self._policy.wait(retries, error.retry_after, self._random)
            await self._clock.sleep(wait)
            retries += 1

    async def close(self) -> None:
        await self.target.close()


def _given_up(error: TargetError, attempts: int, seconds: float) -> TargetError:
    return TargetError(
        f"{error} (gave up after {attempts} attempts in {seconds:.1f} s)",
        retryable=error.retryable,
        retry_after=error.retry_after,
    )
