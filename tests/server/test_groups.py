"""`/api/groups`: runs of several targets over REST."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server import run_manager
from server.conftest import Agent
from server.test_runs import SUITES, events, finished
from server.test_test_cases import refused

BOTH = SUITES | {"target": ["agent", "other"]}


def start(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/api/groups", json=body)
    assert response.status_code == 202, response.text
    group: dict[str, Any] = response.json()["data"]
    return group


def ended(client: TestClient, group: dict[str, Any]) -> dict[str, Any]:
    """The group once all of its runs have ended."""
    for run in group["runs"]:
        events(client, run["runId"])
    found: dict[str, Any] = client.get(f"/api/groups/{group['groupId']}").json()["data"]
    return found


def test_each_target_has_a_run(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    group = start(running, BOTH)
    assert [run["target"] for run in group["runs"]] == ["agent", "other"]
    assert (group["comparison"], group["exitCode"]) == (None, None)
    assert agent.reached.wait(10)
    agent.open.set()
    done = ended(running, group)
    assert [run["status"] for run in done["runs"]] == ["finished", "finished"]
    assert [run["passed"] for run in done["runs"]] == [1, 0]
    assert done["exitCode"] == 1
    assert [case["id"] for case in done["comparison"]["differing"]] == ["france"]
    for run in group["runs"]:
        kinds = [kind for kind, _, _ in events(running, run["runId"])]
        assert kinds[-1] == "finished", "each run has its own events"


def test_one_run_of_a_group_is_cancelled_alone(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    group = start(running, BOTH | {"options": {"workers": 1}})
    assert agent.reached.wait(10)
    first = group["runs"][0]["runId"]
    assert running.post(f"/api/runs/{first}/cancel", json={}).status_code == 202
    agent.open.set()
    done = ended(running, group)
    assert [run["status"] for run in done["runs"]] == ["interrupted", "finished"]
    assert len(agent.asked) == 1


def test_a_group_is_cancelled(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    group = start(running, BOTH | {"options": {"workers": 1}})
    assert agent.reached.wait(10)
    place = f"/api/groups/{group['groupId']}/cancel"
    assert running.post(place, json={}).status_code == 202
    agent.open.set()
    done = ended(running, group)
    assert done["runs"][0]["status"] == "interrupted"
    assert len(agent.asked) == 1
    for run in done["runs"]:
        if run["status"] == "interrupted":
            assert running.post(f"/api/runs/{run['runId']}/resume", json={}).status_code == 202
    done = ended(running, group)
    assert [run["status"] for run in done["runs"]] == ["finished", "finished"]
    assert len(agent.asked) == 2
    refusal = refused(running.post(place, json={}), 400, "INVALID_INPUT")
    assert refusal == "All runs of the group have ended; there is nothing to cancel"
    assert running.post("/api/groups/none/cancel", json={}).status_code == 404


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": ["agent", "agnt"]}, "No configured target is called 'agnt'"),
        ({"target": ["agent", "python:os:system"]}, "No configured target is called"),
        ({"target": ["agent", "agent"]}, "Field 'target' names one of them twice"),
        ({"target": []}, "Field 'target'"),
        ({"options": {"target": ["agent"]}}, "Option 'target' is a field of the request itself"),
    ],
)
def test_wrong_targets(
    running: TestClient, store: Store, change: dict[str, Any], message: str
) -> None:
    response = running.post("/api/groups", json=BOTH | change)
    code = "INVALID_LENGTH" if change == {"target": []} else "INVALID_INPUT"
    assert message in refused(response, 400, code)
    assert store.runs(1) == []


def test_a_group_counts_as_so_many_runs(
    running: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_manager, "MAX_RUNS", 1)
    response = running.post("/api/groups", json=BOTH)
    assert refused(response, 400, "INVALID_INPUT") == run_manager.TOO_MANY
    assert store.runs(1) == []


def test_a_group_is_a_baseline(running: TestClient) -> None:
    group = ended(running, start(running, BOTH))
    given = {"options": {"baseline": group["groupId"], "confirm": 0}}
    again = ended(running, start(running, BOTH | given))
    for run, base in zip(again["runs"], group["runs"], strict=True):
        shown = running.get(f"/api/runs/{run['runId']}").json()["data"]
        assert shown["options"]["baseline"] == base["runId"]
    alone = finished(running, SUITES | {"target": "other"} | given)
    assert alone["options"]["baseline"] == group["runs"][1]["runId"]
