"""What becomes of runs, and of requests, when their server ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from starlette.testclient import TestClient

from assay.engine import cancellation
from assay.engine.runner import GRACE_SECONDS
from assay.model.run import RunRecord
from assay.ports import Store
from assay.server import runs
from assay.server.app import create_app
from assay.server.callers import Authentication
from assay.server.run_manager import STOPPED, RunManager, utc_now
from assay.server.security import Access, Guard
from assay.server.serving import make_server
from assay.server.sessions import Sessions
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS, Agent, Clock
from timeouts import WAIT_SECONDS


@pytest.fixture
def run_manager(project: Settings, store: Store, clock: Clock) -> RunManager:
    return RunManager(project, store, project.root, clock)


async def in_flight(run_manager: RunManager, agent: Agent) -> str:
    """The id of a run whose first trial is being asked, until the agent is opened."""
    agent.open.clear()
    path = Path(run_manager.root, "evals", "capitals.eval.yaml")
    run_id = await run_manager.start([path], {"workers": 1})
    assert await asyncio.to_thread(agent.reached.wait, WAIT_SECONDS)
    return run_id


def test_trials_in_flight_have_their_grace_when_the_server_ends(
    run_manager: RunManager, agent: Agent
) -> None:
    async def scenario() -> str:
        run_id = await in_flight(run_manager, agent)
        run_manager.stop()  # by the signal
        ending = asyncio.create_task(run_manager.shut_down())  # by the end of the application
        await asyncio.sleep(0)
        agent.open.set()
        await ending
        return run_id

    run_id = asyncio.run(scenario())
    record = run_manager.store.run(run_id)
    assert (record.status, record.verdict.notes) == ("interrupted", (STOPPED,))
    assert len(agent.asked) == 1
    assert len(list(run_manager.store.finished(run_id))) == 1, "what was in flight is recorded"


def test_a_stopping_server_resumes_nothing(run_manager: RunManager, agent: Agent) -> None:
    async def scenario() -> str:
        run_id = await in_flight(run_manager, agent)
        run_manager.stop()
        agent.open.set()
        await run_manager.shut_down()
        await run_manager.recover()  # as it is looked for runs until all requests are answered
        assert await run_manager.settled(run_id) is None
        await run_manager.shut_down()
        return run_id

    assert run_manager.store.run(asyncio.run(scenario())).status == "interrupted"
    assert len(agent.asked) == 1


def test_a_run_that_was_cancelled_once_is_stopped_once(
    run_manager: RunManager, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the run itself sees it in the store just then."""
    monkeypatch.setattr(cancellation, "WATCH_SECONDS", 0.01)

    async def scenario() -> tuple[int, int]:
        run_id = await in_flight(run_manager, agent)
        handle, record = run_manager.find(run_id), run_manager.store.run(run_id)
        assert handle is not None
        describe, seen = run_manager.store.describe, 0

        def described(*arguments: Any) -> None:
            nonlocal seen
            describe(*arguments)
            seen += 1
            deadline = time.monotonic() + WAIT_SECONDS
            while handle.cancellation.requests < seen and time.monotonic() < deadline:
                time.sleep(0.001)

        monkeypatch.setattr(run_manager.store, "describe", described)
        await run_manager.cancel(handle, record)
        once = handle.cancellation.requests
        await run_manager.cancel(handle, run_manager.store.run(run_id))
        twice = handle.cancellation.requests
        agent.open.set()
        await run_manager.shut_down()
        return once, twice

    assert asyncio.run(scenario()) == (1, 2)


def test_a_second_signal_ends_runs_at_once(run_manager: RunManager, agent: Agent) -> None:
    async def scenario() -> str:
        run_id = await in_flight(run_manager, agent)
        run_manager.stop()
        run_manager.abort()
        await asyncio.wait_for(run_manager.shut_down(), GRACE_SECONDS / 2)
        return run_id

    run_id = asyncio.run(scenario())
    record = run_manager.store.run(run_id)
    assert (record.status, record.verdict.notes) == ("interrupted", (STOPPED,))
    assert list(run_manager.store.finished(run_id)) == []


def test_following_a_run_of_another_process_has_no_finished_event(
    project: Settings, store: Store
) -> None:
    record = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(record)
    app = create_app(project, store)

    async def scenario() -> tuple[int, str]:
        app.state.assay.run_manager.stop()
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            response = await client.get(f"/api/runs/{record.id}/events")
            return response.status_code, response.text

    status, text = asyncio.run(scenario())
    assert status == 200
    assert [line for line in text.splitlines() if line.startswith("event")] == ["event: progress"]


def test_the_stream_of_a_removed_run_ends(
    running: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(record)

    def removing(store: Store, record: RunRecord) -> dict[str, Any]:
        store.delete(record.id)
        return {}

    monkeypatch.setattr(runs, "progress_of", removing)
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.0)
    followed = running.get(f"/api/runs/{record.id}/events")
    assert followed.text == "event: progress\nid: store-0\ndata: {}\n\n"


def test_signals_stop_runs_first_gently_then_at_once(
    project: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, calls = create_app(project, store), list[str]()
    server = make_server(app, lambda: None)

    def noting(name: str) -> Callable[[], None]:
        return lambda: calls.append(name)

    for name in ("stop", "abort"):
        monkeypatch.setattr(app.state.assay.run_manager, name, noting(name))

    async def scenario() -> None:
        monkeypatch.setattr(server, "_loop", asyncio.get_running_loop())
        for _ in range(3):
            server.handle_exit(signal.SIGTERM, None)
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert calls == ["stop", "abort", "abort"]
    assert not server.force_exit


def test_a_third_ctrl_c_leaves_whatever_hangs(
    project: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, left = make_server(create_app(project, store), lambda: None), list[int]()
    monkeypatch.setattr(os, "_exit", left.append)
    for signals in ([signal.SIGTERM] * 4, [signal.SIGINT]):  # a supervisor sends SIGKILL later
        for number in signals:
            server.handle_exit(number, None)
        assert left == []
    server.handle_exit(signal.SIGINT, None)
    assert left == [130]


def test_a_server_that_does_not_end_in_time_leaves_whatever_hangs(
    project: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: SimpleQueue[int] = SimpleQueue()
    monkeypatch.setattr(os, "_exit", left.put)
    server = make_server(create_app(project, store), lambda: None, end_seconds=0.01)
    for _ in range(2):
        server.handle_exit(signal.SIGTERM, None)
    assert left.get(timeout=WAIT_SECONDS) == 128 + signal.SIGTERM
    assert left.empty()


def test_a_request_that_outlasts_the_server_gets_an_error_in_the_envelope() -> None:
    sent: list[Any] = []

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def scenario() -> None:
        scope: Any = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/"}
        scope["headers"] = [(b"host", b"localhost")]
        everybody = Authentication((), Sessions(MemoryStore(), (), utc_now))
        guard = Guard(never, Access(), everybody)
        request = asyncio.create_task(guard(scope, never, send))
        await asyncio.sleep(0)
        request.cancel()  # as uvicorn does once its grace is over
        await request

    asyncio.run(scenario())
    start, body = sent
    assert start["status"] == 500
    assert json.loads(body["body"])["error"]["code"] == "INTERNAL_ERROR"
