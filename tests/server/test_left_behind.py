"""Runs that an earlier server abandoned, and what other servers do with them."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from assay.engine import cancellation
from assay.errors import RunHeld, StoreError
from assay.model.run import CANCELLED, STARTED_BY, RunRecord
from assay.server import run_manager, runs
from assay.server.app import create_app
from assay.server.run_manager import SERVE, STOPPED
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS, Agent
from server.test_runs import SUITES, events, finished, start
from server.test_test_cases import refused
from timeouts import WAIT_SECONDS


class Behind(MemoryStore):
    """Shows runs as they were when a server looked for those that were left behind."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[RunRecord] | None = None

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        if self.seen is None:
            return super().runs(limit, before)
        return [record for record in self.seen if before is None]

    def held(self, run_id: str) -> bool:
        return self.seen is None and super().held(run_id)


@pytest.fixture
def store() -> Behind:
    return Behind()


def shown(client: TestClient, run_id: str) -> dict[str, Any]:
    """The run, once it is known whether it goes on here."""
    client.head(f"/api/runs/{run_id}/events")  # waits for that
    data: dict[str, Any] = client.get(f"/api/runs/{run_id}").json()["data"]
    return data


def test_a_run_that_another_server_resumed_is_left_alone(
    project: Settings, store: Behind, running: TestClient, agent: Agent
) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    store.seen = [store.run(run_id)]
    with TestClient(create_app(project, store), ADDRESS) as other:
        data = shown(other, run_id)
        assert (data["status"], data["notes"]) == ("running", [])
    agent.open.set()
    assert events(running, run_id)[-1][2] == {"status": "finished"}


def test_a_run_that_another_server_has_finished_stays_finished(
    project: Settings, store: Behind, running: TestClient, agent: Agent
) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    seen = store.run(run_id)
    agent.open.set()
    events(running, run_id)
    before, store.seen = store.run(run_id), [seen]
    with TestClient(create_app(project, store), ADDRESS) as other:
        assert shown(other, run_id)["status"] == "finished"
    assert store.run(run_id) == before


def test_a_run_of_a_command_in_progress_or_just_ended_is_left_alone(
    project: Settings, store: Behind
) -> None:
    at_work, ended = (
        RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent") for _ in range(2)
    )
    for record in (at_work, ended):
        store.begin(record)
    store.finish(ended.id, "interrupted", "2026-01-15T10:01:00.000Z", {"passed": 1})
    store.seen = [at_work, ended]
    with store.lease(at_work.id), TestClient(create_app(project, store), ADDRESS) as client:
        assert shown(client, at_work.id)["notes"] == []
        assert shown(client, ended.id)["passed"] == 1


def test_a_resumed_run_counts_earlier_trials(
    project: Settings, store: Behind, agent: Agent
) -> None:
    agent.price = 0.25
    with TestClient(create_app(project, store), ADDRESS) as client:
        agent.open.clear()
        run_id = start(client, SUITES | {"options": {"workers": 1, "repeat": 2}})["runId"]
        assert agent.reached.wait(WAIT_SECONDS)
        client.app.state.assay.run_manager.stop()  # type: ignore[attr-defined]
        agent.open.set()
    (before,) = store.facts(run_id)
    agent.open.clear()
    agent.reached.clear()
    with TestClient(create_app(project, store), ADDRESS) as client:
        assert agent.reached.wait(WAIT_SECONDS)
        progress = client.get(f"/api/runs/{run_id}").json()["data"]["progress"]
        assert (progress["done"], progress["planned"]) == (1, 4)
        assert (progress[before.outcome], progress["costUsd"]) == (1, 0.25)
        agent.open.set()


@pytest.mark.parametrize("killed", [True, False])
def test_a_run_whose_server_is_gone_can_be_cancelled_by_another(
    project: Settings, store: Behind, killed: bool
) -> None:
    with TestClient(create_app(project, store), ADDRESS) as other:
        dead = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
        store.begin(replace(dead, environment={STARTED_BY: SERVE}))
        if not killed:
            verdict = {"verdict": {"notes": [STOPPED]}}
            store.finish(dead.id, "interrupted", "2026-01-15T10:00:01.000Z", verdict)
        answer = other.post(f"/api/runs/{dead.id}/cancel", json={})
        assert (answer.status_code, answer.json()["data"]["status"]) == (202, "interrupted")
    with TestClient(create_app(project, store), ADDRESS) as next_one:
        data = shown(next_one, dead.id)
    assert (data["status"], data["notes"]) == ("interrupted", ["it was cancelled"])


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_at_work_can_be_cancelled_at_another_server(
    project: Settings, agent: Agent, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Twice, and the trials in flight are not waited for."""
    monkeypatch.setattr(cancellation, "WATCH_SECONDS", 0.0)
    store = MemoryStore()
    agent.open.clear()
    with ExitStack() as servers:
        one, other = (
            servers.enter_context(TestClient(create_app(project, store), ADDRESS)) for _ in "ab"
        )
        run_id = start(one, SUITES | {"options": {"workers": 1}})["runId"]
        assert agent.reached.wait(WAIT_SECONDS)
        (handle,) = one.app.state.assay.run_manager._handles  # type: ignore[attr-defined]
        for _ in range(times):
            answer = other.post(f"/api/runs/{run_id}/cancel", json={})
            assert (answer.status_code, answer.json()["data"]["status"]) == (202, "running")
        while handle.cancellation.requests < times:
            one.get("/api/health")
        if times == 1:
            agent.open.set()
        assert events(one, run_id)[-1][2] == {"status": "interrupted"}
        agent.open.set()
        data = shown(other, run_id)
    assert (data["status"], data["notes"]) == ("interrupted", ["it was cancelled"])
    assert len(agent.asked) == 1


def test_a_run_that_ends_while_it_is_cancelled_was_not(
    project: Settings, store: Behind, running: TestClient
) -> None:
    record = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(replace(record, environment={STARTED_BY: SERVE}))

    class Ending(AbstractContextManager[None]):
        """Another server had it, and is done with it."""

        def __init__(self, run_id: str) -> None:
            store.finish(run_id, "finished", "2026-01-15T10:00:01.000Z", {})
            raise RunHeld(run_id)

        def __exit__(self, *_: object) -> None: ...

    store.lease = Ending  # type: ignore[method-assign, assignment]
    answer = running.post(f"/api/runs/{record.id}/cancel", json={})
    assert "The run is finished" in refused(answer, 400, "INVALID_INPUT")
    assert not store.run(record.id).cancelled


def test_a_run_that_a_command_executes_learns_that_it_was_cancelled(
    project: Settings, store: Behind, running: TestClient
) -> None:
    at_work = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(at_work)
    with store.lease(at_work.id):
        for times in (1, 2):
            answer = running.post(f"/api/runs/{at_work.id}/cancel", json={})
            assert answer.status_code == 202
            assert store.run(at_work.id).environment[CANCELLED] == times


def test_a_run_cancelled_before_the_server_was_killed_is_not_resumed(
    project: Settings, store: Behind, running: TestClient, agent: Agent
) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    running.post(f"/api/runs/{run_id}/cancel", json={})
    left = replace(store.run(run_id), id=str(uuid4()))  # as a killed server leaves it
    agent.open.set()
    events(running, run_id)
    store.begin(left)
    asked = len(agent.asked)
    with TestClient(create_app(project, store), ADDRESS) as client:
        data = shown(client, left.id)
        assert (data["status"], data["notes"]) == ("interrupted", ["it was cancelled"])
    assert len(agent.asked) == asked


def test_a_run_cancelled_while_the_server_stops_is_not_resumed(
    project: Settings, store: Behind
) -> None:
    record = RunRecord(
        str(uuid4()),
        "2026-01-15T10:00:00.000Z",
        "interrupted",
        "agent",
        environment={STARTED_BY: SERVE, CANCELLED: True},
        summary={"verdict": {"notes": [STOPPED]}},
    )
    store.begin(record)
    with TestClient(create_app(project, store), ADDRESS) as client:
        shown(client, record.id)
    assert store.run(record.id) == record


@pytest.mark.parametrize("first", [True, False])
def test_a_run_is_resumed_by_another_server_when_its_own_stops(
    project: Settings, agent: Agent, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    monkeypatch.setattr(run_manager, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.0)
    store = MemoryStore()
    agent.open.clear()
    with ExitStack() as servers:
        next_one = TestClient(create_app(project, store), ADDRESS)
        if first:
            servers.enter_context(next_one)
        with TestClient(create_app(project, store), ADDRESS) as client:
            run_id = start(client, SUITES | {"options": {"workers": 1}})["runId"]
            assert agent.reached.wait(WAIT_SECONDS)
            if not first:
                servers.enter_context(next_one)
            client.app.state.assay.run_manager.stop()  # type: ignore[attr-defined]
            agent.open.set()
        assert events(next_one, run_id)[-1][2] == {"status": "finished"}
    assert len(agent.asked) == 2


def test_a_run_whose_process_is_killed_while_a_server_runs_is_marked_interrupted(
    project: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_manager, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.0)
    store = MemoryStore()
    at_work = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(at_work)
    with ExitStack() as process:
        process.enter_context(store.lease(at_work.id))
        with TestClient(create_app(project, store), ADDRESS) as client:
            process.close()
            assert events(client, at_work.id)[-1][2] == {"status": "interrupted"}


def test_a_server_looks_again_when_the_store_could_not_be_reached(
    project: Settings, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(MemoryStore):
        looked, is_down = 0, False

        def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
            if self.is_down:
                type(self).looked, self.is_down = 1, False
                raise StoreError("the server cannot be reached")
            return super().runs(limit, before)

    monkeypatch.setattr(run_manager, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.0)
    store = Away()
    with TestClient(create_app(project, store), ADDRESS) as client:
        run_id = start(client, SUITES)["runId"]
        events(client, run_id)
        store.is_down = True
        stopped = replace(store.run(run_id), id=str(uuid4()), status="interrupted")
        store.begin(replace(stopped, summary={"verdict": {"notes": [STOPPED]}}))
        assert events(client, stopped.id)[-1][2] == {"status": "finished"}
    assert store.looked


def test_a_removed_run_does_not_disturb_the_server(
    project: Settings, store: Behind, running: TestClient
) -> None:
    gone = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    left = RunRecord(str(uuid4()), "2026-01-15T10:00:00.000Z", "running", "agent")
    store.begin(left)
    store.seen = [gone, left]
    with TestClient(create_app(project, store), ADDRESS) as client:
        assert shown(client, left.id)["status"] == "interrupted"
        store.seen = None
        assert finished(client, SUITES)["status"] == "finished"
