"""Slow checks: they delay no other case, are stopped when asked, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest

from e2e.projects import Agent, Process, Project, cases_of, ended
from e2e.slow_check_suites import FUNCTIONS, SLOW, delay, exponential, write_suite
from e2e.test_run_signals import await_line
from e2e.test_serve import serving
from timeouts import WAIT_SECONDS

FULL = os.environ.get("ASSAY_TEST_PROFILE") == "full"
#: Cases, the seconds that the agent takes, and how much longer a case may take in a run with slow
#: checks. A busy machine disturbs long answers less.
CASES, DELAY, LONGER = (200, 0.05, 1.2) if FULL else (60, 0.25, 1.2)
#: A machine that is busy with something else disturbs any of them, but not all.
ATTEMPTS = 4


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    target = {"name": "agent", "provider": "http", "url": agent.url}
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 16}})
    home.write("slow.py", FUNCTIONS)
    return home


def durations(project: Project, agent: Agent, slow: str = "") -> list[float]:
    """The durations of the quick cases of a run; all of them pass."""
    delay(agent, DELAY)
    file = write_suite(project, "a.eval.jsonl", CASES, DELAY * 10_000, slow)
    done = project.run("run", file.name, "--json", code=1 if slow == "similarity" else 0)
    cases = [case for key, case in cases_of(done.stdout).items() if not key.startswith("slow")]
    assert {case["details"]["outcome"] for case in cases} == {"passed"}
    return sorted(case["durationMs"] for case in cases)


@pytest.mark.parametrize("slow", SLOW)
def test_a_slow_check_does_not_change_how_long_others_take(
    project: Project, agent: Agent, slow: str
) -> None:
    ratios = []
    for _ in range(ATTEMPTS):
        alone, beside = durations(project, agent), durations(project, agent, slow)
        pairs = [(median(alone), median(beside)), (_most(alone), _most(beside))]
        ratios.append(max(after / before for before, after in pairs))
        if ratios[-1] <= LONGER:
            return
    raise AssertionError(f"{slow} makes other cases take longer: {ratios}")


def _most(values: list[float]) -> float:
    """What nine of ten take at most."""
    return quantiles(values, n=10)[-1]


BOMB = {"type": "json_schema", "value": exponential(40)}


def workers_of(pid: int) -> list[int]:
    """The worker processes that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"assay.process.workers" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def await_worker(pid: int) -> list[int]:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := workers_of(pid)):
        assert time.monotonic() < deadline, "no worker process was started"
    return found


def all_end(pids: list[int]) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_stops_a_schema_without_end(
    home: Project, number: signal.Signals
) -> None:
    home.write("a.eval.yaml", {"cases": [{"id": "a", "input": "1", "evaluators": [BOMB]}]})
    process = home.start("run", "a.eval.yaml", "--target", "echo:", "--json")
    workers = await_worker(process.pid)
    process.send_signal(number)
    await_line(process, "stopping")
    process.send_signal(number)
    done = ended(process, 130)
    assert home.runs() == [(json.loads(done.stdout)["runId"], "interrupted")]
    assert all_end(workers)


def test_a_killed_command_leaves_no_worker_behind(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": [{"id": "a", "input": "1", "evaluators": [BOMB]}]})
    process = home.start("run", "a.eval.yaml", "--target", "echo:")
    workers = await_worker(process.pid)
    process.kill()
    process.communicate()
    assert all_end(workers)


def _terminate(process: Process) -> None:
    """End a server by two signals; those that come too close are one, and it has its grace."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    ended(process, 0)


RUN = {"suites": ["a.eval.yaml"], "options": {"workers": 1}}


@pytest.mark.parametrize(
    "evaluator", [BOMB, {"type": "python:judging:judge"}], ids=["schema", "function"]
)
def test_a_server_ends_and_cancels_whatever_a_check_does(
    home: Project, evaluator: dict[str, Any]
) -> None:
    home.write("assay.yaml", {"targets": [{"name": "e", "provider": "echo"}]})
    home.write("judging.py", "import time\ndef judge(response):\n    time.sleep(1000)\n")
    home.write("a.eval.yaml", {"cases": [{"id": "a", "input": "1", "evaluators": [evaluator]}]})
    with serving(home) as server:
        first, second, killed = (server.post("/api/runs", RUN)["runId"] for _ in range(3))
        for _ in range(2):  # the second time without grace
            server.post(f"/api/runs/{first}/cancel", {})
        assert server.until_ended(first)["status"] == "interrupted"
        server.post(f"/api/runs/{killed}/cancel", {})
        server.process.kill()
        server.process.wait(WAIT_SECONDS)
    with serving(home) as server:
        run = server.until_ended(killed)
        assert (run["status"], run["notes"]) == ("interrupted", ["it was cancelled"])
        assert server.get(f"/api/runs/{second}")["status"] == "running"
        _terminate(server.process)
    assert dict(home.runs())[second] == "interrupted"
