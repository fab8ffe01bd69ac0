"""A rate limit holds for all workers of a run together, as the agent sees it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay
from contract.postgres import Server
from e2e.projects import Agent

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PER_MINUTE, WORKERS, SECONDS, WINDOW = 600, 4, 30, 10.0


@pytest.fixture
def url(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = postgres.new_database()
    monkeypatch.setenv("ASSAY_STORE", url)
    yield url
    postgres.give_back(url)


def test_four_workers_use_one_rate(
    agent: Agent, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    limit = {"requests_per_minute": PER_MINUTE}
    target = {"name": "a", "provider": "http", "url": agent.url, **limit}
    Path("assay.yaml").write_text(json.dumps({"targets": [target]}))
    cases = [
        {"id": f"c{n}", "input": f"{n}", "expect": {"responseContains": [f"{n}"]}}
        for n in range(PER_MINUTE * SECONDS // 60)
    ]
    Path("a.eval.yaml").write_text(json.dumps({"cases": cases}))
    times: list[float] = []
    agent.arrived = lambda number: times.append(time.monotonic())
    run = assay.run(
        "a.eval.yaml", target="a", executor="dask", workers_per_machine=WORKERS, workers=20
    )
    assert run.summary.passed == len(cases) == len(times)
    assert len({body["message"] for body in agent.seen}) == len(cases)
    allowed = PER_MINUTE / 60 * WINDOW
    windows = [begin for begin in times if begin <= times[-1] - WINDOW]
    used = [sum(begin <= t < begin + WINDOW for t in times) / allowed for begin in windows]
    print(
        f"in every {WINDOW:g} s of {times[-1] - times[0]:.1f} s: {min(used):.2f} to {max(used):.2f}"
    )
    assert windows
    assert max(used) <= 1.1
    assert min(used) >= 0.8
