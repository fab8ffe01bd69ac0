"""`ray`: works on a cluster of Ray, or on one that it starts on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from assay.errors import ExecutorError, UsageError
from assay.executors.windows import Cluster, windowed
from assay.ports import WorkOrder
from assay.work_orders import do, encoded

#: How often a piece is done again when its process dies.
_RETRIES = 1
#: How many orders use the connection of this process, such as those of several targets.
_users = 0
_lock = threading.Lock()


class Ray(Cluster):
    """Runs on a cluster of Ray."""

    scheme, port = "ray", 10001

    async def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
        async with _connected(self._address, self._workers) as ray:
            task = ray.remote(num_cpus=1, max_retries=_RETRIES)(do)
            sent = ray.put(encoded(order))  # sent to each machine once; pieces refer to it

            async def submit(piece: bytes) -> bytes:
                call = task.remote(sent, piece)
                try:
                    return await _result(call, ray.exceptions)
                except asyncio.CancelledError:
                    ray.cancel(call, force=True)
                    raise

            async def processes() -> int:
                self.processes = int(ray.cluster_resources().get("CPU", 1))
                return self.processes

            async with aclosing(windowed(submit, pieces, processes)) as results:
                async for result in results:
                    yield result


async def _result(call: Any, errors: Any) -> bytes:
    try:
        result: bytes = await call
    except errors.RayTaskError as error:  # raised by the worker
        raise error.cause from None
    except (errors.WorkerCrashedError, errors.NodeDiedError):
        raise ExecutorError("a worker process ended, twice on the same work") from None
    except errors.RayError as error:
        raise ExecutorError(f"the cluster failed: {error}") from None
    return result


@asynccontextmanager
async def _connected(address: str, workers: int) -> AsyncIterator[Any]:
    """The module `ray`, connected to the cluster or to a new one that ends with it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    try:
        import ray
    except ImportError as error:
        fix = "pip install 'assay-evals[ray]'"
        raise UsageError(f"the executor 'ray' needs ray ({error}): {fix}") from None
    place: dict[str, Any] = {"address": f"ray://{address}"} if address else {"address": "local"}
    if not address:
        place |= {"num_cpus": workers, "include_dashboard": False}
    place |= {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        await asyncio.to_thread(
            _connect, ray, place
        )  # it takes seconds, and in the main thread it takes signals
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        found = f"the cluster at {address or 'this machine'} cannot be reached: {error}"
        fix = "check host and port, and whether it wants a token (RAY_AUTH_MODE=token)"
        raise ExecutorError(f"{found}; {fix}" if address else found) from None
    try:
        yield ray
    finally:
        await asyncio.to_thread(_disconnect, ray)


def _connect(ray: Any, place: dict[str, Any]) -> None:
    """Use the connection of this process, of which there can be only one."""
    global _users
    with _lock:
        if not _users:
            ray.init(**place)
        _users += 1


def _disconnect(ray: Any) -> None:
    global _users
    with _lock:
        _users -= 1
        if not _users:
            ray.shutdown()
