"""The executor for Ray keeps the promises of the port, on clusters that it starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assay.errors import UsageError
from assay.executors.ray import Ray
from assay.ports import Executor
from assay.testing.executors import ProcessConformance


@pytest.mark.cluster
@pytest.mark.full
@pytest.mark.filterwarnings("default")  # Ray leaves sockets and files open
class TestRay(ProcessConformance):
    def make_executor(self) -> Executor:
        pytest.importorskip("ray")
        return Ray(workers=2)


def test_a_cluster_decides_itself_how_many_workers_it_has() -> None:
    with pytest.raises(UsageError, match="remove --workers-per-machine"):
        Ray.at("host:10001", 2)


def test_the_executor_is_listed_without_importing_ray() -> None:
    code = "import sys, assay.executors.ray; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
