"""The built-in executors keep the promises of the port."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from assay import work_orders
from assay.executors import processes
from assay.executors.local import Local
from assay.executors.processes import Processes
from assay.ports import Executor, WorkOrder
from assay.testing.executors import ExecutorConformance, ProcessConformance, bounded, make_worker


class TestLocal(ExecutorConformance):
    def make_executor(self) -> Executor:
        return Local()


class TestForkedProcesses(ProcessConformance):
    def make_executor(self) -> Executor:
        return Processes(2, "fork")


class TestSpawnedProcesses(ProcessConformance):
    """Nothing is inherited: all that a worker needs is in its order."""

    def make_executor(self) -> Executor:
        return Processes(2, "spawn")


def test_a_process_that_still_has_the_handlers_of_its_parent_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starting(*arguments: Any) -> None:
        time.sleep(2)
        (tmp_path / "survived").touch()

    async def run() -> list[bytes]:
        order = WorkOrder(f"{make_worker.__module__}:make_worker", os.fsencode(tmp_path))
        return [result async for result in Processes(1, "fork").run(order, [])]

    monkeypatch.setattr(processes, "_serve", starting)
    previous = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        assert bounded(run()) == []
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert not (tmp_path / "survived").exists()


def test_a_forked_process_does_not_inherit_a_lock_that_another_thread_holds() -> None:
    with work_orders._lock:
        child = os.fork()
        if not child:
            os._exit(0 if work_orders._lock.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
