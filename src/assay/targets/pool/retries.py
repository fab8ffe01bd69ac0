"""Retries: a target that wraps another one and repeats requests after transient errors.

The timeout of a question covers all of its attempts and the pauses between them. Time spent on
rate limits does not count: waiting for a slot, and for as long as the target asked to wait.
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
from assay.observations.validation import checked
from assay.ports import Request, Target
from assay.text import count

#: The longest wait, in seconds, that a target may ask for. A run that sleeps for an hour would
#: seem to hang.
LONGEST_ASKED = 300.0


class Clock(Protocol):
    """The time, which tests replace so that they need not wait."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> asyncio.Timeout:
        """A context manager as `asyncio.timeout`."""
        ...


class SystemClock:
    """Real time."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(seconds)


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often to retry, and how long to wait before: `first` seconds, doubled each time.

    `longest` limits that wait, `longest_asked` the wait that a target asks for. `timeout` is for
    all attempts of a question together.
    """

    max_retries: int = 3
    first: float = 1.0
    longest: float = 60.0
    longest_asked: float = LONGEST_ASKED
    timeout: float | None = None

    def allowing(self, attempt: float | None) -> RetryPolicy:
        """This policy with a timeout that is not shorter than that of one attempt."""
        if self.timeout is None or attempt is None or attempt <= self.timeout:
            return self
        return msgspec.structs.replace(self, timeout=attempt)

    def pause(self, retry: int, random: Random) -> float:
        """Seconds to wait before a retry, counted from 0.

        With full jitter, so that requests which failed together are not repeated together.
        """
        return random.uniform(0, min(self.first * 2.0 ** min(retry, 64), self.longest))

    def asked(self, error: TargetError) -> float:
        """Seconds that the target asked us to wait at least."""
        return min(error.retry_after or 0.0, self.longest_asked)


class Limiter(Protocol):
    """Decides when an attempt may begin, as `assay.targets.pool.rate_limits.RateLimiter` does."""

    def attempt(self) -> AbstractAsyncContextManager[None]:
        """Entered when the attempt may begin; it sees the error of the attempt, if any."""
        ...

    def charge(self, requests: int, tokens: int) -> None:
        """Charge what an attempt used beyond its one request, known when it is over."""
        ...


class NoLimits:
    """A limiter without limits."""

    def attempt(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def charge(self, requests: int, tokens: int) -> None: ...


class Effort(msgspec.Struct):
    """What a question has taken so far; also correct after an error or a cancellation.

    `waited` are the seconds spent on rate limits, which count neither as the target's time nor
    towards the timeout.
    """

    attempts: int = 0
    waited: float = 0.0


class RetryingTarget:
    """Wraps a target, and asks it again after a retryable error."""

    def __init__(
        self,
        target: Target,
        policy: RetryPolicy,
        clock: Clock,
        random: Random | None = None,
        identity: str = "",
        limiter: Limiter | None = None,
        confirm: int | None = None,
    ) -> None:
        self.name = target.name
        #: How often its settings let it be asked again about a lost case; None is the default.
        self.confirm = confirm
        #: Stands for all settings that an answer depends on, if they are known.
        self.identity = identity or target.name
        #: The wrapped target, for methods that only it has.
        self.target = target
        self._policy, self._clock, self._limiter = policy, clock, limiter or NoLimits()
        self._random = random or Random()
        #: Are the answers recorded? Then there are no timeouts and no durations.
        self.recorded: bool = getattr(target, "recorded", False)
        self._requests = getattr(target, "requests", _one_request)

    async def ask(
        self, request: Request, effort: Effort | None = None, timeout: float | None = None
    ) -> Observation:
        """One answer. A new `effort` is kept up to date, and `timeout` overrides the policy's."""
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
                    question.last_error = error
                elif question.last_error is None:
                    raise
                else:
                    raise question.given_up(error) from error
            pause = self._policy.pause(effort.attempts - 1, self._random)
            await question.pause(pause, self._policy.asked(question.last_error))

    async def close(self) -> None:
        await self.target.close()

    async def _attempt(self, request: Request, question: _Question) -> Observation:
        arrived = self._clock.monotonic()
        async with self._limiter.attempt():
            began = self._clock.monotonic()
            question.effort.waited += began - arrived
            question.effort.attempts += 1
            seen = self._validate(await question.ask(self.target, request))
            spent = (self._clock.monotonic() - began) * 1000
            tokens = sum(seen.usage.to_dict().values()) if seen.usage else 0
            self._limiter.charge(self._requests(seen) - 1, tokens)
        return seen if seen.duration_ms is not None else seen.replace(duration_ms=spent)

    def _validate(self, seen: Any) -> Observation:
        """The observation, validated, as the target may be a plugin."""
        try:
            return checked(seen)
        except ObservationError as error:
            message = f"{self.name} returned an invalid observation: {error.fault}"
            raise TargetError(message) from None


def _one_request(seen: Observation) -> int:
    """The requests per answer of a target that does not count them."""
    return 1


class _Question:
    """A question in progress: what it took, and how much of its timeout is left."""

    def __init__(self, clock: Clock, effort: Effort, timeout: float | None) -> None:
        self.effort = effort
        #: The error that led to the last retry.
        self.last_error: TargetError | None = None
        self._clock, self._timeout = clock, timeout
        self._began = clock.monotonic()

    async def ask(self, target: Target, request: Request) -> Observation:
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

    async def pause(self, pause: float, asked: float) -> None:
        """Wait for the pause, or as long as the target asked if that is longer."""
        counted, left = max(pause - asked, 0.0), self._left()
        if left is not None and counted >= left:  # there would be no time left to ask
            raise self.given_up(self._too_late())
        await self._clock.sleep(asked + counted)
        self.effort.waited += asked

    def given_up(self, error: TargetError) -> TargetError:
        # Without the duration, as cases with the same message are reported together.
        tried = count(self.effort.attempts, "attempt")
        return error.reworded(f"{error} (gave up after {tried})")

    def _left(self) -> float | None:
        if self._timeout is None:
            return None
        return self._timeout - (self._clock.monotonic() - self._began - self.effort.waited)

    def _too_late(self) -> TargetError:
        message = f"no answer within {self._timeout:g} s"
        if self.last_error is not None:
            message += f"; before that: {self.last_error}"
        return TargetError(message, unreachable=True)
