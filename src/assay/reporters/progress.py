"""The progress of a run: one line that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TextIO, TypeVar

from assay.model.events import (
    Event,
    Notice,
    PieceFinished,
    RunFinished,
    RunStarted,
    TrialFinished,
)
from assay.reporters.terminal import Terminal, safe
from assay.text import columns, count, cut, duration, money

T = TypeVar("T")

#: Seconds between redraws on a terminal, and between lines elsewhere.
REDRAW, PLAIN = 0.1, 5.0
#: Seconds between two updates of the time while no event arrives.
TICK = 1.0
#: Seconds without a finished trial after which it says how long it has been waiting.
WAITING = 3.0

_BAR = 20
_COLOURS = {"passed": "green", "failed": "red", "errored": "yellow", "skipped": "dim"}
#: What is written before a line that takes the place of the last one.
ERASE = "\r\x1b[K"


class Progress:
    """Listens to the events of a run. If its stream is closed, it just stops writing.

    If it is `quiet`, it writes notices only.
    """

    def __init__(
        self,
        out: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
    ) -> None:
        self._out, self._clock, self._quiet = out, clock, quiet
        self._terminal = Terminal() if out is None or out.closed else Terminal.of(out)
        self._interval = REDRAW if self._terminal.live else PLAIN
        self._counts = dict.fromkeys(_COLOURS, 0)
        self._planned: int | None = None
        self._done_before = 0
        self._cost, self._cached, self._reasked = 0.0, 0, 0
        #: The pieces that each machine has done.
        self._pieces: Counter[str] = Counter()
        self._drawn = self._running = False
        self._started_at = self._last_trial_at = clock()
        self._next_at = self._started_at + self._interval

    def __call__(self, event: Event) -> None:
        if self._quiet:
            if isinstance(event, Notice):
                self._write(f"{self._terminal.fit(safe(event.text))}\n")
        elif type(event) is TrialFinished:  # first, as there may be a million of them
            if event.confirms:
                self._reasked += 1
            else:
                self._counts[event.outcome] += 1
            if event.cached:
                self._cached += 1
            elif event.cost_usd is not None:
                self._cost += event.cost_usd
            self._show_if_due()
        elif isinstance(event, PieceFinished):
            for outcome, number in event.outcomes.items():
                self._counts[outcome] += number
            self._cost += event.cost_usd
            self._pieces[event.machine] += 1
            self._show_if_due()
        else:
            self._on_run_event(event)

    def _show_if_due(self) -> None:
        now = self._last_trial_at = self._clock()
        if now >= self._next_at:
            self._show(now)

    def tick(self) -> None:
        """Update the time while no event arrives; to be called regularly."""
        now = self._clock()
        if self._running and now >= self._next_at:
            self._show(now)

    async def shown_while(self, work: Awaitable[T]) -> T:
        """The result of the work; the time is updated meanwhile."""

        async def tick() -> None:
            while True:
                await asyncio.sleep(TICK)
                self.tick()

        ticking = asyncio.create_task(tick())
        try:
            return await work
        finally:
            ticking.cancel()

    def close(self) -> None:
        """Erase the line, if the run ended without `RunFinished`."""
        self._write("")

    def _on_run_event(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._planned, self._done_before = event.planned, event.done
            self._started_at = self._last_trial_at = self._clock()
            self._next_at = self._started_at + self._interval
            self._running = True
            if self._terminal.live:  # waiting for the first answer must not look like a hang
                self._show(self._started_at)
        elif isinstance(event, Notice):
            self._write(f"{self._terminal.fit(safe(event.text))}\n")
            if self._terminal.live:
                self._show(self._clock())
        elif isinstance(event, RunFinished):
            self._running = False
            elapsed = duration(1000 * self._elapsed(self._clock()))
            ended = f"{self._trials_done()}, {event.status} after {elapsed}"
            self._write(": ".join(filter(None, (ended, self._totals()))) + "\n")

    def _elapsed(self, now: float) -> float:
        return max(now - self._started_at, 0.0)

    def _finished(self) -> int:
        return sum(self._counts.values())

    def _show(self, now: float) -> None:
        self._next_at = now + self._interval
        parts = ", ".join(filter(None, (self._totals(), self._speed(now))))
        if not self._terminal.live:
            self._write(f"{': '.join(filter(None, (self._trials_done(), parts)))}\n")
            return
        line = f"{self._trials_done()}  {parts}".rstrip()
        # A line as wide as the terminal would wrap. If room is short, the bar and the colours go.
        room, bar = self._terminal.width - 1, self._bar()
        line = bar + line if columns(bar + line) <= room else line
        shown = cut(line, room)
        self._write(self._coloured(shown) if shown == line else shown)
        self._drawn = True

    def _totals(self) -> str:
        """The counts and the cost so far."""
        parts = [f"{number:,} {outcome}" for outcome, number in self._counts.items() if number]
        if self._done_before:
            parts.append(f"{self._done_before:,} from before")
        if self._reasked:
            parts.append(f"{self._reasked:,} asked again")
        if self._cached:
            parts.append(f"{self._cached:,} cached")
        if self._cost:
            parts.append(money(self._cost))
        if self._pieces:
            pieces, machines = self._pieces.total(), len(self._pieces)
            parts.append(f"{count(pieces, 'piece')} on {count(machines, 'machine')}")
        return ", ".join(parts)

    def _speed(self, now: float) -> str:
        """The rate and the time left; how long it has been waiting while no answers arrive."""
        if now - self._last_trial_at >= WAITING:
            return f"waiting for {duration(1000 * (now - self._last_trial_at))}"
        finished, elapsed = self._finished(), self._elapsed(now)
        if not finished or not elapsed:
            return ""
        rate = finished / elapsed
        speed = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
        left = (self._planned or 0) - self._done_before - finished
        return f"{speed}, {duration(1000 * left / rate)} left" if left > 0 else speed

    def _trials_done(self) -> str:
        done = self._done_before + self._finished()
        if self._planned is None:
            return count(done, "trial")
        return f"{done:,} of {count(self._planned, 'trial')}"

    def _bar(self) -> str:
        if not self._planned:
            return ""
        full = min(_BAR * (self._done_before + self._finished()) // self._planned, _BAR)
        return f"[{'#' * full}{'-' * (_BAR - full)}] "

    def _coloured(self, line: str) -> str:
        for outcome, number in self._counts.items():
            if number:
                words = f"{number:,} {outcome}"
                line = line.replace(words, self._terminal.paint(words, _COLOURS[outcome]), 1)
        return line

    def _write(self, text: str) -> None:
        """Erase the line drawn last, and write."""
        text = (ERASE if self._drawn else "") + text
        self._drawn = False
        if self._out is None or not text:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):  # stderr was closed
            self._out = None
