"""A process that edits test cases from many threads; tests start several, or kill it.

    python case_writer.py URL NAME COUNT THREADS

Each thread adds COUNT test cases with the tag NAME and changes the one with the id `shared`.
Each line of the output is the id of a test case whose future is done.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from assay.model.test_case import NewTestCase, TestCaseChanges
from assay.registry import stores
from assay.store_parts import TestCaseStore


def main(url: str, name: str, count: int, threads: int) -> None:
    store = stores.get(url.partition(":")[0])(url, Path())

    def work(thread: int) -> None:
        for i in range(count):
            case_id = written(store.test_cases, name, f"{name}/{thread}/{i}")
            print(f"{case_id}\n", end="", flush=True)  # in one piece: threads share the line

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    store.close()


def written(cases: TestCaseStore, tag: str, text: str) -> str:
    new = NewTestCase(text, "4", tags=(tag,))
    case = cases.add(new, datetime.now(UTC)).result()
    change = TestCaseChanges(expected_output=text)
    cases.change("shared", change, datetime.now(UTC)).result()
    return case.id


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
