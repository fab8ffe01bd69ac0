"""The executor for Ray keeps the promises of the port, on clusters that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.executors.ray import Ray
from assay.ports import Executor, WorkOrder
from assay.testing.executors import Piece, ProcessConformance, bounded, make_worker
from contract.clusters import ray_running


@pytest.mark.cluster
@pytest.mark.full
@pytest.mark.filterwarnings("default")  # Ray leaves sockets and files open
class TestRay(ProcessConformance):
    def make_executor(self) -> Executor:
        pytest.importorskip("ray")
        return Ray(workers=2)


@pytest.mark.cluster
@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_a_cluster_at_an_address_does_pieces(tmp_path: Path) -> None:
    order = WorkOrder(f"{make_worker.__module__}:make_worker", os.fsencode(tmp_path))

    async def run(address: str) -> list[bytes]:
        pieces = (Piece(number).encoded() for number in range(20))
        async with aclosing(Ray(address).run(order, pieces)) as results:
            return [result async for result in results]

    with ray_running() as address:
        assert sorted(int(result) for result in bounded(run(address))) == list(range(20))


def test_a_cluster_decides_itself_how_many_workers_it_has() -> None:
    with pytest.raises(UsageError, match="remove --workers-per-machine"):
        Ray.at("host:10001", 2)


def test_the_executor_is_listed_without_importing_ray() -> None:
    code = "import sys, assay.executors.ray; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
