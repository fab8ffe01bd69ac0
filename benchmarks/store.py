"""The cost of the journal: the rate of durable writes relative to a floor, and of reads.

    python benchmarks/store.py [--trials 100000]

The floor is a bare `executemany` of the same rows into the same table, in one transaction.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

import msgspec

from assay.model.run import RunRecord, TrialRecord
from assay.stores.migrating import migrate, scripts
from assay.stores.sqlite import SqliteStore

RUN = "0198c0de-0000-7000-8000-000000000000"
#: How many saves are in flight, and how many trials each has.
SHAPES = ((40, 50), (1000, 1), (100, 1), (1, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        floor = bare(Path(folder) / "bare.db", options.trials)
        print(f"bare executemany, one transaction: {options.trials / floor:,.0f} trials/s")
        for in_flight, together in SHAPES:
            count = options.trials if in_flight > 1 else options.trials // 50
            file = Path(folder) / f"store-{in_flight}.db"
            ours = durable(file, count, in_flight, together)
            ratio = (count / ours) / (options.trials / floor)
            saves = f"{in_flight:,} saves of {together} in flight"
            what = f"durable trials, {saves}: rate / floor's"
            print(f"{ratio:6.2f} x   {what}   [{count / ours:,.0f} trials/s]", flush=True)
        print(f"size of the store: {(Path(folder) / 'store-1000.db').stat().st_size / 1e6:.0f} MB")
        for name in ("store-1.db", "store-1000.db"):
            # In its own process, so that the peak is that of reading alone.
            subprocess.run([sys.executable, __file__, "--read", f"{folder}/{name}"], check=True)


def trials(count: int) -> Iterator[TrialRecord]:
    """Trials with 1 KB of JSON each."""
    answer = "The capital is a town on a river with a harbour and a well-known museum. " * 6
    for i in range(count):
        result = b'{"id":"case-%d","passed":true,"response":"%s"}' % (i, answer.encode())
        seen = b'{"id":"case-%d","response":"%s"}' % (i, answer.encode())
        suite, key = "evals/capitals.eval.yaml", f"{i:016x}"
        yield TrialRecord(
            RUN,
            *(i, 0, suite, f"case-{i}", "passed", 1.0, 12.5, None, None, key),
            *(False, None, 1.0, 0, False, True, result, seen),
        )


def bare(file: Path, count: int) -> float:
    """Seconds of the floor."""
    with sqlite3.connect(file, isolation_level=None) as connection:
        migrate(connection, file.name, scripts("sqlite"))
        connection.execute("PRAGMA journal_mode = WAL")
        started = time.perf_counter()
        connection.execute("BEGIN")
        places = ", ".join("?" * len(TrialRecord.__struct_fields__))
        insert = f"INSERT INTO trial VALUES ({places})"
        connection.executemany(insert, map(msgspec.structs.astuple, trials(count)))
        connection.execute("COMMIT")
        elapsed = time.perf_counter() - started
    connection.close()
    return elapsed


def durable(file: Path, count: int, in_flight: int, together: int) -> float:
    """Seconds until the last trial is on disk, with at most `in_flight` saves at a time."""
    store = SqliteStore(file)
    store.begin(RunRecord(RUN, "2026-01-31T12:00:00Z", "running", "echo"))
    started = time.perf_counter()
    under_way: deque[Future[None]] = deque()
    made = trials(count)
    while some := list(islice(made, together)):
        under_way.append(store.save(*some))
        if len(under_way) >= in_flight:
            under_way.popleft().result()
    for future in under_way:
        future.result()
    elapsed = time.perf_counter() - started
    store.close()
    return elapsed


def read(file: Path) -> None:
    """Read every trial of the store; print the rate and the peak memory."""
    store = SqliteStore(file)
    started = time.perf_counter()
    count = sum(1 for _ in store.trials(RUN))
    elapsed = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"read back {count:,} trials: {count / elapsed:,.0f} trials/s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
