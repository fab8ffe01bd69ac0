"""What the routes of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request

from assay.ports import Store
from assay.server.jobs import Clock, Jobs, utc_now
from assay.settings import Settings

T = TypeVar("T")


class State(msgspec.Struct, frozen=True):
    """The project that is served, where it is stored, and the runs under way."""

    settings: Settings
    store: Store
    jobs: Jobs
    now: Clock = utc_now

    async def read(self, read: Callable[[], T], *, quick: bool = True) -> T:
        """What the store answers. A quick answer on this machine is not worth a thread."""
        if quick and not getattr(self.store, "remote", False):
            return read()
        return await asyncio.to_thread(read)


def state_of(request: Request) -> State:
    state: State = request.app.state.assay
    return state
