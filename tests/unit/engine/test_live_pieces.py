"""Live runs on a cluster: the same results, with limits that hold for all workers together."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from socket import gethostname
from types import ModuleType
from typing import Any

import pytest

import assay
from assay.blocking import wait_for
from assay.errors import UsageError
from assay.model.events import Event, PieceFinished
from assay.reporters.progress import Progress
from assay.service.runs import RunHooks, RunRequest, execute
from contract.postgres import Server
from unit.conftest import Project

pytestmark = pytest.mark.cluster

CASES = 150
AGENT = """
import os, time
from pathlib import Path

def answer(message):
    number = int(message.split()[1])
    Path("asked", f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return {"response": f"it is {0 if number % 9 == 5 else number}", "costUsd": 0.01}

def other(message):
    return answer(message)
"""
TARGETS = ["python:agent:answer", "python:agent:other"]


@pytest.fixture
def url(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = postgres.new_database()
    monkeypatch.setenv("ASSAY_STORE", url)
    yield url
    postgres.give_back(url)


@pytest.fixture
def live(project: Project, url: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Other tests of this process have modules of this name too: it is new here, and gone after.
    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    del sys.modules["agent"]
    project.write("assay.yaml", '{"shared_folder": true}')
    project.write("agent.py", AGENT)
    Path("asked").mkdir()
    check = {"type": "contains", "value": ""}
    cases = [
        {"id": f"c{n}", "input": f"number {n}", "evaluators": [check | {"value": f"is {n}"}]}
        for n in range(CASES)
    ]
    cases[3]["skip"] = "later"
    project.write("a.eval.yaml", json.dumps({"cases": cases}))
    return project


@pytest.fixture
def on_dask(live: Project, dask_cluster: str) -> Callable[..., assay.Run]:
    def run(**options: Any) -> assay.Run:
        executor = f"dask://{dask_cluster}"
        return assay.run("a.eval.yaml", target="python:agent:answer", executor=executor, **options)

    return run


def asked() -> list[str]:
    return sorted(file.name.partition("-")[0] for file in Path("asked").iterdir())


def cases_of(run: assay.Run) -> list[tuple[Any, ...]]:
    return [
        (t.position, t.case_id, t.outcome, t.score, t.cost_usd, t.comparability, t.content)
        for t in run.store.trials(run.id)
    ]


def check_same_results(on_cluster: Callable[..., assay.Run]) -> None:
    whole = assay.run("a.eval.yaml", target="python:agent:answer", executor="local")
    expected = asked()
    for file in Path("asked").iterdir():
        file.unlink()
    found = on_cluster(workers=8)
    assert cases_of(found) == cases_of(whole)
    assert asked() == expected
    processes = {file.name.split("-")[1] for file in Path("asked").iterdir()}
    assert len(processes) == 2
    assert found.exit_code == whole.exit_code


def test_a_live_run_on_a_cluster_gives_the_same_results(on_dask: Callable[..., assay.Run]) -> None:
    check_same_results(on_dask)


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # Ray leaves sockets and files open
def test_a_live_run_on_ray_gives_the_same_results(live: Project) -> None:
    def run(**options: Any) -> assay.Run:
        options |= {"executor": "ray", "workers_per_machine": 2}
        return assay.run("a.eval.yaml", target="python:agent:answer", **options)

    check_same_results(run)
    for file in Path("asked").iterdir():
        file.unlink()
    assay.run(
        "a.eval.yaml",
        target=TARGETS,
        executor="ray",
        workers_per_machine=2,
    )
    assert len(asked()) == 2 * (CASES - 1)


def test_machines_and_pieces_are_reported(live: Project, dask_cluster: str) -> None:
    found: list[Event] = []
    request = RunRequest("a.eval.yaml", "python:agent:answer", hooks=RunHooks(found.append))
    out = StringIO()
    progress = Progress(out)
    wait_for(lambda: execute(request, {"executor": f"dask://{dask_cluster}"})).store.close()
    for event in found:
        progress(event)
    pieces = [event for event in found if isinstance(event, PieceFinished)]
    assert {piece.machine for piece in pieces} == {gethostname()}
    assert f"{len(pieces)} pieces on 1 machine" in out.getvalue()
    assert "150 of 150 trials" in out.getvalue()


def test_several_targets_are_asked_on_a_cluster(live: Project, dask_cluster: str) -> None:
    """Each is a run of its own, and they share the budget."""
    options: dict[str, Any] = {"executor": f"dask://{dask_cluster}", "workers": 4}
    whole = assay.run("a.eval.yaml", target=TARGETS, **options)
    assert len(asked()) == 2 * (CASES - 1)
    for run in whole.runs:
        assert run.summary.failed
        assert run.summary.passed + run.summary.failed == CASES - 1
    for file in Path("asked").iterdir():
        file.unlink()
    assay.run("a.eval.yaml", target=TARGETS, budget_usd=1.0, **options)
    assert 100 <= len(asked()) < 100 + 2 * 4


def test_limits_end_a_run_on_a_cluster(on_dask: Callable[..., assay.Run]) -> None:
    found = on_dask(max_failures=1, workers=2)
    assert found.exit_code
    assert found.record.status == "interrupted"
    left = [trial for trial in found.store.trials(found.id) if not trial.final]
    assert left
    assert len(asked()) + len(left) == CASES - 1


def test_workers_share_a_budget(on_dask: Callable[..., assay.Run]) -> None:
    """As in one process, only what is in flight when it is spent costs more."""
    found = on_dask(budget_usd=0.5, workers=4)
    assert found.record.status == "interrupted"
    assert "the budget of $0.5 is spent" in json.dumps(found.record.summary)
    assert 50 <= len(asked()) < 50 + 4
    left = [trial for trial in found.store.trials(found.id) if not trial.final]
    assert len(asked()) + len(left) == CASES - 1
    before = asked()
    again = wait_for(lambda: execute(RunRequest((), resume=found.id), {}))
    assert again.record.status == "interrupted"
    assert asked() == before, "a resumed run has no more to spend"


def test_lost_cases_are_asked_again_on_a_cluster(on_dask: Callable[..., assay.Run]) -> None:
    base = on_dask()
    # Of another length: Python may load what it compiled from a file of the same second and size.
    agent = Path("agent.py").read_text().replace("% 9 == 5", "% 9 in (6,)")
    Path("agent.py").write_text(agent)
    found = on_dask(baseline=base.id, confirm=2)
    again = [t for t in found.store.trials(found.id) if t.confirms]
    lost = {f"c{n}" for n in range(CASES) if n % 9 == 6}
    assert {trial.case_id for trial in again} == lost
    assert len(again) == 2 * len(lost)


def test_a_target_of_this_process_cannot_be_asked_elsewhere(live: Project) -> None:
    with pytest.raises(UsageError, match=r"the target .* is an object of this process"):
        assay.run("a.eval.yaml", target=lambda message: "x", executor="dask")
