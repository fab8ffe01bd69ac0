"""`dask`: works on a cluster of dask.distributed, or on one that it starts on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from assay.errors import ExecutorError, UsageError
from assay.executors.windows import Cluster, windowed
from assay.ports import WorkOrder
from assay.work_orders import do, encoded, name_of, release

if TYPE_CHECKING:
    from distributed import Client

#: How long the scheduler, and then its first worker, may take to appear.
CONNECT_SECONDS = 30.0
#: How long the workers may take to end their work on an order.
_RELEASE_SECONDS = 5.0
#: With a cluster of our own, a piece is done again once. Others decide that themselves.
_LOCAL = {"distributed.scheduler.allowed-failures": 1}
#: An order may have a project bundle, and dask warns of large arguments.
_QUIET = {"distributed.admin.large-graph-warning-threshold": "100 MB"}


class Dask(Cluster):
    """Runs on a cluster of dask.distributed."""

    scheme, port = "dask", 8786

    async def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
        async with _client(self._address, self._workers) as client:
            # The order is sent to each worker once, as a task that pieces refer to: unlike
            # scattered data, it is not lost with the workers that have it.
            sent = client.submit(bytes, encoded(order), pure=False)

            async def submit(piece: bytes) -> bytes:
                future = client.submit(do, sent, piece, pure=False)
                try:
                    return await _result(future)
                finally:
                    future.release()

            async def processes() -> int:
                self.processes = len(await client.nthreads())
                return self.processes

            try:
                async with aclosing(windowed(submit, pieces, processes)) as results:
                    async for result in results:
                        yield result
            finally:
                with suppress(Exception):  # workers that cannot be reached have nothing to end
                    async with asyncio.timeout(_RELEASE_SECONDS):
                        await client.run(release, name_of(order), on_error="ignore")


async def _result(future: Any) -> bytes:
    from distributed.scheduler import KilledWorker

    try:
        result: bytes = await future
    except KilledWorker as error:
        times = "twice" if error.allowed_failures == 1 else f"{error.allowed_failures + 1} times"
        raise ExecutorError(f"a worker process ended, {times} on the same work") from None
    except CancelledError:
        raise ExecutorError("the scheduler of the cluster ended, or was restarted") from None
    return result


@asynccontextmanager
async def _client(address: str, workers: int) -> AsyncIterator[Client]:
    """A client of the cluster, or of a new one that ends with it."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        fix = "pip install 'assay-evals[dask]'"
        raise UsageError(f"the executor 'dask' needs distributed ({error}): {fix}") from None
    async with AsyncExitStack() as stack:
        stack.enter_context(dask.config.set(_QUIET))
        cluster: Any = address
        if not address:
            stack.enter_context(dask.config.set(_LOCAL))
            cluster = await stack.enter_async_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                    asynchronous=True,
                )
            )
        elif "://" not in address:
            secured = dask.config.get("distributed.comm.tls.client.cert", None)
            cluster = f"{'tls' if secured else 'tcp'}://{address}"
        try:
            client = await stack.enter_async_context(
                Client(cluster, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
            )
        except OSError as error:
            found = f"the scheduler at {address} cannot be reached: {error}"
            raise ExecutorError(f"{found}; check host and port, and whether it runs") from None
        try:
            await client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            waited = f"no worker within {CONNECT_SECONDS:g} s: start some, or wait for them"
            raise ExecutorError(
                f"the cluster at {address or 'this machine'} has {waited}"
            ) from None
        yield client
