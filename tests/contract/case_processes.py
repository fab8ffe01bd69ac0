"""Test cases that several processes edit at once, for every store that lasts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from assay.ports import Store
from assay.testing.test_cases import NOON, SECONDS, new_case

WRITER = Path(__file__).with_name("case_writer.py")
PROCESSES, THREADS, COUNT = 4, 8, 5


def writer(url: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), url, *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lose_nothing(url: str, opened: Callable[[], Store]) -> None:
    """32 writers in four processes add test cases, and all change the same one."""
    with closing(opened()) as store:
        store.test_cases.add(new_case(id="shared"), NOON).result(SECONDS)
    names = [f"process-{i}" for i in range(PROCESSES)]
    running = [writer(url, name, COUNT, THREADS) for name in names]
    acknowledged: list[str] = []
    for process in running:
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, "")
        acknowledged += out.split()
    with closing(opened()) as store:
        page = store.test_cases.page(1000)
        assert page.total == len(page.test_cases) == 1 + PROCESSES * THREADS * COUNT
        assert {case.id for case in page.test_cases} == {"shared", *acknowledged}
        for name in names:
            assert store.test_cases.page(1, tag=name).total == THREADS * COUNT
        versions = store.test_cases.versions("shared", 10**6).test_cases
        assert [case.version for case in versions] == list(range(1, len(acknowledged) + 2))
        assert len({case.expected_output for case in versions}) == len(acknowledged) + 1
        times = [case.modified_at for case in versions]
        assert times == sorted(set(times))


def outlive_kill_9(url: str, opened: Callable[[], Store], point: int) -> None:
    """What was acknowledged is there, whole, and the counts agree with what is there."""
    with closing(opened()) as store:
        store.test_cases.add(new_case(id="shared"), NOON).result(SECONDS)
    process = writer(url, "killed", 100_000, THREADS)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(point)]
    process.kill()
    acknowledged += process.stdout.read().split("\n")[:-1]  # the last line may be cut
    process.communicate(timeout=SECONDS)
    with closing(opened()) as store:
        cases, skip, found = store.test_cases, 0, list[str]()
        while shown := cases.page(1000, skip).test_cases:
            found += [case.id for case in shown]
            skip += len(shown)
        assert set(found) >= {"shared", *acknowledged}
        assert cases.page(1).total == len(found)
        assert cases.page(1, tag="killed").total == len(found) - 1
        assert cases.versions("shared", 1).total >= len(acknowledged) + 1
