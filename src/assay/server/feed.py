"""What a run tells, for everybody who listens: the latest events, and the counts so far."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from assay.model.events import Event, Notice, RunFinished, RunStarted, TrialFinished
from assay.model.result import Outcome
from assay.model.run import RunStatus

#: So many events are kept for those who come late or read slowly.
KEPT = 1000
#: How often those who wait hear that the connection is alive, in seconds.
HEARTBEAT_SECONDS = 15.0

NAMES: dict[type, str] = {
    RunStarted: "started",
    TrialFinished: "trial",
    Notice: "notice",
    RunFinished: "finished",
}


class Progress(msgspec.Struct, rename="camel"):
    """How far a run is: trials by outcome, of how many, and what they cost."""

    run_id: str = ""
    planned: int | None = None
    done: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    cost_usd: float = 0.0

    def count(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self.run_id, self.planned = event.run_id, event.planned
        elif isinstance(event, TrialFinished):
            self.add(event.outcome, event.cost_usd)

    def add(self, outcome: Outcome, cost_usd: float | None) -> None:
        """One more trial."""
        self.done += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.cost_usd += cost_usd or 0.0


class Sent(msgspec.Struct):
    """An event as a listener gets it; a name of "" says only that the connection is alive."""

    name: str
    id: str
    data: dict[str, Any]

    def encoded(self) -> bytes:
        """The event in the format of server-sent events."""
        if not self.name:
            return b": still here\n\n"
        data = msgspec.json.encode(self.data)
        return b"event: %s\nid: %s\ndata: %s\n\n" % (self.name.encode(), self.id.encode(), data)


class Feed:
    """Is told events in the thread of a run, and tells them on in the loop of the server.

    The id of an event has the name of its feed: a run that goes on after a restart has another
    one, whose numbers begin anew.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop, self._name = loop, name
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._told = 0
        self._progress = Progress()
        self._closed = self._waking = self._is_resumed = False
        self._end: RunFinished | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def recall(self, progress: Progress) -> None:
        """Begin with what was done before; called before the first event."""
        self._progress, self._is_resumed = progress, True

    def push(self, event: Event) -> None:
        """May be called from any thread. The end is told by `close`, once all is recorded."""
        if isinstance(event, RunFinished):
            return
        with self._lock:
            self._events.append(event)
            self._told += 1
            self._progress.count(event)
            if self._waking:
                return
            self._waking = True
        self._loop.call_soon_threadsafe(self._wake)

    def close(self, status: RunStatus | None = None) -> None:
        """Nothing more comes but how the run ended. Only in the loop of the server."""
        if not self._closed:
            self._end = None if status is None else RunFinished(status)
        self._closed = True
        self._wake()

    def progress(self) -> dict[str, Any]:
        with self._lock:
            found: dict[str, Any] = msgspec.to_builtins(self._progress)
            return found

    async def follow(self, last: str) -> AsyncIterator[Sent]:
        """The events after the one with this id. Who missed some is told the counts first."""
        number, missed = self._place(last)
        while True:
            events, number, progress = self._since(number, missed)
            missed = False
            if progress is not None:
                yield self._sent("progress", number - len(events), progress)
            for place, event in enumerate(events, number - len(events) + 1):
                yield self._sent(NAMES[type(event)], place, msgspec.to_builtins(event))
            if self._closed and number == self._told:
                if self._end is not None:
                    end = msgspec.to_builtins(self._end)
                    yield self._sent(NAMES[RunFinished], number + 1, end)
                return
            # What comes from here on wakes us: this runs in the loop, as `_wake` does.
            if number == self._told and not await self._woken():
                yield Sent("", "", {})

    def _place(self, last: str) -> tuple[int, bool]:
        """The number of the event with this id, and whether others were missed."""
        if last == "0" and not self._is_resumed:  # all of them are wanted
            return 0, False
        name, _, number = last.rpartition("-")
        if name != self._name or re.fullmatch("[0-9]{1,17}", number) is None:
            return 0, True
        return int(number), False

    def _sent(self, name: str, number: int, data: dict[str, Any]) -> Sent:
        return Sent(name, f"{self._name}-{number}", data)

    def _since(self, number: int, missed: bool) -> tuple[list[Event], int, dict[str, Any] | None]:
        """The events after a number; when some are gone, only the counts up to now."""
        with self._lock:
            first = self._told - len(self._events)
            if missed or not first <= number <= self._told:
                return [], self._told, msgspec.to_builtins(self._progress)
            return list(self._events)[number - first :], self._told, None

    async def _woken(self) -> bool:
        """Has something come? False when nothing did for a while."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        done, _ = await asyncio.wait([waiter], timeout=HEARTBEAT_SECONDS)
        if not done:
            self._waiting.remove(waiter)
        return bool(done)

    def _wake(self) -> None:
        with self._lock:
            self._waking = False
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
