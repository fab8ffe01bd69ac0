"""Workers, coordinators and databases of a cluster may die: nothing is lost or counted twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import assay
from assay.blocking import wait_for
from assay.engine.live_pieces import LEAST_TRIALS
from assay.service.runs import RunRequest, execute
from assay.stores.postgres_store import PostgresStore
from contract.postgres import Server

CASES, AT_ONCE = 150, 4
#: Answers, and at the given number of its questions kills a process: itself, or that of the file.
AGENT = """
import os, signal, time
from pathlib import Path

def answer(message):
    number = message.split()[1]
    Path("asked", f"{number}-{time.monotonic_ns()}").touch()
    if len(os.listdir("asked")) >= int(Path("deadly").read_text()):
        try:
            victim = Path("victim").read_text()
            Path("victim").rename("killed")
            os.kill(int(victim or os.getpid()), signal.SIGKILL)
        except FileNotFoundError:
            pass
    time.sleep(0.01)
    return f"it is {number if int(number) % 9 else 0}"
"""


@pytest.fixture
def url(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = postgres.new_database()
    monkeypatch.setenv("ASSAY_STORE", url)
    yield url
    postgres.give_back(url)


@pytest.fixture
def live(tmp_path: Path, url: str, dask_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    defaults = {"executor": f"dask://{dask_cluster}", "workers": AT_ONCE}
    write("assay.yaml", json.dumps({"shared_folder": True, "defaults": defaults}))
    write("agent.py", AGENT)
    check = {"type": "contains", "value": ""}
    cases = [
        {"id": f"c{n}", "input": f"number {n}", "evaluators": [check | {"value": f"is {n}"}]}
        for n in range(CASES)
    ]
    write("a.eval.yaml", json.dumps({"cases": cases}))
    Path("asked").mkdir()


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


def arm(questions: int, victim: str = "") -> None:
    write("deadly", str(questions))
    write("victim", victim)


def asked() -> Counter[str]:
    return Counter(file.name.partition("-")[0] for file in Path("asked").iterdir())


def outcomes(run: assay.Run) -> dict[str, str]:
    trials = list(run.store.trials(run.id))
    assert len(trials) == CASES
    return {trial.case_id: trial.outcome for trial in trials}


EXPECTED = {f"c{n}": "passed" if n % 9 or not n else "failed" for n in range(CASES)}


def lose_a_worker(questions: int) -> None:
    arm(questions)
    run = assay.run("a.eval.yaml", target="python:agent:answer")
    assert Path("killed").exists()
    assert outcomes(run) == EXPECTED
    again = sum(times - 1 for times in asked().values())
    assert again < LEAST_TRIALS, "only what was in flight or not saved yet, not the whole piece"


def lose_the_coordinator(url: str, questions: int) -> None:
    arm(questions)
    Path("victim").unlink()  # until its number is known
    command = [sys.executable, "-m", "assay", "run", "a.eval.yaml", "--target"]
    process = subprocess.Popen(
        [*command, "python:agent:answer"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    arm(questions, str(process.pid))
    assert process.wait() == -signal.SIGKILL
    with closing(PostgresStore(url)) as store:
        run_id = store.runs(1)[0].id
        kept = {trial.case_id[1:] for trial in store.trials(run_id)}
    before = asked()
    run = wait_for(lambda: execute(RunRequest((), resume=run_id), {}))
    assert run.id == run_id
    assert outcomes(run) == EXPECTED
    assert not [number for number in kept if asked()[number] > before[number]]


@pytest.mark.usefixtures("live")
def test_a_worker_is_killed() -> None:
    lose_a_worker(60)


@pytest.mark.usefixtures("live")
def test_the_coordinator_is_killed(url: str) -> None:
    lose_the_coordinator(url, 60)


@pytest.mark.full
@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("seed", range(10))
def test_workers_are_killed_anywhere(seed: int) -> None:
    lose_a_worker(Random(seed).randint(1, CASES))


@pytest.mark.full
@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("seed", range(10))
def test_coordinators_are_killed_anywhere(url: str, seed: int) -> None:
    lose_the_coordinator(url, Random(seed).randint(1, CASES))
