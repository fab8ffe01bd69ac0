"""The executor for Ray keeps the promises of the port, on clusters that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import aclosing
from multiprocessing import get_context
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
    # Ray reads once in a process whether a cluster wants a token.
    apart = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with ray_running() as address, apart:
        done = apart.submit(pieces_done, address, str(tmp_path)).result()
    assert done == list(range(20))


def pieces_done(address: str, folder: str) -> list[int]:
    """The numbers of some pieces that the cluster has done."""
    order = WorkOrder(f"{make_worker.__module__}:make_worker", os.fsencode(folder))

    async def run() -> list[bytes]:
        pieces = (Piece(number).encoded() for number in range(20))
        async with aclosing(Ray(address).run(order, pieces)) as results:
            return [result async for result in results]

    return sorted(int(result) for result in bounded(run()))


def test_a_cluster_decides_itself_how_many_workers_it_has() -> None:
    with pytest.raises(UsageError, match="remove --workers-per-machine"):
        Ray.at("host:10001", 2)


def test_the_executor_is_listed_without_importing_ray() -> None:
    code = "import sys, assay.executors.ray; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
