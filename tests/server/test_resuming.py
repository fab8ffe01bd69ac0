"""`POST /api/runs/{id}/resume`, over every store that lasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.model.run import RunRecord, new_run_id
from assay.ports import Store
from assay.settings import Settings
from contract.postgres import Server
from server.conftest import Agent
from server.test_runs import SUITES, events, finished, results, start
from server.test_stores_behind import store  # noqa: F401 - a fixture
from server.test_test_cases import refused
from timeouts import WAIT_SECONDS

ONE_BY_ONE = SUITES | {"options": {"workers": 1}}


def cancelled(client: TestClient, agent: Agent) -> str:
    """The id of a run that was cancelled after the first of its two cases."""
    agent.open.clear()
    run_id: str = start(client, ONE_BY_ONE)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    assert client.post(f"/api/runs/{run_id}/cancel", json={}).status_code == 202
    agent.open.set()
    assert events(client, run_id)[-1][2] == {"status": "interrupted"}
    return run_id


def resume(client: TestClient, run_id: str) -> Any:
    return client.post(f"/api/runs/{run_id}/resume", json={})


def test_a_resumed_run_asks_only_missing_trials(running: TestClient, agent: Agent) -> None:
    run_id = cancelled(running, agent)
    asked = list(agent.asked)
    resumed = resume(running, run_id)
    assert (resumed.status_code, resumed.json()["data"]["runId"]) == (202, run_id)
    assert events(running, run_id)[-1][2] == {"status": "finished"}
    assert len(agent.asked) == len(set(agent.asked)) == len(asked) + 1
    assert results(running, run_id)["total"] == 2
    data = running.get(f"/api/runs/{run_id}").json()["data"]
    assert (data["status"], "cancelled" in data["environment"]) == ("finished", False)


def test_a_resumed_run_can_be_cancelled_and_resumed_again(
    running: TestClient, agent: Agent
) -> None:
    run_id = cancelled(running, agent)
    agent.open.clear()
    agent.reached.clear()
    assert resume(running, run_id).status_code == 202
    assert agent.reached.wait(WAIT_SECONDS)
    assert "in progress" in refused(resume(running, run_id), 400, "INVALID_INPUT")
    assert running.post(f"/api/runs/{run_id}/cancel", json={}).status_code == 202
    agent.open.set()
    events(running, run_id)
    resume(running, run_id)
    events(running, run_id)
    assert running.get(f"/api/runs/{run_id}").json()["data"]["status"] == "finished"


def test_a_finished_run_is_not_resumed(running: TestClient) -> None:
    run_id = finished(running, SUITES)["runId"]
    assert "is finished" in refused(resume(running, run_id), 400, "INVALID_INPUT")


def test_an_unknown_run_is_not_resumed(running: TestClient) -> None:
    refused(resume(running, new_run_id(0, lambda bits: 1)), 404, "NOT_FOUND")


def test_a_run_of_a_command_is_not_resumed(
    running: TestClient,
    store: Store,  # noqa: F811
) -> None:
    record = RunRecord(
        new_run_id(1, lambda bits: 1), "2026-01-15T10:00:00.000Z", "interrupted", "a"
    )
    store.begin(record)
    message = refused(resume(running, record.id), 400, "INVALID_INPUT")
    assert f"assay run --resume {record.id}" in message


def test_a_run_that_another_process_works_on_is_not_resumed(
    running: TestClient,
    agent: Agent,
    store: Store,  # noqa: F811
) -> None:
    run_id = cancelled(running, agent)
    with store.lease(run_id):
        assert "in progress" in refused(resume(running, run_id), 400, "INVALID_INPUT")
    assert resume(running, run_id).status_code == 202


def test_a_run_whose_eval_file_changed_is_not_resumed(
    running: TestClient, agent: Agent, project: Settings
) -> None:
    run_id = cancelled(running, agent)
    file = Path(project.root) / "evals/capitals.eval.yaml"
    file.write_text(file.read_text() + "# changed\n")
    assert "changed since the run" in refused(resume(running, run_id), 400, "INVALID_INPUT")
    assert running.get(f"/api/runs/{run_id}").json()["data"]["status"] == "interrupted"


@pytest.mark.parametrize("body", [b"", b"null", b"\0", b'{"now": true}'])
def test_the_body_must_be_empty(running: TestClient, agent: Agent, body: bytes) -> None:
    run_id = cancelled(running, agent)
    json = {"content-type": "application/json"}
    response = running.post(f"/api/runs/{run_id}/resume", content=body, headers=json)
    refused(response, 400, "INVALID_INPUT")
    response = running.post(f"/api/runs/{run_id}/resume")
    refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_run_survives_a_restart_of_its_database(
    running: TestClient,
    agent: Agent,
    store: Store,  # noqa: F811
    request: pytest.FixtureRequest,
) -> None:
    agent.open.clear()
    run_id = start(running, ONE_BY_ONE)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    if getattr(store, "remote", False):
        server: Server = request.getfixturevalue("postgres")
        server.stop()
        agent.open.set()
        server.start()
    agent.open.set()
    assert events(running, run_id)[-1][2] == {"status": "finished"}
    assert results(running, run_id)["total"] == 2
