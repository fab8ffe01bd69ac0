"""Brake: stops a run from outside, as Ctrl-C and the server do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Brake:
    """Press it from any thread: once to stop gracefully, twice to stop at once."""

    def __init__(self) -> None:
        self.presses = 0
        #: The reason for the stop, which the run records.
        self.note = ""
        self.is_heeded = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_press: Callable[[], None] = lambda: None

    def press(self, note: str = "") -> None:
        self.presses += 1
        self.note = self.note or note
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_press)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """While a run reacts to the brake; at other times the caller must stop by itself."""
        self.is_heeded = True
        try:
            yield
        finally:
            self.is_heeded = False

    def connect(self, on_press: Callable[[], None]) -> None:
        """Call `on_press` in the running loop at every press; at once if already pressed."""
        self._loop, self._on_press = asyncio.get_running_loop(), on_press
        if self.presses:
            on_press()
