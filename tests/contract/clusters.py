"""Small clusters on loopback; two processes on one machine stand for many machines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import LocalCluster

from contract.postgres import PASSWORD

#: What only the workers know; nothing of it travels with an order.
SECRET = "k9-secret-of-the-judge"
ENVIRONMENT = {"PGPASSWORD": PASSWORD, "JUDGE_KEY": SECRET}


@contextmanager
def dask_running() -> Iterator[str]:
    """The address of a scheduler with two workers, as it stands after `dask://`."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            env=ENVIRONMENT,
        ) as cluster,
    ):
        yield cluster.scheduler_address.removeprefix("tcp://")
