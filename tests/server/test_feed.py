"""How the events of a run reach those who follow it."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.model.events import Notice, RunFinished, RunStarted, TrialFinished
from assay.model.test_case import NewTestCase, TestCase
from assay.server import feed
from assay.server.app import create_app
from assay.server.feed import Feed, Progress, ServerSentEvent
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS


def trial(number: int) -> TrialFinished:
    return TrialFinished(number, 0, "s", f"c{number}", "passed", 1.0, 0.5)


async def all_of(stream: Feed, last: str) -> list[ServerSentEvent]:
    return [event async for event in stream.follow(last)]


async def made(count: int) -> Feed:
    """The feed of a finished run with `count` trials."""
    stream = Feed(asyncio.get_running_loop(), "f1")
    stream.push(RunStarted("run", "target", count))
    for number in range(count):
        stream.push(trial(number))
    stream.push(RunFinished("finished"))
    await asyncio.sleep(0)
    stream.close("finished")
    return stream


def test_a_late_client_gets_the_counts_and_the_end() -> None:
    async def scenario() -> list[ServerSentEvent]:
        return await all_of(await made(3), "")

    progress, end = asyncio.run(scenario())
    assert (progress.name, progress.id) == ("progress", "f1-4")
    assert (progress.data.passed, progress.data.cost_usd) == (3, 1.5)
    assert (end.name, end.id, end.data) == ("finished", "f1-5", RunFinished("finished"))


def test_a_reconnecting_client_gets_later_events() -> None:
    async def scenario() -> list[ServerSentEvent]:
        return await all_of(await made(3), "f1-2")

    events = asyncio.run(scenario())
    found = [(event.name, event.id) for event in events]
    assert found == [("trial", "f1-3"), ("trial", "f1-4"), ("finished", "f1-5")]


LONG = "9" * 30


@pytest.mark.parametrize("last", ["f0-2", "2", "f1-", "f1-x", f"f1-{LONG}", "f1-\u0662", "store-2"])
def test_an_id_of_another_feed_counts_as_missed_events(last: str) -> None:
    async def scenario() -> list[ServerSentEvent]:
        return await all_of(await made(3), last)

    assert [event.name for event in asyncio.run(scenario())] == ["progress", "finished"]


@pytest.mark.parametrize(("resumed", "first"), [(False, "started"), (True, "progress")])
def test_all_events_can_be_requested_unless_some_were_before_a_restart(
    resumed: bool, first: str
) -> None:
    async def scenario() -> list[ServerSentEvent]:
        stream = Feed(asyncio.get_running_loop(), "f1")
        if resumed:
            stream.resume_from(Progress("run", None, 5, 5, 0, 0, 0, 0.0))
        stream.push(RunStarted("run", "target", 9))
        await asyncio.sleep(0)
        stream.close("finished")
        return await all_of(stream, "0")

    assert [event.name for event in asyncio.run(scenario())] == [first, "finished"]


@pytest.mark.parametrize("last", ["0", f"f1-{10**16}"])
def test_a_client_that_missed_too_much_gets_the_counts(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "KEPT", 5)

    async def scenario() -> list[ServerSentEvent]:
        return await all_of(await made(20), last)

    progress, end = asyncio.run(scenario())
    assert (progress.name, progress.data.done, end.name) == ("progress", 20, "finished")


def test_events_of_another_thread_wake_waiting_clients() -> None:
    async def scenario() -> list[str]:
        stream = Feed(asyncio.get_running_loop(), "f1")
        follower = asyncio.create_task(all_of(stream, "0"))
        await asyncio.sleep(0)

        def tell() -> None:
            for number in range(100):
                stream.push(Notice(str(number)))

        thread = threading.Thread(target=tell)
        thread.start()
        await asyncio.to_thread(thread.join)
        stream.close()
        return [event.data.text for event in await follower]

    assert asyncio.run(scenario()) == [str(number) for number in range(100)]


def test_an_idle_stream_has_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_SECONDS", 0.0)

    async def scenario() -> bytes:
        stream = Feed(asyncio.get_running_loop(), "f1")
        async for event in stream.follow("0"):
            return event.encoded()
        return b""

    assert asyncio.run(scenario()) == b": still here\n\n"


def test_a_line_break_in_an_event_stays_in_its_line() -> None:
    sent = ServerSentEvent("notice", "f1-7", {"text": "a\nb\r\n\nevent: x"}).encoded()
    assert sent == b'event: notice\nid: f1-7\ndata: {"text":"a\\nb\\r\\n\\nevent: x"}\n\n'


class Remote(MemoryStore):
    """A store that notes which threads read it."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[str] = []
        known = self.test_cases.get

        def get(case_id: str) -> TestCase:
            self.readers.append(threading.current_thread().name)
            return known(case_id)

        self.test_cases.get = get  # type: ignore[method-assign]


def test_a_remote_store_is_not_read_in_the_loop(settings: Settings) -> None:
    store = Remote()
    case = store.test_cases.add(NewTestCase("a", "b"), datetime.now(UTC)).result()
    with TestClient(create_app(settings, store), ADDRESS) as client:
        assert client.get(f"/api/test-cases/{case.id}").status_code == 200
    assert all(name.startswith("asyncio_") for name in store.readers)
    assert store.readers


@pytest.mark.parametrize(
    ("query", "apart"), [("", False), ("?limit=1000", True), ("?skip=1000", True), ("?tag=a", True)]
)
def test_slow_reads_do_not_run_in_the_loop(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, query: str, apart: bool
) -> None:
    store, readers = MemoryStore(), list[str]()
    known = store.test_cases.page

    def page(limit: int, skip: int = 0, tag: str | None = None) -> Any:
        readers.append(threading.current_thread().name)
        return known(limit, skip, tag)

    monkeypatch.setattr(store.test_cases, "page", page)
    with TestClient(create_app(settings, store), ADDRESS) as client:
        assert client.get(f"/api/test-cases{query}").status_code == 200
    assert [name.startswith("asyncio_") for name in readers] == [apart]
