"""Small clusters on loopback; two processes on one machine stand for many machines."""

from __future__ import annotations

import logging
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from subprocess import PIPE, STDOUT, Popen

import dask
from distributed import LocalCluster

from contract.postgres import PASSWORD, PORTS

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


@contextmanager
def ray_running() -> Iterator[str]:
    """The address of a cluster of Ray with two workers; it wants the token of this environment."""
    port = random.choice(range(20_000, PORTS.stop))  # its workers have those below
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"]
    command += ["--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false"]
    command += [f"--ray-client-server-port={port + 1}", "--num-cpus=2", "--disable-usage-stats"]
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
    try:
        with Popen(command, env=os.environ | ENVIRONMENT, stdout=PIPE, stderr=STDOUT) as process:
            try:
                assert process.stdout is not None
                said = []
                for line in process.stdout:
                    said.append(line)
                    if b"--block" in line:  # it runs, and says what that means
                        break
                else:
                    raise AssertionError(b"".join(said))
                yield f"127.0.0.1:{port + 1}"
            finally:
                process.terminate()
    finally:
        del os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"]
