"""The page of a run in progress, its stream, and its cancel button."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.model.events import TrialFinished
from assay.ports import Store
from assay.server.app import create_app
from assay.server.feed import Progress, Snapshot
from assay.server.pages.live import described, texts_of
from assay.server.security import Access
from assay.server.tokens import tokens_of
from assay.settings import Settings
from server.conftest import ADDRESS, Agent
from server.test_pages import addresses, read_page
from server.test_run_pages import OWN, text_of
from server.test_runs import SUITES, events, finished, start
from timeouts import WAIT_SECONDS


def streamed(client: TestClient, runs: str) -> list[tuple[str, dict[str, Any]]]:
    """All events of a stream, once it has ended."""
    response = client.get(f"/live?runs={runs}")
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    found = []
    for block in filter(None, response.text.split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_run_in_progress_has_a_page_that_needs_no_script(
    running: TestClient, agent: Agent
) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    page = read_page(running, f"/runs/{run_id}")
    shown = text_of(page)
    assert "Running: 0 of 2 trials" in shown
    assert "Pass rate so far: none judged yet , 0 of 0 judged trials" in shown
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page
    listed = read_page(running, f"/runs/{run_id}?sort=position")
    assert "the run has not ended" in listed
    agent.open.set()
    events(running, run_id)
    assert "Failed: 1 case failed" in text_of(read_page(running, f"/runs/{run_id}"))


def test_the_stream_has_the_words_of_the_page_and_ends_with_the_run(
    running: TestClient, agent: Agent
) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    agent.open.set()
    found = streamed(running, run_id)
    assert found[-1] == ("finished", {"run": run_id})
    for name, data in found[:-1]:
        assert name == "live"
        assert data["run"] == run_id
        assert data["planned"] == 2
        assert {"done", "passed", "failed", "rate", "cost", "left"} <= set(data["texts"])
        for failure in data["failures"]:
            assert failure["id"] == "spain"
            assert running.get(failure["address"]).status_code == 200


def test_a_stream_of_runs_that_have_ended_or_never_were_ends_at_once(running: TestClient) -> None:
    run_id = finished(running, SUITES)["runId"]
    other = "01938c4e-0000-7000-8000-000000000001"
    found = streamed(running, f"{run_id},{other},nonsense,")
    assert sorted(data["run"] for _, data in found) == sorted([run_id, other])
    assert streamed(running, "") == []


def test_a_run_is_cancelled_by_a_form(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    run_id = start(running, SUITES)["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    page = read_page(running, f"/runs/{run_id}")
    (action,) = addresses(page, "form", "action")
    assert running.post(action, data={}).status_code == 403
    response = running.post(action, data={}, headers=OWN, follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, f"/runs/{run_id}")
    assert "Stopping: " in text_of(read_page(running, f"/runs/{run_id}"))
    agent.open.set()
    events(running, run_id)
    shown = text_of(read_page(running, f"/runs/{run_id}"))
    assert "Interrupted: the run was interrupted" in shown
    again = running.post(action, data={}, headers=OWN)
    assert (again.status_code, again.json()["error"]["code"]) == (400, "INVALID_INPUT")


def test_who_may_only_read_gets_no_buttons(project: Settings, store: Store, agent: Agent) -> None:
    agent.open.clear()
    access = Access.of("127.0.0.1", tokens_of("read:looker,write:writer"))
    with TestClient(create_app(project, store, access), ADDRESS) as client:
        client.headers["authorization"] = "Bearer writer"
        run_id = start(client, SUITES)["runId"]
        assert agent.reached.wait(WAIT_SECONDS)
        assert "Start a run" in read_page(client, "/")
        assert "Cancel the run" in read_page(client, f"/runs/{run_id}")
        client.headers["authorization"] = "Bearer looker"
        assert "Start a run" not in read_page(client, "/")
        form = read_page(client, "/runs/new")
        assert "Your token can only read" in form
        assert "Start the run" not in form
        assert "Cancel the run" not in read_page(client, f"/runs/{run_id}")
        agent.open.set()


def test_evidence_is_shown_against_its_limit(running: TestClient, agent: Agent) -> None:
    running.put(
        "/api/baselines/main", json={"run": finished(running, SUITES)["runId"], "accept": True}
    )
    options = {"baseline": "main", "stop_when": "decided"}
    run_id = start(running, SUITES | {"options": options})["runId"]
    found = events(running, run_id, **{"last-event-id": "0"})
    values = [data["e_value"] for name, _, data in found if name == "trial"]
    assert values == [pytest.approx(1.0)] * 2
    progress = Progress(
        "r", planned=10, done=4, passed=2, failed=1, errored=1, skipped=0, cost_usd=0.5
    )
    texts = texts_of(Snapshot(progress, speed=2.0, e_value=3.25))
    assert texts == {
        "done": "4 of 10 trials",
        "passed": "2 of 3 judged trials",
        "failed": "1 of 3 judged trials",
        "errored": "1 of 4 trials",
        "skipped": "0 of 4 trials",
        "rate": "66.7 % (20.8 to 93.9)",
        "cost": "$0.5000 for 4 trials",
        "left": "about 3.0 s",
        "evidence": "3.25 of 20 that decide it",
    }


def test_new_failures_are_written_in_the_stream_as_on_the_page(
    running: TestClient, store: Store
) -> None:
    record = store.run(finished(running, SUITES)["runId"])
    failed = TrialFinished(0, 0, "evals/a", "\u202e" + "x" * 500, "failed", 1.0)
    (found,) = described(Snapshot(Progress.begin(), failures=(failed,)), record, store).failures
    assert found.id.startswith("\\u202exxx")
    assert len(found.id) < 150
