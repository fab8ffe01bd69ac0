"""What dask and Ray have in common: addresses, and a few pieces for each process at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from itertools import islice
from typing import Any

from assay.errors import UsageError

#: The ports that schedulers of dask and clusters of Ray usually have.
PORTS = {"dask": 8786, "ray": 10001}
#: How many pieces are submitted for each process, so that it never waits for the next.
PIECES_AHEAD = 2
#: How long the size of a cluster is believed to stay the same.
_SIZE_SECONDS = 2.0


def check_place(scheme: str, address: str, workers: int | None) -> None:
    """Raise UsageError unless this is the address of a cluster, or the size of one of our own."""
    if address and workers:
        what = "a cluster decides itself how many workers its machines have"
        raise UsageError(f"{what}: remove --workers-per-machine, or the address")
    if address and not address.rpartition(":")[2].isdecimal():
        example = f"{scheme}://{address.rstrip(':')}:{PORTS[scheme]}"
        raise UsageError(f"the address {address!r} has no port: for example {example}")


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
