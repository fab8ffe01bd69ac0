"""The executor for dask keeps the promises of the port, on a cluster that runs already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from assay.errors import ExecutorError, UsageError
from assay.executors import dask
from assay.executors.dask import Dask
from assay.ports import Executor, WorkOrder
from assay.testing.executors import (
    ExecutorConformance,
    Piece,
    ProcessConformance,
    bounded,
    make_worker,
)
from contract.postgres import PORTS

pytestmark = pytest.mark.cluster


class TestCluster(ExecutorConformance):
    @pytest.fixture(autouse=True)
    def _cluster(self, dask_cluster: str) -> None:
        self.address = dask_cluster

    def make_executor(self) -> Executor:
        return Dask(self.address)

    def test_a_piece_whose_process_is_killed_is_done_again(
        self, order: WorkOrder, tmp_path: Path
    ) -> None:
        pieces = [Piece(n, dies="killed" if n == 7 else "") for n in range(20)]
        found = self.results(order, pieces)
        assert sorted({int(result) for result in found}) == list(range(20))
        assert (tmp_path / "killed").exists()

    def test_a_piece_that_kills_two_processes_raises(self, order: WorkOrder) -> None:
        with pytest.raises(ExecutorError, match="twice on the same work"):
            self.results(order, [Piece(0, dies="always")])

    def test_workers_are_closed_with_the_results(self, order: WorkOrder, tmp_path: Path) -> None:
        self.results(order, map(Piece, range(6)))
        made, closed = (
            {file.name.rpartition("-")[2] for file in tmp_path.glob(f"{name}-*")}
            for name in ("made", "closed")
        )
        assert made == closed

    def test_a_worker_with_another_version_of_assay_refuses(self, order: WorkOrder) -> None:
        other = msgspec.structs.replace(order, version="0.0.7")
        with pytest.raises(ExecutorError, match=r"started by 0\.0\.7: install the same version"):
            self.results(other, [Piece(0)])


@pytest.mark.full
class TestLocalCluster(ProcessConformance):
    """Without an address, a cluster is started and ended."""

    def make_executor(self) -> Executor:
        return Dask(workers=2)


def test_a_scheduler_that_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.2)
    order = WorkOrder(f"{make_worker.__module__}:make_worker", os.fsencode(tmp_path))

    async def run() -> None:
        async for _ in Dask(f"127.0.0.1:{PORTS.start - 1}").run(order, []):
            pass

    with pytest.raises(ExecutorError, match=r"127\.0\.0\.1:\d+ cannot be reached"):
        bounded(run())


def test_a_cluster_decides_itself_how_many_workers_it_has() -> None:
    with pytest.raises(UsageError, match="remove --workers-per-machine"):
        Dask.at("host:8786", 2)


def test_the_executor_is_listed_without_importing_dask() -> None:
    code = "import sys, assay.executors.dask; print({'dask', 'distributed'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
