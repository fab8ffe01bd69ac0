"""The events of a run for all clients: the latest ones, and the counts so far."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.model.events import (
    Event,
    Notice,
    PieceFinished,
    RunFinished,
    RunStarted,
    TrialFinished,
)
from assay.model.result import Count, Outcome
from assay.model.run import RunStatus

#: How many events are kept for clients that connect late or read slowly.
KEPT = 1000
#: How many of the newest failures are kept.
SHOWN_FAILURES = 10
#: How long a stream may be silent before a heartbeat is sent.
HEARTBEAT_SECONDS = 15.0

NAMES: dict[type, str] = {
    RunStarted: "started",
    TrialFinished: "trial",
    PieceFinished: "piece",
    Notice: "notice",
    RunFinished: "finished",
}


class Progress(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How far a run is: trials by outcome, how many are planned, and their cost."""

    run_id: str
    planned: Count | None
    done: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    cost_usd: float

    @classmethod
    def begin(cls, run_id: str = "", planned: int | None = None) -> Progress:
        return cls(run_id, planned, 0, 0, 0, 0, 0, 0.0)

    def count(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self.run_id, self.planned = event.run_id, event.planned
        elif isinstance(event, TrialFinished):
            if event.confirms:  # not one of the planned trials
                self.cost_usd += event.cost_usd or 0.0
            else:
                self.add(event.outcome, event.cost_usd)

        elif isinstance(event, PieceFinished):
            for outcome, number in event.outcomes.items():
                self.add(outcome, None, number)
            self.cost_usd += event.cost_usd

    def add(self, outcome: Outcome, cost_usd: float | None, number: int = 1) -> None:
        """Count more trials."""
        self.done += number
        setattr(self, outcome, getattr(self, outcome) + number)
        self.cost_usd += cost_usd or 0.0


class Snapshot(msgspec.Struct, frozen=True):
    """Where a run is now: its counts, trials per second, and the newest failures first."""

    progress: Progress
    speed: float = 0.0
    failures: tuple[TrialFinished, ...] = ()
    e_value: float | None = None


class ServerSentEvent(msgspec.Struct):
    """An event on the wire; one without a name is a heartbeat."""

    name: str
    id: str
    data: Any

    def encoded(self) -> bytes:
        """The event in the `text/event-stream` format."""
        if not self.name:
            return b": still here\n\n"
        data = msgspec.json.encode(self.data)
        return b"event: %s\nid: %s\ndata: %s\n\n" % (self.name.encode(), self.id.encode(), data)


class Feed:
    """Takes events from the thread of a run and streams them in the event loop of the server.

    An event id is the name of the feed and a number. A run that is resumed after a restart gets
    a feed with another name, whose numbers start over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop, self._name = loop, name
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=KEPT)
        #: How many events were pushed, which is also the number of the last one.
        self._pushed = 0
        self._progress = Progress.begin()
        self._closed = self._wake_scheduled = self._is_resumed = False
        self._end: RunFinished | None = None
        self._failures: deque[TrialFinished] = deque(maxlen=SHOWN_FAILURES)
        self._e_value: float | None = None
        self._began, self._done_before = time.monotonic(), 0
        self._waiters: list[asyncio.Future[None]] = []

    def resume_from(self, progress: Progress) -> None:
        """Start with the counts from before a restart; call this before the first `push`."""
        self._progress, self._is_resumed = progress, True
        self._done_before = progress.done

    def push(self, event: Event) -> None:
        """Add an event, from any thread. The end comes from `close`, once it is stored."""
        if isinstance(event, RunFinished):
            return
        with self._lock:
            self._events.append(event)
            self._pushed += 1
            self._progress.count(event)
            if isinstance(event, TrialFinished):
                self._note(event)
            if self._wake_scheduled:
                return
            self._wake_scheduled = True
        self._loop.call_soon_threadsafe(self._wake)

    def close(self, status: RunStatus | None = None) -> None:
        """End the feed, with how the run ended if it did. Only in the event loop of the server."""
        if not self._closed:
            self._end = None if status is None else RunFinished(status)
        self._closed = True
        self._wake()

    def progress(self) -> Progress:
        with self._lock:
            return replace(self._progress)

    def _note(self, event: TrialFinished) -> None:
        if event.e_value is not None:
            self._e_value = event.e_value
        if event.outcome in ("failed", "errored") and not event.confirms:
            self._failures.append(event)

    def snapshot(self) -> Snapshot:
        """Where the run is now."""
        with self._lock:
            progress, seconds = replace(self._progress), time.monotonic() - self._began
            speed = (progress.done - self._done_before) / seconds if seconds else 0.0
            return Snapshot(progress, speed, tuple(reversed(self._failures)), self._e_value)

    async def follow(self, last: str) -> AsyncIterator[ServerSentEvent]:
        """The events after the one with this id, or the counts first if some were missed."""
        number, missed = self._parse_id(last)
        while True:
            events, number, progress = self._events_after(number, missed)
            missed = False
            if progress is not None:
                yield self._event("progress", number - len(events), progress)
            for place, event in enumerate(events, number - len(events) + 1):
                yield self._event(NAMES[type(event)], place, event)
            if self._closed and number == self._pushed:
                if self._end is not None:
                    yield self._event(NAMES[RunFinished], number + 1, self._end)
                return
            # No event is lost here: `_wake` runs in this loop too, so only once we wait.
            if number == self._pushed and not await self._wait():
                yield ServerSentEvent("", "", {})

    def _parse_id(self, last: str) -> tuple[int, bool]:
        """The number in an event id, and whether the client missed events."""
        if last == "0" and not self._is_resumed:  # the client wants all events
            return 0, False
        name, _, number = last.rpartition("-")
        if name != self._name or re.fullmatch("[0-9]{1,17}", number) is None:
            return 0, True
        return int(number), False

    def _event(self, name: str, number: int, data: Any) -> ServerSentEvent:
        return ServerSentEvent(name, f"{self._name}-{number}", data)

    def _events_after(self, number: int, missed: bool) -> tuple[list[Event], int, Progress | None]:
        """The events after a number and the last number; if some are gone, the counts instead."""
        with self._lock:
            first = self._pushed - len(self._events)
            if missed or not first <= number <= self._pushed:
                return [], self._pushed, replace(self._progress)
            return list(self._events)[number - first :], self._pushed, None

    async def _wait(self) -> bool:
        """Wait for the next event; False when it is time for a heartbeat."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        done, _ = await asyncio.wait([waiter], timeout=HEARTBEAT_SECONDS)
        if not done:
            self._waiters.remove(waiter)
        return bool(done)

    def _wake(self) -> None:
        with self._lock:
            self._wake_scheduled = False
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
