"""`assay serve` as a process: it is killed, stopped, started again, and kept busy."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from e2e.projects import Agent, Gate, Process, Project, ended
from timeouts import WAIT_SECONDS

PARIS = {"input": "capital of France?", "expected_output": "Paris"}


@dataclass
class Served:
    """A server at work, and a client of it."""

    process: Process
    url: str
    client: httpx2.Client

    def get(self, path: str) -> Any:
        response = self.client.get(path)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def post(self, path: str, body: Any) -> Any:
        response = self.client.post(path, json=body)
        assert response.status_code in (201, 202), response.text
        return response.json()["data"]

    def until_ended(self, run_id: str) -> dict[str, Any]:
        """The run, once its stream of events is over."""
        self.client.get(f"/api/runs/{run_id}/events")
        found: dict[str, Any] = self.get(f"/api/runs/{run_id}")
        return found


@contextmanager
def serving(project: Project, *arguments: str, tokens: str = "") -> Iterator[Served]:
    """A server, killed at the end unless it has ended already."""
    env = {"ASSAY_API_TOKENS": tokens} if tokens else {}
    process = project.start("serve", "--port", "0", *arguments, env=env)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r" on (http://\S+)", line)
        assert match is not None, line + process.stderr.read() if process.stderr else line
        with httpx2.Client(base_url=match[1], timeout=WAIT_SECONDS) as client:
            yield Served(process, match[1], client)
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    target = {"name": "agent", "provider": "http", "url": f"{agent.url}/ask"}
    home.write("assay.yaml", {"targets": [target]})
    cases = [{"id": f"c{n}", "input": f"say {n}", "expected_output": f"say {n}"} for n in range(5)]
    home.write("evals/five.eval.yaml", {"cases": cases})
    return home


RUN = {"suites": ["evals"], "options": {"workers": 1}}


def test_a_killed_server_loses_no_acknowledged_write(project: Project) -> None:
    acknowledged: list[str] = []
    lock = threading.Lock()

    with serving(project) as server:

        def write(number: int) -> None:
            with httpx2.Client(base_url=server.url, timeout=WAIT_SECONDS) as client:
                while True:
                    body = PARIS | {"description": str(number)}
                    try:
                        made = client.post("/api/test-cases", json=body)
                    except httpx2.TransportError:
                        return
                    with lock:
                        acknowledged.append(made.json()["data"]["id"])
                        if len(acknowledged) == 200:
                            server.process.kill()

        writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(WAIT_SECONDS)
    with serving(project) as server:
        kept = server.get("/api/test-cases?limit=1000")
    assert set(acknowledged) <= {case["id"] for case in kept["test_cases"]}
    assert kept["total"] == len(kept["test_cases"]) >= 200


def test_a_killed_server_goes_on_with_its_runs(project: Project, agent: Agent, gate: Gate) -> None:
    with serving(project) as server:
        run_id = server.post("/api/runs", RUN)["runId"]
        gate.await_reached()
        server.process.kill()
        server.process.wait(WAIT_SECONDS)
    gate.open()
    with serving(project) as server:
        run = server.until_ended(run_id)
        assert (run["status"], run["passed"]) == ("finished", 5)
        assert server.get("/api/runs")["count"] == 1


def test_a_run_of_test_cases_goes_on_with_the_versions_it_began_with(
    project: Project, agent: Agent, gate: Gate
) -> None:
    with serving(project) as server:
        body = {"input": "hello", "expected_output": "hello", "tags": ["greeting"]}
        ids = [server.post("/api/test-cases", body)["id"] for _ in range(3)]
        run_id = server.post("/api/runs", {"tag": "greet", "options": {"workers": 1}})["runId"]
        gate.await_reached()
        server.client.put(f"/api/test-cases/{ids[1]}", json={"expected_output": "goodbye"})
        server.client.delete(f"/api/test-cases/{ids[2]}")
        server.process.kill()
        server.process.wait(WAIT_SECONDS)
    gate.open()
    with serving(project) as server:
        run = server.until_ended(run_id)
        assert (run["status"], run["totalCases"], run["passed"]) == ("finished", 3, 3)
        results = server.get(f"/api/runs/{run_id}/results")["results"]
        assert {case["details"]["source"] for case in results} == {f"store:{i}@1" for i in ids}


def test_a_stopped_server_ends_gently_and_goes_on_later(
    project: Project, agent: Agent, gate: Gate
) -> None:
    with serving(project) as server, ExitStack() as stack:
        run_id = server.post("/api/runs", RUN)["runId"]
        gate.await_reached()
        events = stack.enter_context(server.client.stream("GET", f"/api/runs/{run_id}/events"))
        lines = events.iter_lines()
        assert next(lines) == "event: progress"
        server.process.send_signal(signal.SIGTERM)
        assert "event: finished" not in list(lines)  # the stream ends; the run has not
        gate.open()
        done = ended(server.process, 0)
        assert "Traceback" not in done.stderr
    ((_, status),) = project.runs()
    assert status == "interrupted"
    asked = len(agent.seen)
    assert asked < 5
    with serving(project) as server:
        run = server.until_ended(run_id)
        assert (run["status"], run["passed"]) == ("finished", 5)
    assert len(agent.seen) == 5


def test_a_cancelled_run_stays_cancelled(project: Project, agent: Agent, gate: Gate) -> None:
    with serving(project) as server:
        run_id = server.post("/api/runs", RUN)["runId"]
        gate.await_reached()
        server.post(f"/api/runs/{run_id}/cancel", {})
        gate.open()
        assert server.until_ended(run_id)["status"] == "interrupted"
        server.process.send_signal(signal.SIGINT)
        ended(server.process, 0)
    asked = len(agent.seen)
    with serving(project) as server:
        assert server.get(f"/api/runs/{run_id}")["status"] == "interrupted"
        assert server.get("/api/health")["runs"] == 0
    assert len(agent.seen) == asked


def test_a_cancelled_run_stays_cancelled_when_the_server_is_killed(
    project: Project, agent: Agent, gate: Gate
) -> None:
    with serving(project) as server:
        run_id = server.post("/api/runs", RUN)["runId"]
        gate.await_reached()
        server.post(f"/api/runs/{run_id}/cancel", {})
        server.process.kill()
        server.process.wait(WAIT_SECONDS)
    gate.open()
    asked = len(agent.seen)
    with serving(project) as server:
        run = server.until_ended(run_id)
        assert (run["status"], run["notes"]) == ("interrupted", ["it was cancelled"])
    assert len(agent.seen) == asked


def test_a_request_under_way_is_answered_before_the_end(project: Project) -> None:
    body = json.dumps(PARIS).encode()
    with serving(project) as server, _connected(server) as connection:
        head = "POST /api/test-cases HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head += "Expect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")  # it is in our hands
        server.process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        assert connection.recv(1000).startswith(b"HTTP/1.1 201")
        ended(server.process, 0)


@contextmanager
def _connected(server: Served) -> Iterator[socket.socket]:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as connection:
        yield connection


def test_idle_and_slow_clients_do_not_stop_others(project: Project) -> None:
    with serving(project) as server, ExitStack() as stack:
        for number in range(500):
            connection = stack.enter_context(_connected(server))
            if number % 2:  # the others say nothing at all
                connection.sendall(b"POST /api/test-cases HTTP/1.1\r\nHost: loc")
        for _ in range(20):
            server.post("/api/test-cases", PARIS)
        assert server.get("/api/test-cases")["total"] == 20


def test_the_port_of_another_is_refused(project: Project) -> None:
    with serving(project) as server:
        port = server.url.rpartition(":")[2]
        done = project.run("serve", "--port", port, code=2)
    assert f"127.0.0.1:{port} cannot be served: Address already in use\n" in done.stderr


def test_targets_that_cannot_be_used_are_told_at_once(project: Project, agent: Agent) -> None:
    right = {"name": "agent", "provider": "http", "url": f"{agent.url}/ask"}
    wrong = {"name": "wrong", "provider": "htp", "url": "http://127.0.0.1:1"}
    named = {"defaults": {"target": "nowhere"}, "judge": "nobody"}
    project.write("assay.yaml", {"targets": [right, wrong], **named})
    with serving(project) as server:
        answer = server.client.post("/api/runs", json=RUN | {"target": "wrong"})
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "INTERNAL_ERROR"
        run_id = server.post("/api/runs", RUN | {"target": "agent"})["runId"]
        assert server.until_ended(run_id)["status"] == "finished"
        server.process.terminate()
        errors = ended(server.process, 0).stderr
    fault = "no target provider is called 'htp' (did you mean 'http'?)"
    assert re.search(rf"a target cannot be used: assay.yaml:\d+:\d+: .*{re.escape(fault)}", errors)
    assert re.search(rf"POST /api/runs failed: .*{re.escape(fault)}", errors)
    for name in ("nowhere", "nobody"):
        assert f"a target cannot be used: no target is called '{name}'" in errors


def test_others_need_a_token(project: Project) -> None:
    done = project.run("serve", "--host", "0.0.0.0", "--port", "0", code=2)
    assert "ASSAY_API_TOKENS" in done.stderr
    with serving(project, "--host", "0.0.0.0", tokens="a-token, b-token") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{url}/api/health").status_code == 401
        header = {"Authorization": "Bearer b-token"}
        assert httpx2.get(f"{url}/api/health", headers=header).status_code == 200
        foreign = header | {"Host": "evil.example"}
        assert httpx2.get(f"{url}/api/health", headers=foreign).status_code == 400


def test_a_person_logs_in_behind_a_proxy(project: Project) -> None:
    url = "https://evals.example"
    arguments = ("--host", "127.0.0.1", "--public-url", url)
    with serving(project, *arguments, tokens="read:looker,write:writer") as server:
        headers = {"Host": "evals.example", "Accept": "text/html"}
        led = server.client.get("/docs", headers=headers)
        assert (led.status_code, led.headers["location"]) == (303, "/login?next=/docs")
        form = {"token": "looker", "next": "/docs"}
        assert server.client.post("/login", data=form, headers=headers).status_code == 403
        headers["Origin"] = url
        done = server.client.post("/login", data=form, headers=headers)
        assert (done.status_code, done.headers["location"]) == (303, "/docs")
        headers["Cookie"] = done.headers["set-cookie"].partition(";")[0]
        assert server.client.get("/docs", headers=headers).status_code == 200
        assert server.client.post("/api/test-cases", json=PARIS, headers=headers).status_code == 403
    with serving(project, *arguments, tokens="write:writer") as server:
        assert server.client.get("/docs", headers=headers).status_code == 303


def test_a_wrong_public_url_or_token_list_is_refused(project: Project) -> None:
    done = project.run("serve", "--public-url", "evals.example", code=2)
    assert "--public-url: 'evals.example' is not the address of a server" in done.stderr
    done = project.run("serve", env={"ASSAY_API_TOKENS": "read:"}, code=2)
    assert "ASSAY_API_TOKENS: entry 1 is 'read:', without a token" in done.stderr


def test_a_root_that_is_not_there_is_refused(project: Project) -> None:
    done = project.run("serve", "--root", "nowhere", code=2)
    assert "nowhere cannot be served" in done.stderr


def test_test_cases_are_imported_run_and_exported(project: Project, agent: Agent) -> None:
    project.write("more.jsonl", '{"input": "a", "expected_output": "a", "tags": ["x"]}\n')
    assert "1 added" in project.call("import", "more.jsonl", "--tag", "y").stdout
    done = json.loads(project.call("run", "store:", "--tag", "x", "--json").stdout)
    (suite,) = done["suites"]
    assert suite["file"] == "store:"
    assert suite["summary"]["passed"] == 1
    assert suite["cases"][0]["details"]["source"].endswith("@1")
    project.call("export", "--test-cases", "-o", "out.yaml")
    assert "1 as before" in project.call("import", "out.yaml").stdout
    for wrong in (
        ("export", "latest", "--test-cases"),
        ("export", "--tag", "x"),
        ("export", "--format", "yaml"),
        ("export", "--test-cases", "-o", "out.xml"),
        ("run", "store:nothing"),
    ):
        project.call(*wrong, code=2)


def test_an_empty_store_has_nothing_to_run(project: Project) -> None:
    assert "has no test case" in project.call("run", "store:", code=2).stderr
