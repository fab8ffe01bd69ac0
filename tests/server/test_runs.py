"""`/api/runs` and what is read of them, over a target in the process."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from assay.errors import StoreError
from assay.evaluators.text import ContainsEvaluator
from assay.model.run import RunRecord
from assay.ports import Store
from assay.registry import evaluators
from assay.server import run_requests
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS, Agent
from server.test_test_cases import create, refused
from timeouts import WAIT_SECONDS
from unit import provider_server as provider
from unit.provider_server import ProviderServer

SUITES = {"suites": ["evals/capitals.eval.yaml"]}
FRANCE = {"input": "capital of France?", "expected_output": "Paris", "tags": ["geography"]}


def test_health_is_unavailable_while_the_store_is_down(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Down(MemoryStore):
        remote = True
        down = threading.Event()
        hanging = threading.Event()

        def baselines(self) -> dict[str, str]:
            if self.hanging.is_set():
                self.down.wait(WAIT_SECONDS)
            elif self.down.is_set():
                raise StoreError("connection to server at 10.0.0.1 failed")
            return super().baselines()

    store = Down()
    with TestClient(create_app(settings, store), ADDRESS) as client:
        assert client.get("/api/health").status_code == 200
        store.hanging.set()
        with monkeypatch.context() as impatient:
            impatient.setattr("assay.server.comparisons.HEALTH_SECONDS", 0.01)
            hanging = client.get("/api/health")
        store.down.set()
        store.hanging.clear()
        down = client.get("/api/health")
        for response in (hanging, down):
            assert response.status_code == 503
            error = response.json()["error"]
            assert error == {"code": "UNAVAILABLE", "message": "The store cannot be reached"}
        store.down.clear()
        assert client.get("/api/health").status_code == 200


def start(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/api/runs", json=body)
    assert response.status_code == 202, response.text
    run: dict[str, Any] = response.json()["data"]
    return run


def events(client: TestClient, run_id: str, **headers: str) -> list[tuple[str, str, Any]]:
    """All events of a run until it has ended."""
    response = client.get(f"/api/runs/{run_id}/events", headers=headers)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    found = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if fields:
            found.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return found


def finished(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    """A run from its start to its end."""
    run_id = start(client, body)["runId"]
    events(client, run_id)
    data: dict[str, Any] = client.get(f"/api/runs/{run_id}").json()["data"]
    assert data["progress"] is None
    return data


def results(client: TestClient, run_id: str, **query: Any) -> dict[str, Any]:
    response = client.get(f"/api/runs/{run_id}/results", params=query)
    assert response.status_code == 200, response.text
    data: dict[str, Any] = response.json()["data"]
    return data


UNPAIRED = "half \ud800"
SCHEMA = {"type": "json_schema", "value": {"const": UNPAIRED}}


def nested(depth: int) -> dict[str, Any]:
    """Composite evaluators, each the only member of the next."""
    entry: dict[str, Any] = {"type": "is_json"}
    for _ in range(depth):
        entry = {"type": "composite", "evaluators": [entry]}
    return entry


def test_head_is_get_without_the_body(running: TestClient, agent: Agent) -> None:
    case, run_id = create(running)["id"], finished(running, SUITES)["runId"]
    about = [f"/api/runs/{run_id}", f"/api/runs/{run_id}/results", "/api/runs", "/api/baselines"]
    about += [f"/api/test-cases/{case}", f"/api/test-cases/{case}/versions", "/api/test-cases"]
    about += ["/api/trend", "/api/health", "/openapi.json", "/api/compare", "/api/runs/none"]
    for path in about:
        head, whole = running.head(path), running.get(path)
        assert (head.status_code, head.headers) == (whole.status_code, whole.headers), path
        assert head.content == b""
    agent.open.clear()  # a stream of events would last until the run has ended
    following = running.head(f"/api/runs/{start(running, SUITES)['runId']}/events")
    assert following.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "content-length" not in following.headers
    assert running.head(f"/api/runs/{run_id}/cancel").headers["allow"] == "POST"
    agent.open.set()


def test_suites_are_run(running: TestClient) -> None:
    run = finished(running, SUITES)
    counts = {name: run[name] for name in ("totalCases", "passed", "failed", "errored")}
    assert counts == {"totalCases": 2, "passed": 1, "failed": 1, "errored": 0}
    assert (run["status"], run["exitCode"], run["target"]) == ("finished", 1, "agent")
    assert run["reasons"] == ["1 case failed"]
    assert run["suites"] == ["evals/capitals.eval.yaml"]


def test_a_run_is_known_from_the_moment_it_is_accepted(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    run = start(running, SUITES)
    assert run["status"] == "running"
    assert run["progress"]["planned"] == 2
    listed = running.get("/api/runs").json()["data"]
    assert [one["runId"] for one in listed["runs"]] == [run["runId"]]
    agent.open.set()
    assert events(running, run["runId"])[-1][2] == {"status": "finished"}


def test_test_cases_are_run_by_id_and_by_tag(running: TestClient, agent: Agent) -> None:
    one, other = create(running, **FRANCE), create(running, input="x", tags=["Geometry"])
    create(running, input="untagged")
    by_id = finished(running, {"test_cases": [other["id"], one["id"]]})
    shown = results(running, by_id["runId"])["results"]
    assert [case["id"] for case in shown] == [other["id"], one["id"]]
    by_tag = finished(running, {"tag": "GEO"})
    assert by_tag["totalCases"] == 2
    assert "untagged" not in agent.asked


def test_results_stay_when_a_test_case_is_edited_or_deleted(running: TestClient) -> None:
    case = create(running, **FRANCE)
    path = f"/api/test-cases/{case['id']}"
    before = finished(running, {"test_cases": [case["id"]]})["runId"]
    shown = results(running, before)
    assert shown["results"][0]["details"]["source"] == f"store:{case['id']}@1"
    running.put(path, json={"expected_output": "Lyon"})
    after = finished(running, {"test_cases": [case["id"]]})["runId"]
    running.delete(path)
    assert results(running, before) == shown
    changed = results(running, after)["results"][0]
    assert changed["details"]["source"] == f"store:{case['id']}@2"
    assert not changed["passed"]
    compared = running.get("/api/compare", params={"base": before, "candidate": after})
    assert compared.json()["data"]["notComparable"] == [case["id"]]


def test_options_and_evaluators_are_those_of_the_request(running: TestClient) -> None:
    case = create(running, input="in France or not?", expected_output="paris")
    body = {"test_cases": [case["id"]], "evaluators": [{"type": "icontains", "value": "PARIS"}]}
    run = finished(running, body | {"options": {"repeat": 3}})
    (result,) = results(running, run["runId"])["results"]
    assert result["passed"]
    assert len(result["details"]["trials"]) == 3
    assert [one["type"] for one in result["details"]["evaluators"]] == ["icontains"]
    assert run["options"]["repeat"] == 3


def test_a_request_selects_cases_by_content_or_by_the_results_of_a_run(running: TestClient) -> None:
    first = finished(running, SUITES | {"options": {"select": "id:s*"}})
    assert first["totalCases"] == 1
    whole = finished(running, SUITES)
    options = {"select": "outcome:passed", "of": whole["runId"]}
    run = finished(running, SUITES | {"options": options})
    assert (run["totalCases"], run["passed"]) == (1, 1)


def test_another_configured_target_can_be_used(running: TestClient, agent: Agent) -> None:
    assert finished(running, SUITES | {"target": "other"})["target"] == "other"
    assert agent.asked == []


def test_a_request_may_keep_or_override_the_configured_workers(
    project: Settings, store: Store, tmp_path: Path
) -> None:
    defaults = "{targets: [{name: o, provider: echo}], defaults: {target: o, workers: 2000}}"
    (tmp_path / "assay.yaml").write_text(defaults)
    with TestClient(create_app(Settings.find(tmp_path), store), ADDRESS) as client:
        for options in ({}, {"workers": 2000}, {"workers": None}, {"workers": 3}):
            assert finished(client, SUITES | {"options": options})["status"] == "finished"


RUBRIC = {"type": "rubric", "rubrics": ["it is right"]}
INTRUSIONS: list[tuple[dict[str, Any], str]] = [
    ({"target": "command:touch pwned"}, "No configured target is called 'command:touch pwned'"),
    ({"target": "python:os:system"}, "No configured target"),
    ({"target": "http://169.254.169.254/"}, "No configured target"),
    ({"options": {"judge": "command:id"}}, "No configured target"),
    ({"options": {"baseline": "/etc/passwd"}}, "must be the id of a run"),
    ({"options": {"baseline": "evals/x.json"}}, "must be the id of a run"),
    ({"options": {"target": "command:id"}}, "is a field of the request itself"),
    ({"evaluators": [{"type": "code_judge", "script": "id"}]}, "cannot be given in a request"),
    ({"evaluators": [{"type": "code-judge", "script": "id"}]}, "cannot be given in a request"),
    ({"evaluators": [{"type": "script", "command": "id"}]}, "cannot be given in a request"),
    ({"evaluators": [{"type": "code-grader", "command": "id"}]}, "cannot be given in a request"),
    ({"evaluators": ["python:os:system"]}, "cannot be given in a request"),
    ({"evaluators": [{"type": "python", "function": "os:system"}]}, "cannot be given"),
    (
        {"evaluators": [{"type": "composite", "assert": [{"type": "code_judge", "script": "id"}]}]},
        "cannot be given in a request",
    ),
    (
        {
            "evaluators": [
                {
                    "type": "composite",
                    "evaluators": ["is_json"],
                    "aggregator": {"type": "code_judge", "script": "id"},
                }
            ]
        },
        "cannot run a program",
    ),
    ({"evaluators": [{"type": "llm_judge", "prompt": "/etc/secret.md"}]}, "cannot be a file"),
    ({"evaluators": [{"type": "llm-rubric", "value": "/etc/secret.md"}]}, "cannot be a file"),
    ({"evaluators": [{"type": "llm_judge", "value": "/etc/secret.md"}]}, "cannot be a file"),
    ({"evaluators": [{"type": "llm_judge", "prompt": "a b/../../x.txt "}]}, "cannot be a file"),
    ({"evaluators": [{"type": "llm_judge", "model": "command:id"}]}, "No configured target"),
    ({"evaluators": [{"type": "llm_judge", "model": "gpt-6-sol"}]}, "called 'openai:gpt-6-sol'"),
    ({"evaluators": [{"type": "llm_judge", "target": "command:id"}]}, "No configured target"),
    ({"options": {"workers": 5000}}, "at most 1000"),
    ({"options": {"repeat": 5000}}, "at most 1000"),
    ({"options": {"workers": 5000.0}}, "'workers' is 5000; at most 1000"),
    ({"options": {"repeat": 5e3}}, "at most 1000"),
]


def test_models_call_functions_only_if_the_configuration_allows_it(
    project: Settings, store: Store, agent: Agent
) -> None:
    made = {"function": {"name": "answer", "arguments": '{"message": "France"}'}, "id": "1"}
    call = provider.sends(provider.openai({"tool_calls": [made]}))
    with ProviderServer(call, provider.says("Paris")) as server:
        tools = "[python:agent_of_the_server_tests:answer]"
        entry = f"{{name: m, provider: openai, model: m, base_url: '{server.openai}'"
        config = f"targets: [{entry}, tools: {tools}}}]\n"
        request = SUITES | {"target": "m", "options": {"limit": 1, "seed": 1}}
        (project.root / "assay.yaml").write_text(config)
        with TestClient(create_app(Settings.find(project.root), store), ADDRESS) as client:
            message = refused(client.post("/api/runs", json=request), 400, "INVALID_INPUT")
            assert "allow_tools_over_rest" in message
            assert (agent.asked, server.bodies) == ([], [])
        (project.root / "assay.yaml").write_text(f"allow_tools_over_rest: true\n{config}")
        with TestClient(create_app(Settings.find(project.root), store), ADDRESS) as client:
            assert finished(client, request)["status"] == "finished"
            assert agent.asked == ["France"]


@pytest.mark.parametrize(("more", "message"), INTRUSIONS)
def test_a_request_runs_no_program_and_reads_no_file(
    running: TestClient, more: dict[str, Any], message: str
) -> None:
    response = running.post("/api/runs", json=SUITES | more)
    assert message in refused(response, 400, "INVALID_INPUT")
    assert running.get("/api/runs").json()["data"]["count"] == 0


@pytest.mark.parametrize(
    "more",
    [
        {"execution": {"target": "echo:"}},
        {"evaluators": [{"type": "llm_judge", "prompt": "is it right?", "target": "echo:"}]},
        {"evaluators": [{"type": "llm_judge", "prompt": "is it right?", "model": "echo:"}]},
        {"evaluators": [{"type": "composite", "evaluators": [RUBRIC | {"model": "echo:"}]}]},
    ],
)
def test_a_case_cannot_lead_to_a_target_that_is_not_configured(
    project: Settings, store: Store, tmp_path: Path, more: dict[str, Any]
) -> None:
    (tmp_path / "assay.yaml").write_text("targets: [{name: other, provider: echo}]")
    case = {"id": "a", "input": "x", "expected_output": "x"} | more
    (tmp_path / "evals" / "own.eval.yaml").write_text(json.dumps({"cases": [case]}))
    with TestClient(create_app(Settings.find(tmp_path), store), ADDRESS) as client:
        response = client.post("/api/runs", json={"suites": ["evals/own.eval.yaml"]})
    assert "No configured target is called 'echo:'" in refused(response, 400, "INVALID_INPUT")


def test_paths_stay_below_the_served_root(running: TestClient, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.eval.yaml"
    outside.write_text("cases: [{id: a, input: x, expected_output: x}]")
    (tmp_path / "link.eval.yaml").symlink_to(outside)
    paths = (f"../{outside.name}", str(outside), "evals/../../x", "link.eval.yaml", "..", "/")
    for path in paths:
        response = running.post("/api/runs", json={"suites": [path]})
        assert "leads out of the served root" in refused(response, 400, "INVALID_INPUT")
    absent = running.post("/api/runs", json={"suites": ["no.yaml"]})
    assert "does not exist" in refused(absent, 400, "INVALID_INPUT")


def test_a_file_whose_name_is_not_utf_8_is_refused(running: TestClient, tmp_path: Path) -> None:
    (tmp_path / "evals" / os.fsdecode(b"\xff.eval.yaml")).write_text(ONE)
    response = running.post("/api/runs", json={"suites": ["evals"]})
    assert "\\xff.eval.yaml: the name of" in refused(response, 400, "INVALID_INPUT")


def test_the_served_root_may_be_a_part_of_the_project(
    project: Settings, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "other.eval.yaml").write_text("cases: [{id: a, input: x, expected_output: x}]")
    with TestClient(create_app(project, store, root=tmp_path / "evals"), ADDRESS) as client:
        assert finished(client, {"suites": ["capitals.eval.yaml"]})["totalCases"] == 2
        response = client.post("/api/runs", json={"suites": ["../other.eval.yaml"]})
        refused(response, 400, "INVALID_INPUT")


FILE = "{role: user, content: [{type: file, value: s.txt}]}"
ONE = "cases: [{id: a, input: x, expected_output: x}]"
#: Files of a suite below the served root; `OUT` stands for a link to what is in the folder outside.
LINKS: list[tuple[dict[str, str], str, str]] = [
    ({"lk/x.eval.yaml": "OUT/one.eval.yaml"}, "lk", "x.eval.yaml: this link leads outside"),
    ({"lk/deep": "OUT"}, "lk", "deep: this link leads outside"),
    ({"lk/x.jsonl": "OUT/lines.jsonl"}, "lk", "x.jsonl: this link leads outside"),
    ({"lk/x.yaml": "OUT/one.eval.yaml"}, ".", "x.yaml: this link leads outside"),
    (
        {"x.jsonl": '{"input": "x", "expected_output": "x"}\n', "x.yml": "OUT/keys.yml"},
        "x.jsonl",
        "x.yml: this link leads outside",
    ),
    (
        {"t.regression.json": "[]", "t.regression.lock.json": "OUT/one.eval.yaml"},
        "t.regression.json",
        "t.regression.lock.json: this link leads outside",
    ),
    (
        {"t.regression.lock.json": "{}", "t.regression.archive.json": "OUT/one.eval.yaml"},
        ".",
        "t.regression.archive.json: this link leads outside",
    ),
    (
        {
            "x.eval.yaml": ONE.replace("input: x", f"input: [{FILE}]"),
            "s.txt": "OUT/secret.txt",
        },
        "x.eval.yaml",
        "'s.txt' is outside the served root",
    ),
]


@pytest.mark.parametrize("part", ["", "served"])
@pytest.mark.parametrize(("files", "path", "message"), LINKS)
def test_no_link_in_a_suite_leads_out_of_the_served_root(
    project: Settings,
    store: Store,
    tmp_path: Path,
    files: dict[str, str],
    path: str,
    message: str,
    part: str,
) -> None:
    # If only part of the project is served, the rest of the project is outside too.
    outside = tmp_path / "beside" if part else tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    for name, text in {"one.eval.yaml": ONE, "keys.yml": "tags: [x]", "secret.txt": "s"}.items():
        (outside / name).write_text(text)
    (outside / "lines.jsonl").write_text('{"input": "x", "expected_output": "x"}')
    served = tmp_path / part
    for name, text in files.items():
        (served / name).parent.mkdir(exist_ok=True, parents=True)
        if text.startswith("OUT"):
            (served / name).symlink_to(outside / text.removeprefix("OUT").lstrip("/"))
        else:
            (served / name).write_text(text)
    config = project.config.model_copy(update={"allow_outside_root": True})
    settings = Settings(project.root, config)
    with TestClient(create_app(settings, store, root=served), ADDRESS) as client:
        response = client.post("/api/runs", json={"suites": [path]})
        assert message in refused(response, 400, "INVALID_INPUT")
        assert client.get("/api/runs").json()["data"]["count"] == 0


def test_links_within_the_served_root_are_followed(running: TestClient, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "x.eval.yaml").symlink_to(tmp_path / "evals" / "capitals.eval.yaml")
    (tmp_path / "linked" / "notes.txt").symlink_to("/etc/hostname")
    assert finished(running, {"suites": ["linked"]})["totalCases"] == 2


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({}, "MISSING_FIELD", "Field 'test_cases' is required, or 'tag', or 'suites'"),
        ({"tag": "x", **SUITES}, "INVALID_INPUT", "exclude each other"),
        ({"tag": "none"}, "INVALID_INPUT", "No test case has the tag 'none'"),
        ({"tag": ""}, "INVALID_LENGTH", "Field 'tag'"),
        ({"suites": []}, "INVALID_LENGTH", "Field 'suites' must have 1-1000 items"),
        ({"suites": "evals"}, "INVALID_INPUT", "an array of texts"),
        ({"suites": ["a" * 300]}, "INVALID_INPUT", "does not exist below the served root"),
        ({"suites": ["a/" * 400]}, "INVALID_INPUT", "does not exist below the served root"),
        ({"test_cases": []}, "INVALID_LENGTH", "must have 1-20000 items"),
        ({"test_cases": "x"}, "INVALID_INPUT", "must be an array of ids"),
        ({"test_cases": ["x"]}, "INVALID_INPUT", "must be a UUID"),
        ({"test_cases": [str(uuid4())]}, "INVALID_INPUT", "which is not a test case"),
        ({"suite": ["evals"]}, "INVALID_INPUT", "did you mean 'suites'?"),
        (SUITES | {"options": {"repeats": 2}}, "INVALID_INPUT", "repeat"),
        (SUITES | {"options": {"repeat": 0}}, "INVALID_INPUT", "repeat"),
        (SUITES | {"options": []}, "INVALID_INPUT", "must be an object"),
        (SUITES | {"evaluators": "equals"}, "INVALID_INPUT", "must be an array"),
        (SUITES | {"evaluators": [5]}, "INVALID_INPUT", "'type'"),
        (SUITES | {"evaluators": [{"type": "regex"}]}, "INVALID_INPUT", "'value' is missing"),
        (SUITES | {"evaluators": [{"type": "json_schema"}]}, "INVALID_INPUT", "'value' is missing"),
        (SUITES | {"evaluators": [nested(200)]}, "INVALID_INPUT", "deeper than 100 levels"),
        (SUITES | {"evaluators": ["equals"] * 1001}, "INVALID_LENGTH", "at most 1000 items"),
        (SUITES | {"evaluators": [{UNPAIRED: 1}]}, "INVALID_INPUT", "surrogate pair"),
        (SUITES | {"evaluators": [SCHEMA]}, "INVALID_INPUT", "surrogate"),
        (SUITES | {"options": {"filter": UNPAIRED}}, "INVALID_INPUT", "surrogate pair"),
        (SUITES | {"options": {"select": "tga:x"}}, "INVALID_INPUT", "column 1: unknown field"),
        (SUITES | {"options": {"select": "flaky"}}, "INVALID_INPUT", "needs results (flaky)"),
        (SUITES | {"options": {"select": "flaky", "of": "x"}}, "INVALID_INPUT", "'of' must be"),
        (SUITES | {"options": {"of": "a.json", "select": "x"}}, "INVALID_INPUT", "'of' must be"),
    ],
)
def test_an_invalid_run_request_is_refused(
    running: TestClient, body: dict[str, Any], code: str, message: str
) -> None:
    headers = {"content-type": "application/json"}
    response = running.post("/api/runs", content=json.dumps(body), headers=headers)
    assert message in refused(response, 400, code)
    assert running.get("/api/runs").json()["data"]["count"] == 0


def test_problems_of_a_suite_are_reported_with_their_place(
    running: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "evals" / "bad.eval.yaml").write_text("cases:\n  - {id: a, inptu: x}\n")
    response = running.post("/api/runs", json={"suites": ["evals/bad.eval.yaml"]})
    message = refused(response, 400, "INVALID_INPUT")
    assert "bad.eval.yaml:2:" in message
    assert "inptu" in message


def test_events_cover_a_run_from_its_start(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    run_id = start(running, SUITES | {"options": {"workers": 1}})["runId"]
    agent.open.set()
    seen = events(running, run_id, **{"last-event-id": "0"})
    names = [name for name, _, _ in seen]
    if names[0] == "started":  # else it had ended before we asked
        assert names == ["started", "trial", "trial", "finished"]
        assert [place.rpartition("-")[2] for _, place, _ in seen] == ["1", "2", "3", "4"]
        assert len({place.partition("-")[0] for _, place, _ in seen}) == 1
        assert {seen[1][2]["case_id"], seen[2][2]["case_id"]} == {"france", "spain"}
    assert seen[-1][2] == {"status": "finished"}


def test_a_run_can_be_cancelled(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    run_id = start(running, SUITES | {"options": {"workers": 1}})["runId"]
    assert agent.reached.wait(WAIT_SECONDS)
    cancelled = running.post(f"/api/runs/{run_id}/cancel", json={})
    assert (cancelled.status_code, cancelled.json()["data"]["runId"]) == (202, run_id)
    agent.open.set()
    assert events(running, run_id)[-1][2] == {"status": "interrupted"}
    assert len(agent.asked) == 1
    again = running.post(f"/api/runs/{run_id}/cancel", json={})
    assert "is interrupted" in refused(again, 400, "INVALID_INPUT")
    assert results(running, run_id)["total"] == 1


def test_a_foreign_page_cancels_nothing(running: TestClient) -> None:
    run_id = finished(running, SUITES)["runId"]
    response = running.post(f"/api/runs/{run_id}/cancel")
    refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("body", [b"", b"null", b"\0", b'{"now": true}'])
def test_a_body_to_cancel_with_is_empty(running: TestClient, body: bytes) -> None:
    run_id = finished(running, SUITES)["runId"]
    json = {"content-type": "application/json"}
    response = running.post(f"/api/runs/{run_id}/cancel", content=body, headers=json)
    assert "nothing to cancel" not in refused(response, 400, "INVALID_INPUT")


def test_the_number_of_concurrent_runs_is_limited(running: TestClient, agent: Agent) -> None:
    agent.open.clear()
    for _ in range(16):
        start(running, SUITES)
    assert running.get("/api/health").json()["data"]["runs"] == 16
    refused(running.post("/api/runs", json=SUITES), 400, "INVALID_INPUT")
    agent.open.set()


def test_results_are_paged_filtered_and_searched(running: TestClient) -> None:
    run_id = finished(running, SUITES)["runId"]

    def ids(**query: Any) -> list[str]:
        return [case["id"] for case in results(running, run_id, **query)["results"]]

    everything = results(running, run_id)
    assert (everything["count"], everything["total"], everything["next"]) == (2, 2, None)
    assert [case["suite"] for case in everything["results"]] == ["evals/capitals.eval.yaml"] * 2
    assert ids(outcome="failed") == ids(q="IBERIA") == ids(q="no idea") == ["spain"]
    assert ids(outcome="errored") == ids(q="nowhere") == []
    assert results(running, run_id, q="idea")["total"] == 1
    assert results(running, run_id, outcome="passed")["total"] == 1
    page = results(running, run_id, limit=1)
    assert (page["count"], page["total"]) == (1, 2)
    assert ids(limit=1, after=page["next"]) == ids(skip=1) == ["spain"]
    for query in ({"outcome": "bad"}, {"limit": 0}, {"after": "x"}, {"page": 2}):
        response = running.get(f"/api/runs/{run_id}/results", params=query)
        refused(response, 400, "INVALID_INPUT")


def test_runs_are_listed_newest_first_page_by_page(running: TestClient) -> None:
    ids = [finished(running, SUITES)["runId"] for _ in range(3)]
    first = running.get("/api/runs?limit=2").json()["data"]
    assert [run["runId"] for run in first["runs"]] == ids[:0:-1]
    rest = running.get(f"/api/runs?limit=2&before={first['next']}").json()["data"]
    assert ([run["runId"] for run in rest["runs"]], rest["next"]) == (ids[:1], None)
    upper = running.get(f"/api/runs?limit=2&before={first['next'].upper()}").json()["data"]
    assert upper == rest
    refused(running.get("/api/runs?before=x"), 400, "INVALID_INPUT")


@pytest.mark.parametrize("path", ["", "/results", "/events"])
@pytest.mark.parametrize("run_id", ["0d9a3f62-5b1e-4c7a-9f10-2f4f6d1c8b3e", "latest", "x"])
def test_a_run_that_is_not_there_is_not_found(running: TestClient, path: str, run_id: str) -> None:
    response = running.get(f"/api/runs/{run_id}{path}")
    assert refused(response, 404, "NOT_FOUND") == "Run not found"


def test_baselines_are_set_listed_and_removed(running: TestClient) -> None:
    run_id = finished(running, SUITES)["runId"]
    response = running.put("/api/baselines/main", json={"run": "latest"})
    assert response.status_code == 200
    (one,) = running.get("/api/baselines").json()["data"]["baselines"]
    assert (one["name"], one["runId"]) == ("main", run_id)
    assert response.json()["data"] == one
    assert running.get(f"/api/runs/{run_id}").json()["data"]["baselines"] == ["main"]
    assert running.delete("/api/baselines/main").status_code == 204
    assert running.get("/api/baselines").json()["data"]["total"] == 0
    refused(running.delete("/api/baselines/main"), 404, "NOT_FOUND")


def test_both_encodings_of_an_accent_are_one_baseline(running: TestClient) -> None:
    finished(running, SUITES)
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for name in (decomposed, composed):
        assert running.put(f"/api/baselines/{name}", json={"run": "latest"}).status_code == 200
    (one,) = running.get("/api/baselines").json()["data"]["baselines"]
    assert one["name"] == composed
    assert running.delete(f"/api/baselines/{decomposed}").status_code == 204
    assert running.get("/api/baselines").json()["data"]["count"] == 0


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("main", {}, "MISSING_FIELD"),
        ("main", {"run": "latest"}, "INVALID_INPUT"),
        ("latest", {"run": "latest"}, "INVALID_INPUT"),
        ("x.json", {"run": "latest"}, "INVALID_INPUT"),
        ("main", {"run": 5}, "INVALID_INPUT"),
    ],
)
def test_a_wrong_baseline_is_refused(
    running: TestClient, name: str, body: dict[str, Any], code: str
) -> None:
    refused(running.put(f"/api/baselines/{name}", json=body), 400, code)


def test_two_runs_are_compared(running: TestClient) -> None:
    base = finished(running, SUITES)["runId"]
    candidate = finished(running, SUITES | {"target": "other"})["runId"]
    running.put("/api/baselines/main", json={"run": base})
    response = running.get(f"/api/compare?base=main&candidate={candidate}&gate=strict")
    data = response.json()["data"]
    assert (data["base"], data["candidate"]) == (base, candidate)
    assert data["regressions"] == ["france"]
    assert data["exitCode"] == 1


def test_a_baseline_of_no_run_is_not_found(running: TestClient) -> None:
    refused(running.put("/api/baselines/main", json={"run": "nothing"}), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("base=main", 400, "MISSING_FIELD"),
        ("", 400, "MISSING_FIELD"),
        ("base=a&candidate=b", 404, "NOT_FOUND"),
        ("base=/etc/passwd&candidate=x.json", 404, "NOT_FOUND"),
        ("base=evals/capitals.eval.yaml&candidate=b", 404, "NOT_FOUND"),
        ("base=a&candidate=b&gate=soft", 400, "INVALID_INPUT"),
        ("base=a&candidate=b&margin=2", 400, "INVALID_INPUT"),
        ("base=a&candidate=b&margin=nan", 400, "INVALID_INPUT"),
        ("base=a&candidate=b&strict=maybe", 400, "INVALID_INPUT"),
    ],
)
def test_a_wrong_comparison_is_refused(
    running: TestClient, query: str, status: int, code: str
) -> None:
    refused(running.get(f"/api/compare?{query}"), status, code)


def test_the_trend_has_a_point_for_every_finished_run(running: TestClient) -> None:
    run = finished(running, SUITES)
    data = running.get("/api/trend").json()["data"]
    (point,) = data["points"]
    assert (point["runId"], point["passed"], point["judged"]) == (run["runId"], 1, 2)
    assert 0 < point["passRate"]["low"] < 0.5 < point["passRate"]["high"] < 1
    assert running.get("/api/trend?suite=evals/capitals.eval.yaml").json()["data"]["count"] == 1
    target = data["points"][0]["target"]
    assert running.get(f"/api/trend?target={target}").json()["data"] == data
    message = refused(running.get("/api/trend?target=none"), 404, "NOT_FOUND")
    assert "'none'" in message
    message = refused(running.get("/api/trend?suite=none"), 404, "NOT_FOUND")
    assert message == "No run has a suite 'none'"
    refused(running.get("/api/trend?last=0"), 400, "INVALID_INPUT")


def test_unknown_parameters_are_refused_everywhere(running: TestClient) -> None:
    run_id, case_id = finished(running, SUITES)["runId"], create(running)["id"]
    running.put("/api/baselines/main", json={"run": "latest"})
    case = f"/api/test-cases/{case_id}"
    requests: list[tuple[str, str]] = [
        *(("GET", path) for path in ("/api/health", "/api/baselines", "/openapi.json")),
        *(("GET", path) for path in (case, f"{case}/versions", f"/api/runs/{run_id}")),
        *(("GET", f"/api/runs/{run_id}/{part}") for part in ("results", "events")),
        *(("POST", path) for path in ("/api/runs", f"/api/runs/{run_id}/cancel")),
        *(("POST", "/api/test-cases"), ("PUT", case), ("DELETE", case)),
        *(("PUT", "/api/baselines/main"), ("DELETE", "/api/baselines/main")),
    ]
    for method, path in requests:
        body: dict[str, str] | None = None if method in ("GET", "DELETE") else {}
        response = running.request(method, f"{path}?verbose=1", json=body)
        message = refused(response, 400, "INVALID_INPUT")
        assert message == "Query parameter 'verbose' is not known", path


def test_health_of_a_running_server(running: TestClient) -> None:
    data = running.get("/api/health").json()["data"]
    assert (data["status"], data["runs"]) == ("ok", 0)


def test_a_run_whose_process_was_killed_is_marked_interrupted(
    project: Settings, store: Store
) -> None:
    record = RunRecord(
        id=str(uuid4()), started_at="2026-01-15T10:00:00.000Z", status="running", target="agent"
    )
    store.begin(record)
    with TestClient(create_app(project, store), ADDRESS) as client:
        path = f"/api/runs/{record.id}"
        while client.get(path).json()["data"]["status"] == "running":
            pass
        data = client.get(path).json()["data"]
    assert data["status"] == "interrupted"
    assert data["notes"] == ["the process that ran it was killed"]


def test_a_run_that_cannot_be_resumed_is_marked_interrupted(
    project: Settings, store: Store
) -> None:
    record = RunRecord(
        id=str(uuid4()),
        started_at="2026-01-15T10:00:00.000Z",
        status="running",
        target="agent",
        plan={"paths": ["evals/gone.eval.yaml"]},
        environment={"startedBy": "serve"},
    )
    store.begin(record)
    with TestClient(create_app(project, store), ADDRESS) as client:
        path = f"/api/runs/{record.id}"
        while client.get(path).json()["data"]["status"] == "running":
            pass
        (note,) = client.get(path).json()["data"]["notes"]
    assert note.startswith("it could not be resumed: ")


def test_an_evaluator_says_whether_a_request_may_contain_it() -> None:
    built_in = set(evaluators.usable())
    assert built_in - run_requests.allowed_evaluators() == {"code_judge", "python"}

    class RunsAProgram(ContainsEvaluator):
        pass

    assert not RunsAProgram.allowed_in_requests, "a subclass has to say so itself"
