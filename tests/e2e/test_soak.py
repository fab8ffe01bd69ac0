"""A server under mixed load for a while: slow schemas, cancelled runs, and requests in between."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
import pytest

from assay.engine.runner import GRACE_SECONDS
from e2e.projects import Agent, Project
from e2e.slow_check_suites import FUNCTIONS, SLOW, delay, exponential, write_suite
from e2e.test_serve import Served, serving
from timeouts import WAIT_SECONDS

FULL = os.environ.get("ASSAY_TEST_PROFILE") == "full"
#: How long the load lasts, in seconds.
DURATION = 300.0 if FULL else 3.0
#: How many clients start runs, one after the other.
CLIENTS = 4
#: How often a run is cancelled: the second time leaves its trials no grace.
CANCELS = 1 if FULL else 2
#: The seconds between a cancellation and the end of its run, after the grace of its trials.
ENDING = 20.0
#: How often an idle server is asked for its health.
PROBES = 1000 if FULL else 20
#: The longest that health may take, in milliseconds, for 99 of 100 requests.
HEALTH_MS = 100.0


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    target = {"name": "agent", "provider": "http", "url": agent.url}
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 8}})
    home.write("slow.py", FUNCTIONS)
    delay(agent, 0.02)
    write_suite(home, "quick.eval.jsonl", 100, 60_000)
    for name in SLOW:
        write_suite(home, f"{name.replace(' ', '-')}.eval.jsonl", 40, 60_000, name)
    bomb = {"type": "json_schema", "value": exponential(40)}
    cases = [{"id": f"b{n}", "input": "1", "evaluators": [bomb]} for n in range(4)]
    home.write("bomb.eval.yaml", {"cases": cases})
    return home


class Load:
    """Clients that start runs of every kind, and cancel some, until the time is over."""

    def __init__(self, server: Served, suites: list[str]) -> None:
        self._server, self._suites = server, suites
        self._over = threading.Event()
        self.ended = 0
        #: The seconds from each cancellation to the end of its run.
        self.cancelled: list[float] = []
        self.health_ms: list[float] = []
        self.errors: list[BaseException] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        tasks: list[Callable[[], None]] = [self._watch_health]
        tasks += [self._client(seed) for seed in range(CLIENTS)]
        threads = [threading.Thread(target=self._guarded, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(WAIT_SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        assert self.errors == []

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            self.errors.append(error)

    def _client(self, seed: int) -> Callable[[], None]:
        chosen = random.Random(seed)

        def work() -> None:
            with httpx2.Client(base_url=self._server.url, timeout=WAIT_SECONDS) as client:
                server = Served(self._server.process, self._server.url, client)
                while not self._over.is_set():
                    suite = chosen.choice(self._suites)
                    cancel = suite.startswith("bomb") or chosen.random() < 0.3
                    self._one_run(server, suite, chosen.random() * 2 if cancel else None)

        return work

    def _one_run(self, server: Served, suite: str, cancel_after: float | None) -> None:
        run_id = server.post("/api/runs", {"suites": [suite], "target": "agent"})["runId"]
        if cancel_after is None:
            assert server.until_ended(run_id)["status"] == "finished"
        else:
            self._over.wait(cancel_after)
            self._cancel(server, run_id)
        self.ended += 1

    def _cancel(self, server: Served, run_id: str) -> None:
        began = time.monotonic()
        for _ in range(CANCELS):
            answer = server.client.post(f"/api/runs/{run_id}/cancel", json={})
        if answer.status_code == 202:
            assert server.until_ended(run_id)["status"] in ("interrupted", "finished")
            self.cancelled.append(time.monotonic() - began)

    def _watch_health(self) -> None:
        with httpx2.Client(base_url=self._server.url, timeout=WAIT_SECONDS) as client:
            while not self._over.wait(0.05):
                self.health_ms.append(self.probe(client))

    @staticmethod
    def probe(client: httpx2.Client) -> float:
        """How long health takes, in milliseconds."""
        began = time.monotonic()
        assert client.get("/api/health").status_code == 200
        return (time.monotonic() - began) * 1000


def memory_mb(pid: int) -> float:
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) / 1024


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_a_server_under_mixed_load_stays_well(project: Project) -> None:
    suites = [file.name for file in project.root.glob("*.eval.*")]
    samples: list[tuple[float, int]] = []
    with serving(project) as server:
        load, pid = Load(server, suites), server.process.pid
        idle_health = [load.probe(server.client) for _ in range(PROBES)]
        idle = descriptors(pid)
        with load.at_work():
            end = time.monotonic() + DURATION
            while time.monotonic() < end or not (load.cancelled or load.errors):
                samples.append((memory_mb(pid), descriptors(pid)))
                load._over.wait(DURATION / 60)
        health: dict[str, Any] = server.get("/api/health")
        assert health["runs"] == 0
        left = descriptors(pid)
    print(f"{load.ended} runs ended, {len(load.cancelled)} of them cancelled")
    print(f"cancelled within {max(load.cancelled):.1f} s (median {median(load.cancelled):.1f} s)")
    for name, times in (("idle", idle_health), ("under load", load.health_ms)):
        most = quantiles(times, n=100)[-1]
        print(f"health {name}: median {median(times):.1f} ms, 99th percentile {most:.1f} ms")
    for place, (memory, files) in zip(("first", "last"), (samples[1], samples[-1]), strict=True):
        print(f"{place} sample: {memory:.0f} MB, {files} descriptors")
    print(f"most: {max(m for m, _ in samples):.0f} MB, {max(d for _, d in samples)} descriptors")
    print(f"idle: {idle} descriptors before, {left} after")
    assert load.ended >= CLIENTS
    assert max(load.cancelled) < GRACE_SECONDS + ENDING
    assert median(load.health_ms) < HEALTH_MS
    assert left <= idle + 20, "descriptors of worker processes and of idle connections only"
    if FULL:
        third = len(samples) // 3
        (early, some), (late, more) = (
            (max(m for m, _ in part), max(d for _, d in part))
            for part in (samples[third : 2 * third], samples[2 * third :])
        )
        assert late < early * 1.1 + 10, f"memory grows: {early:.0f} MB, then {late:.0f} MB"
        assert more <= some + 20, f"descriptors grow: {some}, then {more}"
        # A machine that is busy with something else takes that long by itself.
        idle_ms = quantiles(idle_health, n=100)[-1]
        assert quantiles(load.health_ms, n=100)[-1] < HEALTH_MS + idle_ms
