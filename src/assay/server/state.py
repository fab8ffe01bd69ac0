"""What the routes of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from assay.ports import Store
from assay.server.pages.kept_overviews import Overviews
from assay.server.run_manager import Clock, RunManager, utc_now
from assay.service.labelling import LabelQueues
from assay.settings import Settings

T = TypeVar("T")
#: How many scans of all results of a run may be made at once: more would only be slower.
MAX_SCANS = 2


class State(msgspec.Struct, frozen=True):
    """The project that is served, its store, and the runs in progress."""

    settings: Settings
    store: Store
    run_manager: RunManager
    now: Clock = utc_now
    #: The address of the server in browsers, if it was given.
    public_url: str = ""
    label_queues: LabelQueues = msgspec.field(default_factory=LabelQueues)
    overviews: Overviews = msgspec.field(default_factory=Overviews)
    scans: asyncio.Semaphore = msgspec.field(default_factory=lambda: asyncio.Semaphore(MAX_SCANS))

    async def read(self, read: Callable[[], T], *, quick: bool = True) -> T:
        """Call a function that reads the store; a quick read of a local store needs no thread."""
        if quick and not getattr(self.store, "remote", False):
            return read()
        return await asyncio.to_thread(read)

    async def scan(self, read: Callable[[], T], request: Request | None = None) -> T:
        """Call a function that reads a whole run, in a thread; few run at once, others queue.

        If the client of `request` disconnects while it is queued, the scan is not made.
        """
        async with AsyncExitStack() as slot:
            await slot.enter_async_context(self.scans)
            if request is not None and await request.is_disconnected():
                raise ClientDisconnect
            scanning = asyncio.ensure_future(asyncio.to_thread(read))
            # Cancelling does not stop a thread: the slot is free only when the thread ends.
            slot.pop_all()
            scanning.add_done_callback(lambda _: self.scans.release())
            return await asyncio.shield(scanning)


def state_of(request: Request) -> State:
    state: State = request.app.state.assay
    return state
