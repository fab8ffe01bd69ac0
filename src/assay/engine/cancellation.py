"""Cancellation: stops a run from outside, as Ctrl-C and the server do."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from assay.errors import StoreError
from assay.model.run import CANCELLED
from assay.ports import Store
from assay.threads import call_in_thread

#: How often to look whether another process has cancelled the run.
WATCH_SECONDS = 1.0
#: The notes of a run that another process has stopped.
WAS_CANCELLED = "it was cancelled"
TAKEN_OVER = "another process has taken the run over"


class Cancellation:
    """Request it from any thread: once to stop gracefully, twice to stop at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = 0
        #: The reason for the stop, which the run records.
        self.note = ""
        self._reacts_to = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_request: Callable[[], None] = lambda: None
        self._children: list[Cancellation] = []

    def request(self, note: str = "", times: int | None = None) -> None:
        """With `times`, only as often as it was not requested yet."""
        with self._lock:
            if times is not None and self.requests >= times:
                return
            self.requests = self.requests + 1 if times is None else times
            self.note = self.note or note
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_request)
        for child in self._children:
            child.request(note, self.requests)

    def child(self) -> Cancellation:
        """A cancellation of one run of a group; requests of this one reach it too."""
        made = Cancellation()
        self._children.append(made)
        made.request(self.note, self.requests)
        return made

    @property
    def is_observed(self) -> bool:
        """Does a run react to the cancellation?"""
        if self.requests < self._reacts_to:
            return True
        return any(child.is_observed for child in self._children)

    @contextmanager
    def observed(self, requests: float = math.inf) -> Iterator[None]:
        """While a run reacts to so many requests; at other times the caller has to stop itself."""
        self._reacts_to = requests
        try:
            yield
        finally:
            self._reacts_to = 0.0

    def connect(self, on_request: Callable[[], None]) -> None:
        """Call `on_request` in the running loop at every request; at once if already requested."""
        self._loop, self._on_request = asyncio.get_running_loop(), on_request
        if self.requests:
            on_request()


async def watch(store: Store, run_id: str, cancellation: Cancellation) -> None:
    """Keep the lease of a run, and request its cancellation as often as the store says.

    Workers save trials themselves, so nothing else may notice that the lease was lost.
    """
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        with suppress(StoreError):  # the next look, or what the run does itself, finds it too
            look = call_in_thread(partial(_look, store, run_id))
            note, times = await asyncio.wrap_future(look)
            cancellation.request(note, times)


def _look(store: Store, run_id: str) -> tuple[str, int]:
    """How often the run has to be cancelled, and why."""
    if not store.held(run_id):
        return TAKEN_OVER, 2
    return WAS_CANCELLED, store.run(run_id).environment.get(CANCELLED, 0)
