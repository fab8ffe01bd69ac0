"""Coroutines that are awaited apart: what hangs can be left, and nothing else changes."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from assay import threads
from assay.threads import CallerLoop, CoroutineRunner, IsolatedLoop, call_in_thread, in_thread
from timeouts import WAIT_SECONDS

#: Short, for what is known to hang; all else has the whole grace.
SHORT = 0.05
#: For a loop that is to notice within this time more than the grace.
NOTICED = 1.0
PLACES: list[Callable[[float], CoroutineRunner]] = [CallerLoop, IsolatedLoop]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


async def loop_of_it() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def left(
    place: CoroutineRunner, start: Callable[[], Awaitable[Any]], begun: threading.Event
) -> None:
    """Ask, and be cancelled as soon as it has begun."""
    asking = asyncio.ensure_future(place.outcome(start))
    assert await asyncio.to_thread(begun.wait, WAIT_SECONDS)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


class Stubborn:
    """Does not let itself be cancelled until it is released."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()
        self.task: asyncio.Task[Any] | None = None

    async def __call__(self) -> None:
        self.task = asyncio.current_task()
        self.begun.set()
        while self.task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        self.over.set()

    def release(self, loop: asyncio.AbstractEventLoop) -> None:
        task, self.task = self.task, None
        assert task is not None
        loop.call_soon_threadsafe(task.cancel)


class Blocking:
    """Blocks its loop until it is released."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self.thread = threading.current_thread()

    async def __call__(self) -> str:
        self.thread = threading.current_thread()
        self.begun.set()
        self.release.wait(WAIT_SECONDS)
        return "at last"


def test_all_questions_are_on_one_loop_of_their_own_in_a_daemon_thread() -> None:
    threads = []

    async def asked() -> asyncio.AbstractEventLoop:
        threads.append(threading.current_thread())
        return asyncio.get_running_loop()

    async def work() -> None:
        place = IsolatedLoop()
        first, second = await place.outcome(asked), await place.outcome(asked)
        assert first[:2] == second[:2]
        assert first[0] is not asyncio.get_running_loop()
        await place.close()

    run(work())
    assert {thread.daemon for thread in threads} == {True}
    threads[0].join(WAIT_SECONDS)
    assert not threads[0].is_alive()


@pytest.mark.parametrize("place", PLACES)
def test_a_coroutine_sees_the_context_of_its_caller(
    place: Callable[[float], CoroutineRunner],
) -> None:
    name = contextvars.ContextVar[str]("name")

    async def asked() -> str:
        return name.get()

    async def work() -> None:
        name.set("Ada")
        there = place(WAIT_SECONDS)
        assert (await there.outcome(asked))[:2] == ("Ada", None)
        await there.close()

    run(work())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("raised", [ValueError, SystemExit, asyncio.CancelledError])
def test_an_exception_is_part_of_the_outcome(
    place: Callable[[float], CoroutineRunner], raised: type[BaseException]
) -> None:
    async def asked() -> None:
        raise raised("no")

    async def work() -> None:
        there = place(WAIT_SECONDS)
        said, error, _ = await there.outcome(asked)
        assert said is None
        assert isinstance(error, raised)
        await there.close()

    run(work())


@pytest.mark.parametrize("place", PLACES)
def test_a_cancelled_caller_waits_for_the_cleanup(
    place: Callable[[float], CoroutineRunner],
) -> None:
    begun, seen = threading.Event(), []

    async def asked() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    async def work() -> None:
        there = place(WAIT_SECONDS)
        await left(there, asked, begun)
        assert seen == ["cleaned up"]
        await there.close()

    run(work())


@pytest.mark.parametrize("place", PLACES)
def test_a_cancelled_caller_does_not_wait_for_a_coroutine_that_ignores_it(
    place: Callable[[float], CoroutineRunner],
) -> None:
    async def work() -> None:
        there, stubborn = place(NOTICED), Stubborn()
        loop, *_ = await there.outcome(loop_of_it)
        await left(there, stubborn, stubborn.begun)
        assert not stubborn.over.is_set()
        assert (await there.outcome(loop_of_it))[:2] == (loop, None)
        await there.close()
        assert not stubborn.over.is_set()
        stubborn.release(loop)
        assert await asyncio.to_thread(stubborn.over.wait, WAIT_SECONDS)

    run(work())


def test_a_loop_with_a_task_that_is_not_cancelled_ends_after_it() -> None:
    stubborn, threads = Stubborn(), []

    async def asked() -> None:
        threads.append(threading.current_thread())
        await stubborn()

    async def work() -> None:
        place = IsolatedLoop(SHORT)
        loop, *_ = await place.outcome(loop_of_it)
        await left(place, asked, stubborn.begun)
        await place.close()
        stubborn.release(loop)

    run(work())
    threads[0].join(WAIT_SECONDS)
    assert not threads[0].is_alive()


def test_the_loop_is_shared_until_the_last_user_closes_it() -> None:
    async def work() -> None:
        place = IsolatedLoop()
        one, other = place.join(), place.join()
        loop, *_ = await one.outcome(loop_of_it)
        await one.close()
        assert (await other.outcome(loop_of_it))[:2] == (loop, None)
        await other.close()
        again, *_ = await place.join().outcome(loop_of_it)
        assert again is not loop
        await place.close()

    run(work())


def test_a_project_that_stops_the_loop_does_not_end_it() -> None:
    async def asked() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "still here"

    async def work() -> None:
        place = IsolatedLoop()
        for _ in range(3):
            assert (await place.outcome(asked))[:2] == ("still here", None)
        await place.close()

    run(work())


def test_a_loop_that_is_blocked_is_left_and_ends_when_it_comes_free() -> None:
    blocking = Blocking()

    async def work() -> None:
        place = IsolatedLoop(SHORT)
        stuck, *_ = await place.outcome(loop_of_it)
        other = asyncio.ensure_future(place.outcome(blocking))
        await left(place, blocking, blocking.begun)
        loop, error, _ = await place.outcome(loop_of_it)
        assert error is None
        assert loop is not stuck
        blocking.release.set()
        assert (await other)[:2] == ("at last", None)
        await place.close()

    run(work())
    blocking.thread.join(WAIT_SECONDS)
    assert not blocking.thread.is_alive()


def test_closing_does_not_wait_for_a_loop_that_is_blocked() -> None:
    blocking = Blocking()

    async def work() -> None:
        place = IsolatedLoop(SHORT)
        asking = asyncio.ensure_future(place.outcome(blocking))
        assert await asyncio.to_thread(blocking.begun.wait, WAIT_SECONDS)
        await place.close()
        blocking.release.set()
        assert (await asking)[:2] == ("at last", None)

    run(work())
    blocking.thread.join(WAIT_SECONDS)
    assert not blocking.thread.is_alive()


def test_background_tasks_are_cancelled_at_the_end() -> None:
    seen: list[str] = []
    kept = []

    async def beside() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async def asked() -> None:
        kept.append(asyncio.ensure_future(beside()))
        await asyncio.sleep(0)

    async def work() -> None:
        place = IsolatedLoop(WAIT_SECONDS)
        await place.outcome(asked)
        await place.close()

    run(work())
    assert seen == ["cancelled"]


def test_an_exit_in_a_background_task_does_not_end_the_loop() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def asked() -> str:
        with pytest.raises(SystemExit):
            await asyncio.ensure_future(leave())
        return "here"

    async def work() -> None:
        place = IsolatedLoop(WAIT_SECONDS)
        assert (await place.outcome(asked))[:2] == ("here", None)
        await place.close()

    run(work())


def test_calls_in_threads_hold_up_no_exit() -> None:
    async def asked() -> threading.Thread:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        return await asyncio.to_thread(threading.current_thread)

    async def work() -> None:
        place = IsolatedLoop(WAIT_SECONDS)
        thread, *_ = await place.outcome(asked)
        assert thread.daemon
        await place.close()

    run(work())


# Functions


def test_threads_are_used_again_and_measure_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool())

    async def work() -> None:
        first, again = await in_thread(threading.get_ident), await in_thread(threading.get_ident)
        assert first.value == again.value != threading.get_ident()
        slow = await in_thread(time.sleep, 0.02)
        assert slow.duration_ms >= 20

    run(work())


def test_the_duration_of_a_call_does_not_include_a_busy_event_loop() -> None:
    """The loop is blocked until long after the call has returned."""

    async def work() -> None:
        returned, went_on = threading.Event(), time.perf_counter()
        calling = asyncio.ensure_future(in_thread(returned.set))
        while not returned.is_set():
            await asyncio.sleep(0)
        while time.perf_counter() < went_on + 0.2:
            pass
        assert (await calling).duration_ms < 200

    run(work())


def test_no_call_waits_for_another_one() -> None:
    async def work() -> None:
        release = threading.Event()
        hanging = [asyncio.ensure_future(in_thread(release.wait, WAIT_SECONDS)) for _ in range(20)]
        await asyncio.sleep(0)
        assert (await in_thread(lambda: "here")).value == "here"
        assert not any(call.done() for call in hanging)
        release.set()
        assert all(outcome.value for outcome in await asyncio.gather(*hanging))

    run(work())


def test_a_call_starts_after_the_coroutines_that_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class InlinePool:
        def submit(self, call: threads.Call) -> None:
            report = call()
            assert report is not None
            report()

    async def work() -> None:
        begun: list[str] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(in_thread(begun.append, "call"))
            group.create_task(ready(begun))
        assert begun == ["ready", "call"]

    async def ready(begun: list[str]) -> None:
        begun.append("ready")

    monkeypatch.setattr(threads, "_pool", InlinePool())
    run(work())


def test_a_call_is_made_even_if_it_is_cancelled_at_once() -> None:
    async def work() -> None:
        called = threading.Event()
        calling = asyncio.ensure_future(in_thread(called.set))
        await asyncio.sleep(0)
        calling.cancel()
        assert await asyncio.to_thread(called.wait, WAIT_SECONDS)
        with pytest.raises(asyncio.CancelledError):
            await calling

    run(work())


def test_outcomes_that_arrive_together_are_all_delivered() -> None:
    async def work() -> None:
        for _ in range(50):
            outcomes = await asyncio.gather(*(in_thread(str, number) for number in range(20)))
            assert [outcome.value for outcome in outcomes] == [str(n) for n in range(20)]

    run(work())


def test_a_callback_of_a_call_may_wait_for_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    release, seen = threading.Event(), Future[str]()
    first = call_in_thread(lambda: release.wait(WAIT_SECONDS))
    first.add_done_callback(
        lambda _: seen.set_result(call_in_thread(lambda: "here").result(WAIT_SECONDS))
    )
    release.set()
    assert seen.result(WAIT_SECONDS) == "here"


def test_a_thread_without_a_call_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.0)

    async def work() -> None:
        thread = (await in_thread(threading.current_thread)).value
        await asyncio.to_thread(thread.join, WAIT_SECONDS)
        assert not thread.is_alive()
        assert (await in_thread(threading.current_thread)).value is not thread

    run(work())
