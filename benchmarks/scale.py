"""Ratios of executors on one machine, for these numbers of cases.

    PYTHONPATH=tests python benchmarks/scale.py 10000 100000 1000000

The same recorded suite with the same PostgreSQL by `processes` and by `dask`, both with two
workers; scheduler and workers of dask are processes of their own, reached at an address. With
several numbers of cases, it shows how the cost grows. Then four processes ask under one rate limit.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
from distributed import Client

from assay.blocking import wait_for
from assay.model.events import Event, RunFinished, RunStarted
from assay.service.runs import RunHooks, RunRequest, execute
from assay.stores.postgres_store import PostgresStore
from contract.postgres import PASSWORD, Server, running

WORKERS = 2
RATE, PROCESSES, SECONDS = 10.0, 4, 30.0
#: Names a scheduler and how to reach it.
SCHEDULER = "scheduler.json"
DASK = str(Path(sys.executable).with_name("dask"))


def main() -> None:
    os.environ["PGPASSWORD"] = PASSWORD
    with running() as server, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("assay.yaml").write_text("shared_folder: true\n")
        for cases in [int(text) for text in sys.argv[1:]] or [100_000]:
            write(cases)
            wall, cpu = measured(server, cases, "processes")
            with dask_cluster() as (address, pids):
                dask_wall, dask_cpu = measured(server, cases, f"dask://{address}", pids)
            ratios = f"wall time {dask_wall / wall:.2f}, CPU time {dask_cpu / cpu:.2f}"
            print(f"{cases:>10,} cases, dask / processes: {ratios}")
        most, least = rate(server)
        print(f"rate limit: {least:.2f} to {most:.2f} of it in every 10 seconds")


def write(cases: int) -> None:
    with open("a.eval.jsonl", "w") as suite, open("seen.jsonl", "w") as seen:
        for n in range(cases):
            check = f'{{"type": "contains", "value": "is {n % 97}"}}'
            suite.write(f'{{"id": "c{n}", "input": "number {n}?", "evaluators": [{check}]}}\n')
            seen.write(f'{{"id": "c{n}", "response": "it is {n % 101} of {n}, I think"}}\n')


@contextmanager
def dask_cluster() -> Iterator[tuple[str, list[int]]]:
    """The address of a scheduler, and the ids of its process and those of two workers."""
    options = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", SCHEDULER]
    commands = [[DASK, "scheduler", "--port", "0", *options]]
    commands += [[DASK, "worker", "--nthreads", "1", "--no-nanny", *options]] * WORKERS
    with ExitStack() as stack:
        pids = []
        for command in commands:
            quiet = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(quiet.wait)
            stack.callback(quiet.terminate)
            pids.append(quiet.pid)
            while not Path(SCHEDULER).exists():
                time.sleep(0.1)
        with Client(scheduler_file=SCHEDULER) as client:
            client.wait_for_workers(WORKERS)
        yield json.loads(Path(SCHEDULER).read_text())["address"].removeprefix("tcp://"), pids
    Path(SCHEDULER).unlink(missing_ok=True)  # it does that itself, but later


def measured(
    server: Server, cases: int, executor: str, cluster: Iterable[int] = ()
) -> tuple[float, float]:
    """The wall time of a run and the CPU time of all its processes; prints what it took."""
    marks: list[tuple[float, float]] = []

    def listen(event: Event) -> None:
        if isinstance(event, (RunStarted, RunFinished)):  # without loading, and without the report
            marks.append((time.monotonic(), cpu_of_main()))

    with database(server) as url:
        request = RunRequest("a.eval.jsonl", "replay:seen.jsonl", store=url, hooks=RunHooks(listen))
        options = {"executor": executor} | ({} if cluster else {"workers_per_machine": WORKERS})
        before, main_before, all_before = time.monotonic(), cpu_of_main(), cpu_of_all(cluster)
        wait_for(lambda: execute(request, options)).store.close()
        whole, cpu_all = time.monotonic() - before, cpu_of_all(cluster) - all_before
        cpu_main = cpu_of_main() - main_before
        (began, cpu_before), (ended, cpu_after) = marks
        wall, cpu = ended - began, cpu_after - cpu_before
        size = f"SELECT pg_database_size('{url.rpartition('/')[2]}')"
        stored = int(str(server.sql(size)[0][0])) / cases
        print(
            f"{cases:>10,} cases by {executor.partition(':')[0]:9}: {wall:6.1f} s, {whole:.1f} s "
            f"with loading and report; CPU a case: main process {1e6 * cpu / cases:5.1f} us, and "
            f"{1e6 * (cpu_main - cpu) / cases:.0f} us for loading and report; all processes "
            f"{1e6 * cpu_all / cases:.0f} us; PostgreSQL {stored:,.0f} bytes a case"
        )
        return wall, cpu_all


@contextmanager
def database(server: Server) -> Iterator[str]:
    url = server.new_database()
    try:
        yield url
    finally:
        name = url.rpartition("/")[2]
        server.sql(f"DROP DATABASE {name} WITH (FORCE)")


def cpu_of_main() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of_all(others: Iterable[int]) -> float:
    """Of this process, of those that have ended, and of the others."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for pid in others:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    seconds = ticks / os.sysconf("SC_CLK_TCK")
    return cpu_of_main() + ended.ru_utime + ended.ru_stime + seconds


def rate(server: Server) -> tuple[float, float]:
    """The most and the least of the rate that was used in any 10 seconds."""
    with database(server) as url:
        PostgresStore(url).close()
        with ProcessPoolExecutor(PROCESSES) as pool:
            times = sorted(t for found in pool.map(asks, [url] * PROCESSES) for t in found)
    ends = [t for t in times if t <= times[-1] - 10]
    counts = [sum(1 for other in times if t <= other < t + 10) for t in ends]
    return max(counts) / (10 * RATE), min(counts) / (10 * RATE)


def asks(url: str) -> list[float]:
    """When a process that always has work may ask, as one of its lanes would."""
    times: list[float] = []
    with closing(PostgresStore(url)) as store:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(store.permits.take("target", 1, RATE))
            times.append(time.time())
    return times


if __name__ == "__main__":
    try:
        main()
    except psycopg.Error as error:
        sys.exit(str(error))
