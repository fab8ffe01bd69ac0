"""The cost of comparing two runs: time relative to a floor, and memory.

    python benchmarks/compare.py [--cases 100000]

The floor reads the facts of both runs from the store and does nothing with them.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from random import Random

from assay.comparison.tally import compare, fold
from assay.model.run import RunRecord, TrialRecord
from assay.stores.sqlite import SqliteStore

RUNS = ("same order", "other order")
SMALL = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(Path(options.measure[0]), options.measure[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        for count in (SMALL, options.cases):
            file = Path(folder) / f"{count}.db"
            fill(file, count)
            print(f"two runs of {count:,} cases", flush=True)
            for what in RUNS:
                # In its own process, so that the peak is that of the comparison alone.
                command = [sys.executable, __file__, "--measure", str(file), what]
                subprocess.run(command, check=True)


def fill(file: Path, count: int) -> None:
    """Record a base, and candidates with the same cases in the same and in another order."""
    store = SqliteStore(file)
    orders: dict[str, Iterable[int]] = {
        "base": range(count),
        "same order": range(count),
        "other order": Random(1).sample(range(count), count),
    }
    for run, order in orders.items():
        random = Random(run)
        store.begin(RunRecord(run, "2026-01-31T12:00:00Z", "running", "echo"))
        trials = (trial(run, at, case, random) for at, case in enumerate(order))
        # In batches: a child process inherits the peak of its parent.
        while some := list(islice(trials, SMALL)):
            store.save(*some).result()
    store.close()


def trial(run: str, position: int, case: int, random: Random) -> TrialRecord:
    passed = random.random() < 0.98
    return TrialRecord(
        run_id=run,
        position=position,
        repeat=0,
        suite="evals/capitals.eval.yaml",
        case_id=f"capital-of-country-{case}",
        outcome="passed" if passed else "failed",
        score=random.uniform(0.8, 1) if passed else random.uniform(0, 0.8),
        duration_ms=12.5,
        cost_usd=None,
        judge_cost_usd=None,
        comparability=f"{case:032x}",
        critical=False,
        cluster=None,
        min_pass_rate=1.0,
        skipped_assertions=0,
        confirms=False,
        final=True,
        result=b"{}",
        observation=b"{}",
    )


def measure(file: Path, candidate: str) -> None:
    store = SqliteStore(file)
    started = time.process_time()
    for run in ("base", candidate):
        for _ in store.facts(run):
            pass
    floor = time.process_time() - started
    started = time.process_time()
    found = compare(fold(store.facts("base")), fold(store.facts(candidate)))
    ours = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.close()
    what = f"comparing, {candidate}: time / reading the facts"
    print(f"{ours / floor:6.2f} x   {what}   [{ours:.2f} s of CPU, peak {peak:.0f} MB]", flush=True)
    assert found.pairs, "nothing was compared"


if __name__ == "__main__":
    main()
