"""Hypothesis profiles: few fixed examples, or many new ones with ASSAY_TEST_PROFILE=full."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from contract.postgres import Server

pytest_plugins = ["pytester"]

# pytest explains plain asserts of a conformance suite only if the module is registered.
pytest.register_assert_rewrite("assay.testing")

_SLOW = [HealthCheck.too_slow]

settings.register_profile(
    "default", max_examples=25, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "full", max_examples=2000, deadline=None, derandomize=False, suppress_health_check=_SLOW
)
settings.load_profile("full" if os.environ.get("ASSAY_TEST_PROFILE") == "full" else "default")


# A shell lets what it runs in the background ignore Ctrl-C, and all that it starts inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL for all tests of a worker that need it."""
    from contract.postgres import running

    with running() as server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests with a cluster: they run in a process of their own."""
    for item in items:
        if "dask_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the thousands of tests and modules that stay anyway."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[str]:
    """The address of one dask cluster for all tests of a worker that need it."""
    from contract.clusters import dask_running

    with dask_running() as address:
        yield address
