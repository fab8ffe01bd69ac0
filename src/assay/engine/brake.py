"""Brake: how a door stops a run that it has started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Brake:
    """Stops a run from outside, from any thread: once gently, twice at once."""

    def __init__(self) -> None:
        self.presses = 0
        #: The reason for the stop, which the run records.
        self.note = ""
        self.is_heeded = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pressed: Callable[[], None] = lambda: None

    def press(self, note: str = "") -> None:
        self.presses += 1
        self.note = self.note or note
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pressed)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """While a run reacts to the brake; at other times the door has to stop by itself."""
        self.is_heeded = True
        try:
            yield
        finally:
            self.is_heeded = False

    def connect(self, pressed: Callable[[], None]) -> None:
        """Call this in the running loop whenever the brake is pressed, and if it was already."""
        self._loop, self._pressed = asyncio.get_running_loop(), pressed
        if self.presses:
            pressed()
