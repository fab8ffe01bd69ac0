"""Asking again: when, how long to wait before, and what is said in the end."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from assay.errors import TargetError
from assay.model.message import Message
from assay.model.observation import Observation, Usage
from assay.ports import Request, Target
from assay.targets.pool.rate_limits import RateLimiter
from assay.targets.pool.retries import Clock, Effort, RetryingTarget, RetryPolicy, SystemClock
from unit.virtual_time import LoopClock, at_once

REQUEST = Request((Message("user", "Hi"),))


class FakeClock:
    """Sleeping moves its hands and takes no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def timeout(self, seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(seconds)


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
    return TargetError("busy", retryable=True, retry_after=after, overloaded=after is not None)


def waits(
    *errors: Exception, policy: RetryPolicy | None = None, random: Random | None = None
) -> list[float]:
    """How long a target that answers in the end was waited for."""
    clock = FakeClock()
    target: Target = RetryingTarget(
        Flaky(*errors), policy or RetryPolicy(), clock, random or Highest()
    )
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
    target = RetryingTarget(Flaky(refused), RetryPolicy(), clock)
    with pytest.raises(TargetError) as caught:
        asyncio.run(target.ask(REQUEST))
    assert caught.value is refused
    assert clock.slept == []


def test_the_last_error_says_how_many_attempts_were_made() -> None:
    flaky = Flaky(*(busy() for _ in range(9)))
    target = RetryingTarget(flaky, RetryPolicy(max_retries=3), FakeClock(), Highest())
    message = r"^busy \(gave up after 4 attempts\)$"
    with pytest.raises(TargetError, match=message) as caught:
        asyncio.run(target.ask(REQUEST))
    assert flaky.asked == 4
    assert caught.value.retryable


def test_attempts_are_counted_when_a_lasting_error_follows_a_passing_one() -> None:
    target = RetryingTarget(Flaky(busy(), TargetError("no")), RetryPolicy(), FakeClock(), Highest())
    with pytest.raises(TargetError, match=r"no \(gave up after 2 attempts") as caught:
        asyncio.run(target.ask(REQUEST))
    assert not caught.value.retryable


def test_no_retries_means_one_attempt() -> None:
    flaky = Flaky(busy())
    with pytest.raises(TargetError, match=r"^busy$"):
        asyncio.run(RetryingTarget(flaky, RetryPolicy(max_retries=0), FakeClock()).ask(REQUEST))
    assert flaky.asked == 1


def test_other_exceptions_are_not_retried() -> None:
    flaky = Flaky(KeyError("bug"))
    with pytest.raises(KeyError):
        asyncio.run(RetryingTarget(flaky, RetryPolicy(), FakeClock()).ask(REQUEST))
    assert flaky.asked == 1


def test_it_has_the_name_of_its_target_and_closes_it() -> None:
    flaky = Flaky()
    target = RetryingTarget(flaky, RetryPolicy(), FakeClock())
    asyncio.run(target.close())
    assert target.name == "flaky"
    assert flaky.closed


def test_the_clock_of_the_machine_sleeps() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    asyncio.run(clock.sleep(0.01))
    assert clock.monotonic() - before >= 0.009


def test_the_last_error_keeps_its_details() -> None:
    gone = TargetError("gone", retryable=True, unreachable=True)
    full = TargetError("full", retryable=True, overloaded=True, retry_after=5.0)
    for error in (gone, full):
        target = RetryingTarget(
            Flaky(error, error), RetryPolicy(max_retries=1), FakeClock(), Highest()
        )
        with pytest.raises(TargetError, match="gave up after 2") as caught:
            asyncio.run(target.ask(REQUEST))
        assert caught.value is not error
        assert vars(caught.value) == vars(error)


# Time


class Slow(Flaky):
    """Takes `takes` seconds for each attempt; `reply` may have a usage and a duration."""

    def __init__(self, takes: float, *errors: Exception, reply: Observation | None = None) -> None:
        super().__init__(*errors)
        self.takes, self.reply = takes, reply or Observation("fine")

    async def ask(self, request: Request) -> Observation:
        await asyncio.sleep(self.takes)
        await super().ask(request)
        return self.reply


def slowly(
    target: Target, policy: RetryPolicy | None = None, effort: Effort | None = None, **more: float
) -> tuple[Observation, float]:
    """The answer, and how long it took."""

    async def run() -> tuple[Observation, float]:
        asking = RetryingTarget(target, policy or RetryPolicy(), LoopClock(), Highest())
        return await asking.ask(REQUEST, effort, **more), LoopClock().monotonic()

    return at_once(run())


def too_late(target: Target, policy: RetryPolicy, effort: Effort | None = None) -> str:
    with pytest.raises(TargetError) as caught:
        slowly(target, policy, effort)
    assert caught.value.unreachable
    assert not caught.value.retryable
    return str(caught.value)


def test_the_duration_is_that_of_the_successful_attempt() -> None:
    seen, spent = slowly(Slow(5.0, busy(), busy(after=100.0)))
    assert seen.duration_ms == pytest.approx(5000)
    assert spent == pytest.approx(5 + 1 + 5 + 100 + 5)


def test_a_duration_that_the_target_reports_is_kept() -> None:
    seen, _ = slowly(Slow(5.0, reply=Observation("fine", duration_ms=3.0)))
    assert seen.duration_ms == 3.0


def test_recorded_answers_are_not_timed() -> None:
    replayed = Slow(5.0)
    replayed.recorded = True  # type: ignore[attr-defined]
    effort = Effort()
    seen, _ = slowly(replayed, RetryPolicy(timeout=1.0), effort)
    assert seen.duration_ms is None
    assert effort.attempts == 1


def test_a_target_that_times_out_is_not_retried() -> None:
    slow = Slow(200.0)
    assert too_late(slow, RetryPolicy(timeout=120.0)) == "no answer within 120 s"
    assert slow.asked == 0


def test_the_limit_is_for_all_attempts_and_the_pauses_between() -> None:
    policy = RetryPolicy(timeout=20.0, first=4.0)
    seen, _ = slowly(Slow(7.9, busy()), policy)
    assert seen.response == "fine"
    message = too_late(Slow(8.1, busy()), policy)
    assert message.startswith("no answer within 20 s; before that: busy (gave up after 2 attempts")


def test_a_pause_that_would_outlast_the_limit_is_not_begun() -> None:
    slow = Slow(5.0, busy(), busy())
    policy = RetryPolicy(timeout=20.0, first=16.0)
    assert "(gave up after 1 attempt)" in too_late(slow, policy)


def test_waits_for_a_rate_limit_do_not_count_and_are_reported() -> None:
    effort = Effort()
    seen, spent = slowly(Slow(9.0, busy(after=100.0)), RetryPolicy(timeout=20.0), effort)
    assert seen.response == "fine"
    assert effort.attempts == 2
    assert effort.waited == pytest.approx(100)
    assert spent == pytest.approx(118)


def test_the_retry_after_part_of_a_pause_does_not_count() -> None:
    effort = Effort()
    policy = RetryPolicy(timeout=15.0, first=8.0)
    slowly(Slow(5.0, busy(after=6.0)), policy, effort)  # 5 + 6 for the target + 2 + 5
    assert effort.waited == pytest.approx(6)
    too_late(Slow(6.6, busy(after=6.0)), policy)


def test_attempts_and_waits_are_known_after_an_error() -> None:
    effort = Effort()
    too_late(Slow(15.0, busy(after=100.0)), RetryPolicy(timeout=20.0), effort)
    assert effort.attempts == 2
    assert effort.waited == pytest.approx(100)


def test_a_question_may_have_a_limit_of_its_own() -> None:
    seen, _ = slowly(Slow(50.0), RetryPolicy(timeout=20.0), timeout=60.0)
    assert seen.response == "fine"
    with pytest.raises(TargetError, match="no answer within 40 s"):
        slowly(Slow(50.0), RetryPolicy(), timeout=40.0)


def test_a_timeout_of_the_target_itself_is_not_ours() -> None:
    with pytest.raises(TimeoutError):
        slowly(Slow(1.0, TimeoutError()), RetryPolicy(timeout=20.0))


def test_a_cancelled_question_is_cancelled() -> None:
    async def run() -> bool:
        asking = RetryingTarget(Slow(50.0), RetryPolicy(timeout=20.0), LoopClock())
        task = asyncio.create_task(asking.ask(REQUEST))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert at_once(run())


# The gate


def gated(target: Target, workers: int, clock: Clock, **rates: float) -> RetryingTarget:
    gate = RateLimiter(clock, workers, **rates)
    return RetryingTarget(target, RetryPolicy(timeout=20.0), clock, Highest(), limiter=gate)


def test_time_in_the_queue_does_not_count_and_is_reported() -> None:
    efforts = [Effort() for _ in range(4)]

    async def run() -> list[Observation]:
        asking = gated(Slow(15.0), 1, LoopClock())
        return await asyncio.gather(*(asking.ask(REQUEST, effort) for effort in efforts))

    seen = at_once(run())
    assert [each.duration_ms for each in seen] == [pytest.approx(15000)] * 4
    assert [round(effort.waited, 3) for effort in efforts] == [0, 15, 30, 45]


def test_a_pausing_request_frees_its_slot() -> None:
    async def run() -> float:
        asking = gated(Slow(1.0, busy(), TargetError("busy", retryable=True)), 1, LoopClock())
        await asyncio.gather(asking.ask(REQUEST), asking.ask(REQUEST))
        return LoopClock().monotonic()

    assert at_once(run()) == pytest.approx(4)  # four attempts; the pauses overlap


def test_an_overload_delays_other_requests_too() -> None:
    effort = Effort()

    async def run() -> None:
        asking = gated(Slow(1.0, busy(after=50.0)), 4, LoopClock())
        first = asyncio.create_task(asking.ask(REQUEST))
        await asyncio.sleep(2)
        await asking.ask(REQUEST, effort)
        await first

    at_once(run())
    assert effort.waited == pytest.approx(49)


def test_tokens_and_further_requests_of_an_answer_are_charged() -> None:
    reply = Observation("fine", usage=Usage(500, 100), llm_calls=3)

    def waited(target: Target, **rates: float) -> float:
        effort = Effort()

        async def run() -> None:
            asking = gated(target, 4, LoopClock(), **rates)
            await asking.ask(REQUEST)
            await asking.ask(REQUEST, effort)

        at_once(run())
        return effort.waited

    assert waited(Slow(0.0, reply=reply), tokens_per_minute=600) == pytest.approx(60, abs=1)
    assert waited(Slow(0.0, reply=reply), requests_per_minute=60) == pytest.approx(1)
    talkative = Slow(0.0, reply=reply)
    talkative.requests = lambda seen: seen.llm_calls  # type: ignore[attr-defined]
    assert waited(talkative, requests_per_minute=60) == pytest.approx(3)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("yes", "it is a str, not an Observation"),
        (Observation("yes", usage={"inputTokens": 1}), "'usage' is a dict, not Usage("),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_return_value_of_a_plugin_is_reported(returned: Any, words: str) -> None:
    class Careless(Flaky):
        async def ask(self, request: Request) -> Observation:
            self.asked += 1
            return returned  # type: ignore[no-any-return]

    target = Careless()
    with pytest.raises(TargetError) as caught:
        asyncio.run(RetryingTarget(target, RetryPolicy(), FakeClock()).ask(REQUEST))
    assert str(caught.value).startswith(f"flaky returned an invalid observation: {words}")
    assert target.asked == 1
