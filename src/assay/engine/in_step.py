"""InStep: keeps concurrent runs in step, so that all of them ask a case at about the same time.

Runs of several targets over the same cases take their trials in the same order. What happens while
they ask, such as an hour in which a provider is slow, then affects the same cases of all of them.
"""

from __future__ import annotations

import asyncio


class InStep:
    """Runs that take the same trials in the same order. All join before the first one starts."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._slowest = 0
        self._moved = asyncio.Event()

    def join(self) -> Place:
        """A place for one more run."""
        place = Place(self)
        self._places.append(place)
        return place

    def has(self, place: Place) -> bool:
        """Has the run not left?"""
        return place in self._places

    def leads_by(self, place: Place) -> int:
        """How many trials the run is ahead of the slowest."""
        return place.started - self._slowest

    async def moved(self) -> None:
        """Wait until the slowest run has started a trial, or some run has left."""
        await self._moved.wait()

    def leave(self, place: Place) -> None:
        if place in self._places:
            self._places.remove(place)
            self.update(changed=True)

    def update(self, *, changed: bool = False) -> None:
        """Wake the runs that wait, if the slowest one has moved or some run has `changed`."""
        slowest = min((place.started for place in self._places), default=0)
        if changed or slowest != self._slowest:
            self._slowest = slowest
            self._moved.set()
            self._moved = asyncio.Event()


class Place:
    """How far one run is. It may be `lead` trials ahead of the slowest run."""

    def __init__(self, in_step: InStep) -> None:
        self._in_step = in_step
        self.started, self.lead = 0, 1

    def begin(self, done: int, lead: int) -> None:
        """Begin after the trials that were `done` by an earlier process of the run."""
        self.started, self.lead = done, lead
        self._in_step.update(changed=True)

    async def turn(self) -> None:
        """Wait until the run may start its next trial, and count that; at once if it has left."""
        while self._in_step.has(self) and self._in_step.leads_by(self) >= self.lead:
            await self._in_step.moved()
        self.started += 1
        self._in_step.update()

    def leave(self) -> None:
        """Do not wait for others any more, nor let them wait."""
        self._in_step.leave(self)
