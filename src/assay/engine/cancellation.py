"""Cancellation: stops a run from outside, as Ctrl-C and the server do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Request it from any thread: once to stop gracefully, twice to stop at once.

    It stops all runs that are connected to it.
    """

    def __init__(self) -> None:
        self.requests = 0
        #: The reason for the stop, which the run records.
        self.note = ""
        self._observers = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_request: list[Callable[[], None]] = []

    def request(self, note: str = "") -> None:
        self.requests += 1
        self.note = self.note or note
        if self._loop is not None and not self._loop.is_closed():
            for react in self._on_request:
                self._loop.call_soon_threadsafe(react)

    @property
    def is_observed(self) -> bool:
        """Does any run react to the cancellation?"""
        return self._observers > 0

    @contextmanager
    def observed(self) -> Iterator[None]:
        """While a run reacts to the cancellation; at other times the caller has to stop itself."""
        self._observers += 1
        try:
            yield
        finally:
            self._observers -= 1

    def connect(self, on_request: Callable[[], None]) -> None:
        """Call `on_request` in the running loop at every request; at once if already requested."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the runs of the loop before have ended
            self._loop, self._on_request = loop, []
        self._on_request.append(on_request)
        if self.requests:
            on_request()
