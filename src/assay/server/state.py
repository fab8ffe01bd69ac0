"""What the routes of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from assay.ports import Store
from assay.server.jobs import Clock, Jobs, utc_now
from assay.settings import Settings

T = TypeVar("T")
#: So many walks over all results of a run are made at once: more would not end sooner.
WALKS = 2


class State(msgspec.Struct, frozen=True):
    """The project that is served, where it is stored, and the runs under way."""

    settings: Settings
    store: Store
    jobs: Jobs
    now: Clock = utc_now
    walks: asyncio.Semaphore = msgspec.field(default_factory=lambda: asyncio.Semaphore(WALKS))

    async def read(self, read: Callable[[], T], *, quick: bool = True) -> T:
        """What the store answers. A quick answer on this machine is not worth a thread."""
        if quick and not getattr(self.store, "remote", False):
            return read()
        return await asyncio.to_thread(read)

    async def walk(self, read: Callable[[], T], request: Request | None = None) -> T:
        """What takes as long as a run is large. Whoever waits for a turn keeps no thread.

        A request whose sender hung up meanwhile is not carried out.
        """
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self.walks)
            if request is not None and await request.is_disconnected():
                raise ClientDisconnect
            walking = asyncio.ensure_future(asyncio.to_thread(read))
            # A thread walks on when nobody waits for it any more: the turn is over when it ends.
            turn.pop_all()
            walking.add_done_callback(lambda _: self.walks.release())
            return await asyncio.shield(walking)


def state_of(request: Request) -> State:
    state: State = request.app.state.assay
    return state
