"""Lists of the cases of a run, one case, and a comparison: each must be quick at 100,000 cases.

python benchmarks/cases.py [--cases 100000] [--store URL]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from assay.comparison.gate import GateRules
from assay.model.case_filter import CaseFilter, parse_filter
from assay.model.case_rows import Sort, parse_sort
from assay.model.result import Outcome
from assay.model.run import RunRecord, SuiteHeader, TrialRecord
from assay.ports import Store
from assay.registry import stores
from assay.service.cases import case_at, case_page, index_cases
from assay.service.comparisons import compare_with_tables

RUNS = ("0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002")
PROSE = "The capital is a town on a river with a harbour and a well-known museum. "
#: What is listed, in which order.
LISTS = (
    ("", "position"),
    ("outcome:failed", "-latency"),
    ("tag:t1 -tag:slow score<0.6", "score"),
    ("id:case-9*", "-id"),
    ("changed:regressed", "position"),
    # Each time another text, as the positions of one that was found are remembered.
    ('"a MUSEUM of 7{}"', "position"),
    ('-"HARBOUR {}"', "cost"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--store", help="an empty store; a SQLite file by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.store or "sqlite:cases.db"
        store = stores.get(url.partition(":")[0])(url, Path(folder))
        fill(store, options.cases)
        measure(store, options.cases)
        store.close()


def fill(store: Store, cases: int) -> None:
    for number, run_id in enumerate(RUNS):
        suites = [SuiteHeader("capitals", "evals/capitals.eval.jsonl", cases=cases, selected=cases)]
        store.begin(RunRecord(run_id, "2026-01-31T12:00:00Z", "running", "echo", suites=suites))
        for start in range(0, cases, 500):
            batch = [trial(run_id, i, number) for i in range(start, min(start + 500, cases))]
            store.save(*batch).result()
        summary = {"verdict": {"baseline": RUNS[0]}} if number else {}
        store.finish(run_id, "finished", "2026-01-31T13:00:00Z", summary)


def trial(run_id: str, i: int, number: int) -> TrialRecord:
    """A trial with about 1 KB of answer, question and reasons."""
    failed = i % 10 == 0 or (number == 1 and i % 97 == 0)
    outcome: Outcome = "failed" if failed else "passed"
    score = 0.5 if failed else 1.0
    evaluator = {"name": "contains", "type": "contains", "weight": 1.0, "score": score}
    evaluator |= {"verdict": "pass", "hits": [], "misses": []}
    details: dict[str, Any] = {"outcome": outcome, "score": score, "verdict": "pass", "trials": []}
    details |= {"evaluators": [evaluator], "failures": [f"reason {i % 50}"] if failed else []}
    result = {"id": f"case-{i}", "description": "", "passed": not failed, "durationMs": 1.0}
    content = {
        "input": [{"role": "user", "content": f"Which museum of {i}? {PROSE * 3}"}],
        "tags": [f"t{i % 20}", *(["slow"] if i % 7 == 0 else [])],
        "evaluators": [evaluator],
    }
    return TrialRecord(
        run_id=run_id,
        position=i,
        repeat=0,
        suite="evals/capitals.eval.jsonl",
        case_id=f"case-{i}",
        outcome=outcome,
        score=score,
        duration_ms=float(i % 3000),
        cost_usd=i % 100 / 1000,
        judge_cost_usd=None,
        comparability=f"{i:016x}",
        critical=False,
        cluster=None,
        min_pass_rate=1.0,
        skipped_assertions=0,
        confirms=False,
        final=True,
        result=msgspec.json.encode(result | {"details": details}),
        observation=msgspec.json.encode(
            {"id": f"case-{i}", "response": f"A museum of {i}. {PROSE * 5}"}
        ),
        content=msgspec.json.encode(content),
    )


def measure(store: Store, cases: int) -> None:
    record = store.run(RUNS[1])
    spent = timed(partial(index_cases, store, record), times=1)
    print(f"{spent:8.2f} s    rows of {cases:,} cases, computed once after the run")
    for text, order in LISTS:
        lists = (parse_filter(text.format(number)) for number in count())
        listing = partial(_list, store, record, lists, parse_sort(order))
        spent = timed(listing)
        at_most(f"list: {text or 'all'}, sorted by {order}", spent * 1e3, 300)
    at_most("open one case", timed(partial(case_at, store, record, cases // 2)) * 1e3, 100)
    rules = GateRules(today=date(2026, 1, 31))
    compare = partial(compare_with_tables, *RUNS, store, rules)
    print(f"{timed(compare, times=1):8.2f} s    comparison, computed once")
    at_most("comparison, kept", timed(compare) * 1e3, 100)


def _list(store: Store, record: RunRecord, filters: Iterator[CaseFilter], sort: Sort) -> None:
    case_page(store, record, next(filters), sort=sort)


def timed(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of some times, in seconds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent)


def at_most(what: str, found: float, limit: float) -> None:
    verdict = "holds" if found <= limit else "MISSED"
    print(f"{found:8.1f} ms   {what}   [at most {limit} ms: {verdict}]", flush=True)


if __name__ == "__main__":
    main()
