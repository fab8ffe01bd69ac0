"""Asking again: when, how long to wait before, and what is said in the end."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from assay.errors import TargetError
from assay.model.message import Message
from assay.model.observation import Observation
from assay.ports import Request, Target
from assay.retrying import Retrying, RetryPolicy, SystemClock

REQUEST = Request((Message("user", "Hi"),))


class FakeClock:
    """Sleeping moves its hands and takes no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Highest(Random):
    """Jitter at its highest, so that waits are round numbers."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Flaky:
    """Raises these errors in order, then answers."""

    name = "flaky"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked = 0
        self.closed = False

    async def ask(self, request: Request) -> Observation:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return Observation("fine")

    async def close(self) -> None:
        self.closed = True


def busy(after: float | None = None) -> TargetError:
    return TargetError("busy", retryable=True, retry_after=after)


def waits(
    *errors: Exception, policy: RetryPolicy | None = None, random: Random | None = None
) -> list[float]:
    """How long a target that answers in the end was waited for."""
    clock = FakeClock()
    target: Target = Retrying(Flaky(*errors), policy or RetryPolicy(), clock, random or Highest())
    assert asyncio.run(target.ask(REQUEST)).response == "fine"
    return clock.slept


def test_an_answer_is_passed_on_without_waiting() -> None:
    assert waits() == []


def test_waits_double_and_stop_growing_at_the_longest() -> None:
    policy = RetryPolicy(max_retries=5, first=1.0, longest=6.0)
    assert waits(*(busy() for _ in range(5)), policy=policy) == [1, 2, 4, 6, 6]


def test_a_thousand_retries_do_not_overflow() -> None:
    policy = RetryPolicy(max_retries=2000)
    assert waits(*(busy() for _ in range(2000)), policy=policy)[-1] == 60


def test_jitter_is_full_and_comes_from_the_given_random() -> None:
    policy = RetryPolicy(max_retries=400, first=10.0, longest=10.0)
    slept = waits(*(busy() for _ in range(400)), policy=policy, random=Random(1))
    assert 0 <= min(slept) < 1
    assert 9 < max(slept) <= 10
    assert slept == waits(*(busy() for _ in range(400)), policy=policy, random=Random(1))


def test_retry_after_is_a_lower_limit_and_is_obeyed_up_to_five_minutes() -> None:
    assert waits(busy(after=7.0), busy(after=0.5), busy(after=120.0)) == [7, 2, 120]
    assert waits(busy(after=3600.0)) == [300]


def test_an_error_that_will_not_pass_is_raised_at_once_and_unchanged() -> None:
    clock, refused = FakeClock(), TargetError("no such key")
    target = Retrying(Flaky(refused), RetryPolicy(), clock)
    with pytest.raises(TargetError) as caught:
        asyncio.run(target.ask(REQUEST))
    assert caught.value is refused
    assert clock.slept == []


def test_the_last_error_says_how_many_attempts_were_made() -> None:
    flaky = Flaky(*(busy() for _ in range(9)))
    target = Retrying(flaky, RetryPolicy(max_retries=3), FakeClock(), Highest())
    message = r"^busy \(gave up after 4 attempts in 7\.0 s\)$"
    with pytest.raises(TargetError, match=message) as caught:
        asyncio.run(target.ask(REQUEST))
    assert flaky.asked == 4
    assert caught.value.retryable


def test_attempts_are_counted_when_a_lasting_error_follows_a_passing_one() -> None:
    target = Retrying(Flaky(busy(), TargetError("no")), RetryPolicy(), FakeClock(), Highest())
    with pytest.raises(TargetError, match=r"no \(gave up after 2 attempts") as caught:
        asyncio.run(target.ask(REQUEST))
    assert not caught.value.retryable


def test_no_retries_means_one_attempt() -> None:
    flaky = Flaky(busy())
    with pytest.raises(TargetError, match=r"^busy$"):
        asyncio.run(Retrying(flaky, RetryPolicy(max_retries=0), FakeClock()).ask(REQUEST))
    assert flaky.asked == 1


def test_other_exceptions_are_not_retried() -> None:
    flaky = Flaky(KeyError("bug"))
    with pytest.raises(KeyError):
        asyncio.run(Retrying(flaky, RetryPolicy(), FakeClock()).ask(REQUEST))
    assert flaky.asked == 1


def test_it_has_the_name_of_its_target_and_closes_it() -> None:
    flaky = Flaky()
    target = Retrying(flaky, RetryPolicy(), FakeClock())
    asyncio.run(target.close())
    assert target.name == "flaky"
    assert flaky.closed


def test_the_clock_of_the_machine_sleeps() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    asyncio.run(clock.sleep(0.01))
    assert clock.monotonic() - before >= 0.009
