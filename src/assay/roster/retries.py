"""Asking again: a target around a target, for errors that may pass.

A question has a time limit for all of its attempts and the pauses between them. What does not
count is time for which nobody but a rate limit is to blame: waiting at the gate, and for as long
as the target asked to be left alone.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from random import Random
from typing import Any, Protocol

import msgspec

from assay.errors import ObservationError, TargetError
from assay.model.observation import Observation
from assay.observations.checked import checked
from assay.ports import Request, Target

#: The longest wait, in seconds, that a target may ask for: a run that sleeps for an hour looks
#: like one that hangs.
LONGEST_ASKED = 300.0


class Clock(Protocol):
    """Time, so that tests need not spend any."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> asyncio.Timeout:
        """Ends what is done inside it after this time."""
        ...


class SystemClock:
    """The time of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(seconds)


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often to ask again, and how long to wait before: `first` seconds, doubling.

    `longest` is where the doubling stops. `longest_asked` is the limit of a wait that the target
    asked for. `timeout` is for all attempts of a question together.
    """

    max_retries: int = 3
    first: float = 1.0
    longest: float = 60.0
    longest_asked: float = LONGEST_ASKED
    timeout: float | None = None

    def patient(self, attempt: float | None) -> RetryPolicy:
        """This policy, with time enough for one attempt that may take so many seconds."""
        if self.timeout is None or attempt is None or attempt <= self.timeout:
            return self
        return msgspec.structs.replace(self, timeout=attempt)

    def pause(self, retry: int, random: Random) -> float:
        """Seconds to wait before a retry, counted from 0.

        The jitter is full, from nothing to the whole wait, so that requests which failed
        together do not come back together.
        """
        return random.uniform(0, min(self.first * 2.0 ** min(retry, 64), self.longest))

    def asked(self, error: TargetError) -> float:
        """Seconds that the target asked for: we never come back before."""
        return min(error.retry_after or 0.0, self.longest_asked)


class Gate(Protocol):
    """Says when an attempt may begin; `assay.roster.rate.RateGate` is one."""

    def attempt(self) -> AbstractAsyncContextManager[None]:
        """Entered when the attempt may begin; it sees the attempt's error, if any."""
        ...

    def charge(self, requests: int, tokens: int) -> None:
        """What an attempt took beside its one request, known when it is over."""
        ...


class Open:
    """The gate where there is none."""

    def attempt(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def charge(self, requests: int, tokens: int) -> None: ...


class Effort(msgspec.Struct):
    """What a question has taken so far; it is true after an error and a cancellation, too.

    `waited` are the seconds that a rate limit took: they are neither the target's time nor
    counted in the time limit.
    """

    attempts: int = 0
    waited: float = 0.0


class Retrying:
    """A target that asks another one again when its error is retryable."""

    def __init__(
        self,
        target: Target,
        policy: RetryPolicy,
        clock: Clock,
        random: Random | None = None,
        identity: str = "",
        gate: Gate | None = None,
    ) -> None:
        self.name = target.name
        #: All settings that an answer depends on, where they are known; the name tells less.
        self.identity = identity or target.name
        #: Who is asked, with the methods that only it has.
        self.target = target
        self._policy, self._clock, self._gate = policy, clock, gate or Open()
        self._random = random or Random()
        #: Is nobody called? Then there is no time to limit, and none to tell.
        self.recorded: bool = getattr(target, "recorded", False)
        self._requests = getattr(target, "requests", _one)

    async def ask(
        self, request: Request, effort: Effort | None = None, timeout: float | None = None
    ) -> Observation:
        """One answer; a new `effort` is kept up to date, and `timeout` wins over the policy's."""
        effort = effort or Effort()
        if self.recorded:
            effort.attempts = 1
            return await self.target.ask(request)
        limit = self._policy.timeout if timeout is None else timeout
        question = _Question(self._clock, effort, limit)
        while True:
            try:
                return await self._attempt(request, question)
            except TargetError as error:
                if error.retryable and effort.attempts <= self._policy.max_retries:
                    question.last = error
                elif question.last is None:
                    raise
                else:
                    raise question.given_up(error) from error
            pause = self._policy.pause(effort.attempts - 1, self._random)
            await question.rest(pause, self._policy.asked(question.last))

    async def close(self) -> None:
        await self.target.close()

    async def _attempt(self, request: Request, question: _Question) -> Observation:
        arrived = self._clock.monotonic()
        async with self._gate.attempt():
            began = self._clock.monotonic()
            question.effort.waited += began - arrived
            question.effort.attempts += 1
            seen = self._checked(await question.within_limit(self.target, request))
            spent = (self._clock.monotonic() - began) * 1000
            tokens = sum(seen.usage.to_dict().values()) if seen.usage else 0
            self._gate.charge(self._requests(seen) - 1, tokens)
        return seen if seen.duration_ms is not None else seen.replace(duration_ms=spent)

    def _checked(self, seen: Any) -> Observation:
        """What the target, which may be a stranger's, gave back."""
        try:
            return checked(seen)
        except ObservationError as error:
            raise TargetError(f"{self.name} returned no observation: {error}") from None


def _one(seen: Observation) -> int:
    """How many requests an answer takes of targets that do not say."""
    return 1


class _Question:
    """One question on its way: what it took, and how much of its time is left."""

    def __init__(self, clock: Clock, effort: Effort, timeout: float | None) -> None:
        self.effort = effort
        #: The error that led to another attempt.
        self.last: TargetError | None = None
        self._clock, self._timeout = clock, timeout
        self._began = clock.monotonic()

    async def within_limit(self, target: Target, request: Request) -> Observation:
        left = self._left()
        if left is None:
            return await target.ask(request)
        limit = self._clock.timeout(max(left, 0.0))
        try:
            async with limit:
                return await target.ask(request)
        except TimeoutError:
            if limit.expired():
                raise self._too_late() from None
            raise

    async def rest(self, pause: float, asked: float) -> None:
        """Leave the target alone: for as long as it asked, and not shorter than the pause."""
        counted, left = max(pause - asked, 0.0), self._left()
        if left is not None and counted >= left:  # nobody could be asked after it
            raise self.given_up(self._too_late())
        await self._clock.sleep(asked + counted)
        self.effort.waited += asked

    def given_up(self, error: TargetError) -> TargetError:
        # Without the time it took: cases with the same words are reported together.
        tried = "1 attempt" if self.effort.attempts == 1 else f"{self.effort.attempts} attempts"
        return error.reworded(f"{error} (gave up after {tried})")

    def _left(self) -> float | None:
        if self._timeout is None:
            return None
        return self._timeout - (self._clock.monotonic() - self._began - self.effort.waited)

    def _too_late(self) -> TargetError:
        message = f"no answer within {self._timeout:g} s"
        if self.last is not None:
            message += f"; before that: {self.last}"
        return TargetError(message, unreachable=True)
