"""A run sees what other processes do to it: they cancel it, or take it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from assay.engine import cancellation
from assay.engine.cancellation import TAKEN_OVER, WAS_CANCELLED, Cancellation, watch
from assay.errors import StoreError
from assay.model.run import CANCELLED, RunRecord
from assay.stores.memory import MemoryStore
from timeouts import WAIT_SECONDS

RUN = RunRecord("run-1", "2026-01-15T10:00:00.000Z", "running", "agent")


class Store(MemoryStore):
    """Fails at its first look."""

    looks = 0

    def held(self, run_id: str) -> bool:
        self.looks += 1
        if self.looks == 1:
            raise StoreError("it cannot be reached")
        return super().held(run_id)


def watched(store: Store, act: Callable[[], None]) -> Cancellation:
    """The cancellation of a run, which is requested because of the act."""
    found = Cancellation()

    async def scenario() -> None:
        watcher = asyncio.create_task(watch(store, RUN.id, found))
        async with asyncio.timeout(WAIT_SECONDS):
            while store.looks < 3:
                await asyncio.sleep(0)
            assert not found.requests
            act()
            while not found.requests:
                await asyncio.sleep(0)
        watcher.cancel()

    asyncio.run(scenario())
    return found


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(cancellation, "WATCH_SECONDS", 0.0)
    store = Store()
    store.begin(RUN)
    return store


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_is_stopped_as_often_as_the_store_says(store: Store, times: int) -> None:
    with store.lease(RUN.id):
        found = watched(store, lambda: store.describe(RUN.id, [], {CANCELLED: times}))
    assert (found.requests, found.note) == (times, WAS_CANCELLED)


def test_a_run_that_another_process_took_over_stops_at_once(store: Store) -> None:
    with ExitStack() as stack:
        stack.enter_context(store.lease(RUN.id))
        found = watched(store, stack.close)
    assert (found.requests, found.note) == (2, TAKEN_OVER)


def test_a_request_with_a_number_is_not_made_again() -> None:
    found = Cancellation()
    found.request("first")
    found.request("second", times=1)
    assert (found.requests, found.note) == (1, "first")
    found.request("second", times=2)
    assert (found.requests, found.note) == (2, "first")
