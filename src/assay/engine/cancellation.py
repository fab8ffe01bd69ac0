"""Cancellation: stops a run from outside, as Ctrl-C and the server do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Request it from any thread: once to stop gracefully, twice to stop at once."""

    def __init__(self) -> None:
        self.requests = 0
        #: The reason for the stop, which the run records.
        self.note = ""
        self.is_observed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_request: Callable[[], None] = lambda: None

    def request(self, note: str = "") -> None:
        self.requests += 1
        self.note = self.note or note
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_request)

    @contextmanager
    def observed(self) -> Iterator[None]:
        """While a run reacts to the cancellation; at other times the caller has to stop itself."""
        self.is_observed = True
        try:
            yield
        finally:
            self.is_observed = False

    def connect(self, on_request: Callable[[], None]) -> None:
        """Call `on_request` in the running loop at every request; at once if already requested."""
        self._loop, self._on_request = asyncio.get_running_loop(), on_request
        if self.requests:
            on_request()
