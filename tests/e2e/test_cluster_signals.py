"""Ctrl-C on a cluster, or a cancellation at another machine, stops all workers."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen
from time import sleep

import pytest
from starlette.testclient import TestClient

from assay.blocking import wait_for
from assay.engine.live_pieces import LEAST_TRIALS
from assay.server.app import create_app
from assay.service.runs import RunRequest, execute
from assay.settings import Settings
from assay.stores.postgres_store import PostgresStore
from contract.postgres import Server
from e2e.projects import ended
from e2e.test_run_signals import await_line
from server.conftest import ADDRESS

CASES, AT_ONCE = 3 * LEAST_TRIALS, 4
#: Answers odd numbers some seconds after it may, so that workers can have looked at the run, which
#: they do every second; even ones only if it may answer all.
AGENT = """
import asyncio
from pathlib import Path

async def answer(message):
    number = int(message.split()[1])
    Path("asked", str(number)).touch()
    try:
        while not (Path("open").exists() and number % 2 or Path("all").exists()):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0 if Path("all").exists() else 3)
    except asyncio.CancelledError:
        Path("cancelled", str(number)).touch()
        raise
    Path("answered", str(number)).touch()
    return "fine"
"""
EXPECT = {"responseContains": ["fine"]}


@pytest.fixture
def url(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = postgres.new_database()
    monkeypatch.setenv("ASSAY_STORE", url)
    yield url
    postgres.give_back(url)


@pytest.fixture
def run(
    url: str, dask_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Popen[str]]:
    """A run that asks the first trials."""
    monkeypatch.chdir(tmp_path)
    defaults = {"executor": f"dask://{dask_cluster}", "workers": AT_ONCE}
    Path("assay.yaml").write_text(json.dumps({"shared_folder": True, "defaults": defaults}))
    Path("agent.py").write_text(AGENT)
    cases = [{"id": f"c{n}", "input": f"number {n}", "expect": EXPECT} for n in range(CASES)]
    Path("a.eval.yaml").write_text(json.dumps({"cases": cases}))
    for name in ("asked", "cancelled", "answered"):
        Path(name).mkdir()
    command = [sys.executable, "-m", "assay", "run", "a.eval.yaml", "--target"]
    with Popen([*command, "python:agent:answer"], stdout=PIPE, stderr=PIPE, text=True) as process:
        while len(numbers("asked")) < AT_ONCE:
            assert process.poll() is None, process.communicate()
            sleep(0.01)
        yield process
        process.kill()


def numbers(folder: str) -> set[str]:
    return {file.name for file in Path(folder).iterdir()}


def check_interrupted(url: str) -> None:
    """What was answered is saved, what was not is cancelled, and a resumed run asks the rest."""
    before = numbers("asked")
    assert before == numbers("answered") | numbers("cancelled")
    with closing(PostgresStore(url)) as store:
        (record,) = store.runs(2)
        assert record.status == "interrupted"
        assert {t.case_id[1:] for t in store.trials(record.id)} == numbers("answered")
    kept = numbers("answered")
    for file in Path("asked").iterdir():
        file.unlink()
    Path("all").touch()
    found = wait_for(lambda: execute(RunRequest((), resume=record.id), {}))
    assert found.summary.passed == CASES
    assert numbers("asked").isdisjoint(kept)
    assert len(numbers("asked")) == CASES - len(kept)


def test_ctrl_c_twice_stops_workers_at_once(run: Popen[str], url: str) -> None:
    run.send_signal(signal.SIGINT)
    await_line(run, "stopping")
    run.send_signal(signal.SIGINT)
    ended(run, 130)
    assert len(numbers("asked")) == AT_ONCE
    assert not numbers("answered")
    check_interrupted(url)


def test_ctrl_c_lets_no_further_trial_begin(run: Popen[str], url: str) -> None:
    """Trials in flight have the grace time; what has not ended then is cancelled."""
    with closing(PostgresStore(url)) as store:
        (record,) = store.runs(2)
        run.send_signal(signal.SIGINT)
        while not store.run(record.id).is_stopping:
            sleep(0.01)
    asked = numbers("asked")
    Path("open").touch()
    ended(run, 130)
    assert numbers("asked") == asked
    assert numbers("answered") == {number for number in asked if int(number) % 2}
    check_interrupted(url)


@pytest.mark.parametrize("door", ["api", "page"])
def test_a_run_is_cancelled_at_another_machine(run: Popen[str], url: str, door: str) -> None:
    with (
        closing(PostgresStore(url)) as store,
        TestClient(create_app(Settings.find(Path()), store), ADDRESS) as client,
    ):
        (record,) = store.runs(2)
        assert client.get(f"/api/runs/{record.id}").json()["data"]["status"] == "running"
        page = f"/runs/{record.id}"
        assert "Cancel the run" in client.get(page).text
        for _ in range(2):
            if door == "api":
                assert client.post(f"/api/runs/{record.id}/cancel", json={}).status_code == 202
            else:
                answer = client.post(f"{page}/cancel", data={}, headers={"origin": ADDRESS})
                answer.raise_for_status()
        ended(run, 130)
        data = client.get(f"/api/runs/{record.id}").json()["data"]
        assert (data["status"], data["notes"]) == ("interrupted", ["it was cancelled"])
        assert "it was cancelled" in client.get(page).text
    assert len(numbers("asked")) == AT_ONCE
    check_interrupted(url)
