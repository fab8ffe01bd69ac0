"""Nothing that the server sends or logs has a secret of the project, or part of one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.server.serving import log_handler
from assay.settings import Settings
from server.conftest import ADDRESS
from server.test_runs import finished, results

SECRET = "Zq7Wx9Kv2Jp4Yt6Hn8Bm3Gf5Dc1Ls0R"
PARTS = [SECRET[i : i + 5] for i in range(len(SECRET) - 4)]


def leaks(text: str) -> list[str]:
    return [part for part in PARTS if part in text]


@pytest.fixture
def client(
    project: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    monkeypatch.setenv("ASSAY_API_TOKENS", SECRET)
    with TestClient(create_app(project, store), ADDRESS) as client:
        yield client


def test_no_error_has_part_of_a_secret(client: TestClient) -> None:
    for offset in range(60):
        text = "." * offset + SECRET + "." * 60
        bodies = ({text: 1}, {"suites": [text]}, {"suites": ["evals"], "target": text})
        for body in (*bodies, {"suites": ["evals"], "evaluators": [{"type": text}]}):
            response = client.post("/api/runs", json=body)
            assert response.status_code in (400, 404)
            assert not leaks(response.text), response.text
        for path in (f"/api/test-cases?{text}=1", f"/api/runs/{text}", f"/{text}"):
            assert not leaks(client.get(path).text), path


def test_no_result_and_no_event_has_part_of_a_secret(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, project: Settings
) -> None:
    cases = [
        f"  - {{id: c{n}, input: '{'.' * n}', expected_output: Paris}}" for n in range(1, 130, 3)
    ]
    (project.root / "evals" / "capitals.eval.yaml").write_text("\n".join(["cases:", *cases]))
    module = sys.modules["agent_of_the_server_tests"]
    monkeypatch.setattr(module, "answer", lambda text: f"{text}{SECRET}{'.' * 1100}")
    run = finished(client, {"suites": ["evals/capitals.eval.yaml"]})
    assert run["summary"]["failed"] == len(cases)
    found = str(results(client, run["runId"], limit=100))
    assert found.count("expected 'Paris', found") >= len(cases)
    assert not leaks(found)
    assert not leaks(client.get(f"/api/runs/{run['runId']}/events").text)


def test_the_log_has_no_secret(project: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_API_TOKENS", SECRET)
    handler = log_handler(project)
    try:
        raise ValueError(f"denied to {SECRET}")
    except ValueError as error:
        failure = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("x", 40, "f", 1, "failed: %s", (SECRET,), failure)
    shown = handler.format(record)
    assert "ValueError: denied to [redacted]" in shown
    assert not leaks(shown)
