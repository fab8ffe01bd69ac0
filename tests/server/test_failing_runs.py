"""Runs that fail while they are at work: their end is recorded as soon as it can be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from assay.errors import StoreError
from assay.model.run import RunRecord, TrialRecord
from assay.server import run_manager
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS, Agent
from server.test_runs import SUITES, events, finished, start
from server.test_test_cases import refused
from timeouts import WAIT_SECONDS


class Outage(MemoryStore):
    """A store that cannot be reached for a while; `tried` is set when that is noticed again."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.tried = threading.Event()

    def save(self, *trials: TrialRecord) -> Future[None]:
        if not self.is_down:
            return super().save(*trials)
        future: Future[None] = Future()
        future.set_exception(StoreError("the connection was lost"))
        return future

    @contextmanager
    def lease(self, run_id: str) -> Iterator[None]:
        if self.is_down:
            self.tried.set()
            raise StoreError("the server cannot be reached")
        with super().lease(run_id):
            yield


@pytest.fixture
def store() -> Outage:
    return Outage()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_manager, "RETRY_SECONDS", 0.001)


def fail(store: Outage, client: TestClient, agent: Agent) -> str:
    """The id of a run that has lost its store, and could not say so yet."""
    agent.open.clear()
    run_id: str = start(client, SUITES)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    store.is_down = True
    agent.open.set()
    assert store.tried.wait(WAIT_SECONDS)
    return run_id


def test_a_run_whose_store_fails_is_interrupted_when_the_store_is_back(
    running: TestClient, store: Outage, agent: Agent
) -> None:
    run_id = fail(store, running, agent)
    assert running.get("/api/health").json()["data"]["runs"] == 1
    store.is_down = False
    assert events(running, run_id)[-1][2] == {"status": "interrupted"}
    data = running.get(f"/api/runs/{run_id}").json()["data"]
    assert (data["status"], data["notes"]) == (
        "interrupted",
        ["it failed: the store failed; the server's log has the details"],
    )
    assert data["progress"] is None
    assert running.get("/api/health").json()["data"]["runs"] == 0


def test_the_next_server_resumes_a_run_whose_store_was_unreachable(
    project: Settings, store: Outage, agent: Agent
) -> None:
    with TestClient(create_app(project, store), ADDRESS) as client:
        run_id = fail(store, client, agent)
    store.is_down = False
    assert store.run(run_id).status == "running"
    with TestClient(create_app(project, store), ADDRESS) as client:
        events(client, run_id)
        assert store.run(run_id).status == "finished"


def test_cancelling_a_run_reports_a_failing_store(
    running: TestClient, store: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(dead)
    outages = iter([True])

    def lease(run_id: str) -> AbstractContextManager[None]:
        store.is_down = next(outages, False)
        return Outage.lease(store, run_id)

    monkeypatch.setattr(store, "lease", lease)
    refused(running.post(f"/api/runs/{dead.id}/cancel", json={}), 500, "INTERNAL_ERROR")
    assert running.post(f"/api/runs/{dead.id}/cancel", json={}).status_code == 202


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_exception_of_a_target_ends_only_its_trial(
    running: TestClient,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
    waits: bool,
) -> None:
    def raising(message: str) -> str:
        raise kind

    async def raising_later(message: str) -> str:
        raise kind

    answer = raising_later if waits else raising
    monkeypatch.setattr("agent_of_the_server_tests.answer", answer)
    run = finished(running, SUITES)
    assert (run["status"], run["errored"]) == ("finished", 2)


def test_an_interrupt_before_the_first_question_does_not_end_the_server(
    running: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("assay.service.runs.execute_in", raising)
        response = running.post("/api/runs", json=SUITES)
    assert response.json()["error"]["message"] == "It could not begin: KeyboardInterrupt"
    assert finished(running, SUITES)["status"] == "finished"


def test_a_run_does_not_begin_when_its_test_cases_cannot_be_pinned(project: Settings) -> None:
    class Full(MemoryStore):
        def keep(self, key: str, value: dict[str, Any]) -> None:
            raise StoreError("the disk is full")

    store = Full()
    with TestClient(create_app(project, store), ADDRESS) as client:
        client.post("/api/test-cases", json={"input": "a", "expected_output": "b", "tags": ["t"]})
        refused(client.post("/api/runs", json={"tag": "t"}), 500, "INTERNAL_ERROR")
    assert store.runs(1) == []
