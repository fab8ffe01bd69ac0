"""Workers, coordinators and databases of a cluster may die: nothing is lost or counted twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from distributed import Client

import assay
from assay.blocking import wait_for
from assay.engine.live_pieces import LEAST_TRIALS
from assay.service.runs import RunRequest, execute
from assay.stores.postgres_store import PostgresStore
from contract.postgres import Server

pytestmark = pytest.mark.cluster

CASES, AT_ONCE = 150, 4
#: Instead of a process that the agent kills: the test restarts the database.
NOBODY = "nobody"
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
            if victim != "nobody":
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
def on_dask(tmp_path: Path, url: str, dask_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(f"tcp://{dask_cluster}", set_as_default=False) as client:
        client.wait_for_workers(2)  # the test before may have killed one
    prepare(executor=f"dask://{dask_cluster}")


@pytest.fixture
def on_ray(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(executor="ray", workers_per_machine=2)


def prepare(**defaults: Any) -> None:
    written = {"shared_folder": True, "defaults": {"workers": AT_ONCE} | defaults}
    write("assay.yaml", json.dumps(written))
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


def start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "assay", "run", "a.eval.yaml", "--target"]
    return subprocess.Popen(
        [*command, "python:agent:answer"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def lose_the_coordinator(url: str, questions: int) -> None:
    arm(questions)
    Path("victim").unlink()  # until its number is known
    process = start()
    arm(questions, str(process.pid))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with closing(PostgresStore(url)) as store:
        run_id = store.runs(1)[0].id
        kept = {trial.case_id[1:] for trial in store.trials(run_id)}
    before = asked()
    run = wait_for(lambda: execute(RunRequest((), resume=run_id), {}))
    assert run.id == run_id
    assert outcomes(run) == EXPECTED
    assert not [number for number in kept if asked()[number] > before[number]]


def lose_the_database(postgres: Server, url: str, questions: int) -> None:
    """Workers wait for it, and the coordinator takes its lease again."""
    arm(questions, NOBODY)
    process = start()
    while not Path("killed").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    postgres.stop()
    postgres.start()
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    with closing(PostgresStore(url)) as store:
        (record,) = store.runs(2)
        assert record.status == "finished"
        found = {trial.case_id: trial.outcome for trial in store.trials(record.id)}
    assert found == EXPECTED
    again = sum(times - 1 for times in asked().values())
    assert not again, "answers that were not committed yet are kept until they are"


@pytest.mark.usefixtures("on_dask")
def test_a_worker_is_killed() -> None:
    lose_a_worker(60)


@pytest.mark.usefixtures("on_dask")
def test_the_coordinator_is_killed(url: str) -> None:
    lose_the_coordinator(url, 60)


@pytest.mark.usefixtures("on_dask")
def test_the_database_is_restarted(postgres: Server, url: str) -> None:
    lose_the_database(postgres, url, 40)


@pytest.mark.full
@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("seed", range(10))
def test_workers_are_killed_anywhere(seed: int) -> None:
    lose_a_worker(Random(seed).randint(1, CASES))


@pytest.mark.full
@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("seed", range(10))
def test_coordinators_are_killed_anywhere(url: str, seed: int) -> None:
    lose_the_coordinator(url, Random(seed).randint(1, CASES))


@pytest.mark.full
@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("seed", range(3))
def test_databases_are_restarted_anywhere(postgres: Server, url: str, seed: int) -> None:
    lose_the_database(postgres, url, Random(seed).randint(1, CASES - AT_ONCE))


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # Ray leaves sockets and files open
@pytest.mark.usefixtures("on_ray")
class TestRay:
    def test_a_worker_is_killed(self) -> None:
        lose_a_worker(60)

    def test_the_coordinator_is_killed(self, url: str) -> None:
        lose_the_coordinator(url, 60)

    def test_the_database_is_restarted(self, postgres: Server, url: str) -> None:
        lose_the_database(postgres, url, 40)
