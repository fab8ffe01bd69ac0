"""The gate in front of a target: how many at once, how many a minute, and when to hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from assay.errors import TargetError
from assay.targets.pool.rate_limits import RateLimiter
from assay.targets.pool.retries import LONGEST_ASKED
from unit.virtual_time import LoopClock, at_once


def busy(after: float | None = None) -> TargetError:
    return TargetError("busy", retryable=True, retry_after=after, overloaded=True)


def gate(
    workers: int = 100, requests: float | None = None, tokens: float | None = None
) -> RateLimiter:
    return RateLimiter(LoopClock(), workers, requests, tokens)


async def passes(gate: RateLimiter, *, takes: float = 0.0, tokens: int = 0) -> float:
    """When an attempt was let in."""
    async with gate.attempt():
        began = LoopClock().monotonic()
        await asyncio.sleep(takes)
        gate.charge(0, tokens)
        return began


async def fails(gate: RateLimiter, error: Exception, takes: float = 0.0) -> None:
    async def attempt() -> None:
        async with gate.attempt():
            await asyncio.sleep(takes)
            raise error

    with pytest.raises(type(error)):
        await attempt()


def times(test: Callable[[], Awaitable[list[float]]]) -> list[float]:
    async def run() -> list[float]:
        return [round(each, 3) for each in await test()]

    return at_once(run())


def test_no_more_than_the_workers_are_let_in_and_in_the_order_they_came() -> None:
    async def run() -> list[float]:
        narrow = gate(2)
        return await asyncio.gather(*(passes(narrow, takes=3) for _ in range(5)))

    assert times(run) == [0, 0, 3, 3, 6]


def test_a_cancelled_request_leaves_the_queue_and_its_slot() -> None:
    async def run() -> list[float]:
        narrow = gate(1)
        tasks = [asyncio.create_task(passes(narrow, takes=10)) for _ in range(4)]
        await asyncio.sleep(1)
        tasks[0].cancel()
        tasks[1].cancel()
        await asyncio.wait(tasks)
        assert narrow.in_flight == 0
        assert tasks[0].cancelled()
        assert tasks[1].cancelled()
        return [await task for task in tasks[2:]]

    assert times(run) == [1, 11]


def test_an_overload_halves_the_limit_and_answers_raise_it_again() -> None:
    async def run() -> list[float]:
        wide, limits = gate(8), []
        for _ in range(4):
            await fails(wide, busy())
            limits.append(float(wide.limit))
        for _ in range(40):
            await passes(wide)
            limits.append(float(wide.limit))
        return limits

    seen = times(run)
    assert seen[:4] == [4, 2, 1, 1]
    climbed = [seen.index(limit, 4) - 3 for limit in range(2, 9)]
    assert climbed == [1, 3, 6, 10, 15, 21, 28]  # each after a round of answers
    assert max(seen) == 8


def test_concurrent_overloads_count_as_one() -> None:
    async def run() -> list[float]:
        wide = gate(8)
        await asyncio.gather(*(fails(wide, busy(), takes=1) for _ in range(8)))
        return [wide.limit]

    assert times(run) == [4]


def test_an_answer_to_a_request_before_the_overload_does_not_raise_the_limit() -> None:
    async def run() -> list[float]:
        wide = gate(2)
        await asyncio.gather(fails(wide, busy()), passes(wide, takes=1))
        return [wide.limit]

    assert times(run) == [1]


def test_answers_before_an_overload_do_not_count_after_it() -> None:
    async def run() -> list[float]:
        wide = gate(8)
        await fails(wide, busy())
        for _ in range(3):
            await passes(wide)
        await fails(wide, busy())
        await passes(wide)
        return [wide.limit]

    assert times(run) == [2]


def test_other_errors_change_nothing() -> None:
    async def run() -> list[float]:
        wide = gate(4)
        await fails(wide, TargetError("no such model"))
        await fails(wide, KeyError("bug"))
        return [wide.limit, wide.in_flight]

    assert times(run) == [4, 0]


def test_a_smaller_limit_applies_to_queued_requests() -> None:
    async def run() -> list[float]:
        wide = gate(4)
        failing = asyncio.create_task(fails(wide, busy(), takes=1))
        begun = asyncio.gather(*(passes(wide, takes=10) for _ in range(6)))
        await failing
        return await begun

    assert times(run) == [0, 0, 0, 10, 10, 20]


def test_no_request_starts_before_the_retry_after_time() -> None:
    async def run() -> list[float]:
        wide = gate(10)
        await fails(wide, busy(after=7))
        first = await passes(wide)
        await asyncio.gather(fails(wide, busy(after=9)), fails(wide, busy(after=2)))
        return [first, *await asyncio.gather(passes(wide), passes(wide))]

    assert times(run) == [7, 16, 16]


def test_a_request_that_waits_for_a_slot_also_waits_for_the_retry_after_time() -> None:
    async def run() -> list[float]:
        narrow = gate(1)
        failing = asyncio.create_task(fails(narrow, busy(after=5), takes=2))
        await asyncio.sleep(1)
        began = await passes(narrow)
        await failing
        return [began]

    assert times(run) == [7]


def test_a_long_retry_after_is_capped() -> None:
    async def run() -> list[float]:
        wide = gate()
        await fails(wide, busy(after=3600))
        return [await passes(wide)]

    assert times(run) == [LONGEST_ASKED]


def test_requests_are_spread_over_the_minute() -> None:
    async def run() -> list[float]:
        slow = gate(requests=120)
        return await asyncio.gather(*(passes(slow) for _ in range(6)))

    assert times(run) == [0, 0, 0.5, 1, 1.5, 2]


def test_a_pause_earns_no_more_than_a_second() -> None:
    async def run() -> list[float]:
        slow = gate(requests=120)
        await asyncio.sleep(3600)
        return await asyncio.gather(*(passes(slow) for _ in range(4)))

    assert times(run) == [3600, 3600, 3600.5, 3601]


def test_less_than_one_a_second_lets_the_first_in_at_once() -> None:
    async def run() -> list[float]:
        slow = gate(requests=6)
        return [await passes(slow) for _ in range(3)]

    assert times(run) == [0, 10, 20]


def test_tokens_are_charged_once_known_and_the_next_request_waits() -> None:
    async def run() -> list[float]:
        slow = gate(tokens=6000)  # 100 a second
        first = await asyncio.gather(*(passes(slow, takes=1, tokens=1000) for _ in range(2)))
        return [*first, await passes(slow), await passes(slow)]

    assert times(run) == [0, 0, 1 + 19.01, 1 + 19.01]


def test_further_requests_of_an_attempt_are_charged_too() -> None:
    async def run() -> list[float]:
        slow = gate(requests=60)
        async with slow.attempt():
            slow.charge(4, 0)
        return [await passes(slow)]

    assert times(run) == [5]


def test_a_rate_limiter_can_be_used_in_several_loops_in_turn() -> None:
    class Still(LoopClock):
        def monotonic(self) -> float:
            return 0.0

    narrow = RateLimiter(Still(), 1)

    async def run() -> list[float]:
        return await asyncio.gather(*(passes(narrow, takes=1) for _ in range(3)))

    assert times(run) == times(run) == [0, 1, 2]
