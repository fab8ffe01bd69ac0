"""What dask and Ray have in common: addresses, and a few pieces for each process at a time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from itertools import islice
from typing import Any, ClassVar, Self

from assay.errors import UsageError

#: How many pieces are submitted for each process, so that it never waits for the next.
PIECES_AHEAD = 2
#: How long the size of a cluster is believed to stay the same.
_SIZE_SECONDS = 2.0


class Cluster:
    """The executor on the cluster at `address`; without one, it starts `workers` processes here."""

    remote = True
    #: Of its addresses, and the port that they usually have.
    scheme: ClassVar[str]
    port: ClassVar[int]

    def __init__(self, address: str = "", workers: int | None = None) -> None:
        self._address = address
        self._workers = workers or len(os.sched_getaffinity(0))
        #: How many processes the cluster has.
        self.processes = 1

    @classmethod
    def at(cls, address: str, workers: int | None) -> Self:
        if address and workers:
            what = "a cluster decides itself how many workers its machines have"
            raise UsageError(f"{what}: remove --workers-per-machine, or the address")
        if address and not address.rpartition(":")[2].isdecimal():
            example = f"{cls.scheme}://{address.rstrip(':')}:{cls.port}"
            raise UsageError(f"the address {address!r} has no port: for example {example}")
        return cls(address, workers)


async def windowed(
    submit: Callable[[bytes], Coroutine[Any, Any, bytes]],
    pieces: Iterable[bytes],
    processes: Callable[[], Awaitable[int]],
) -> AsyncGenerator[bytes, None]:
    """The result of each piece. `processes` counts those of the cluster, which may grow."""
    left, asked_at, window = iter(pieces), 0.0, 0
    calls: set[asyncio.Task[bytes]] = set()
    try:
        while True:
            if time.monotonic() - asked_at > _SIZE_SECONDS:
                window = PIECES_AHEAD * max(await processes(), 1)
                asked_at = time.monotonic()
            for piece in islice(left, max(window - len(calls), 0)):
                calls.add(asyncio.create_task(submit(piece)))
            if not calls:
                return
            done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            failed = [call for call in done if call.exception() is not None]
            for call in failed or done:
                yield call.result()
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
