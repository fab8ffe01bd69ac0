"""The executors of the house hold what the port promises."""

from __future__ import annotations

from assay.executors.local import Local
from assay.executors.processes import Processes
from assay.ports import Executor
from assay.testing.executors import ExecutorConformance, ProcessConformance


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
