"""How far a run is: one line that is drawn anew on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from assay.model.events import Event, Notice, RunFinished, RunStarted, TrialFinished
from assay.reporters.words import count, duration, money
from assay.terminal import Terminal, columns, cut, safe

#: Seconds between two drawings on a terminal, and between two lines elsewhere.
REDRAW, PLAIN = 0.1, 5.0
#: After so many seconds without a finished trial it says how long it has waited.
WAITING = 3.0

_BAR = 20
_COLOURS = {"passed": "green", "failed": "red", "errored": "yellow", "skipped": "dim"}
_ERASE = "\r\x1b[K"


class Progress:
    """Listens to a run. When the stream is closed it falls silent; a run goes on without it."""

    def __init__(self, out: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._terminal = Terminal() if out is None or out.closed else Terminal.of(out)
        self._pause = REDRAW if self._terminal.live else PLAIN
        self._counts = dict.fromkeys(_COLOURS, 0)
        self._planned: int | None = None
        self._before = 0
        self._cost, self._cached = 0.0, 0
        self._drawn = self._goes_on = False
        self._began = self._heard = clock()
        self._due = self._began + self._pause

    def __call__(self, event: Event) -> None:
        if type(event) is TrialFinished:  # first, as there may be a million of them
            self._counts[event.outcome] += 1
            if event.cached:
                self._cached += 1
            elif event.cost_usd is not None:
                self._cost += event.cost_usd
            now = self._heard = self._clock()
            if now >= self._due:
                self._show(now)
        else:
            self._other(event)

    def tick(self) -> None:
        """Show that time passes while nothing comes; to be called again and again."""
        now = self._clock()
        if self._goes_on and now >= self._due:
            self._show(now)

    def close(self) -> None:
        """Leave the line as if nothing had been drawn; for a run that ended without saying so."""
        self._write("")

    def _other(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._planned, self._before = event.planned, event.done
            self._began = self._heard = self._clock()
            self._due = self._began + self._pause
            self._goes_on = True
            if self._terminal.live:  # the first answer may take long, and nothing looks like a hang
                self._show(self._began)
        elif isinstance(event, Notice):
            self._write(f"{self._terminal.fit(safe(event.text))}\n")
            if self._terminal.live:
                self._show(self._clock())
        elif isinstance(event, RunFinished):
            self._goes_on = False
            ended = f"{event.status} after {duration(1000 * self._elapsed(self._clock()))}"
            self._write(": ".join(filter(None, (f"{self._done()}, {ended}", self._parts()))) + "\n")

    def _elapsed(self, now: float) -> float:
        return max(now - self._began, 0.0)

    def _finished(self) -> int:
        return sum(self._counts.values())

    def _show(self, now: float) -> None:
        self._due = now + self._pause
        parts = ", ".join(filter(None, (self._parts(), self._speed(now))))
        if not self._terminal.live:
            self._write(f"{': '.join(filter(None, (self._done(), parts)))}\n")
            return
        line = f"{self._done()}  {parts}".rstrip()
        # A line as wide as the terminal would wrap. Numbers come before the bar and the colours.
        room, bar = self._terminal.width - 1, self._bar()
        line = bar + line if columns(bar + line) <= room else line
        shown = cut(line, room)
        self._write(self._painted(shown) if shown == line else shown)
        self._drawn = True

    def _parts(self) -> str:
        """What there is to say at any time."""
        parts = [f"{number:,} {outcome}" for outcome, number in self._counts.items() if number]
        if self._before:
            parts.append(f"{self._before:,} from before")
        if self._cached:
            parts.append(f"{self._cached:,} cached")
        if self._cost:
            parts.append(money(self._cost))
        return ", ".join(parts)

    def _speed(self, now: float) -> str:
        """How fast it goes and how long it still takes; unknown while no answers come."""
        if now - self._heard >= WAITING:
            return f"waiting for {duration(1000 * (now - self._heard))}"
        finished, elapsed = self._finished(), self._elapsed(now)
        if not finished or not elapsed:
            return ""
        rate = finished / elapsed
        speed = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
        left = (self._planned or 0) - self._before - finished
        return f"{speed}, {duration(1000 * left / rate)} left" if left > 0 else speed

    def _done(self) -> str:
        done = self._before + self._finished()
        if self._planned is None:
            return count(done, "trial")
        return f"{done:,} of {count(self._planned, 'trial')}"

    def _bar(self) -> str:
        if not self._planned:
            return ""
        full = min(_BAR * (self._before + self._finished()) // self._planned, _BAR)
        return f"[{'#' * full}{'-' * (_BAR - full)}] "

    def _painted(self, line: str) -> str:
        for outcome, number in self._counts.items():
            if number:
                words = f"{number:,} {outcome}"
                line = line.replace(words, self._terminal.paint(words, _COLOURS[outcome]), 1)
        return line

    def _write(self, text: str) -> None:
        """Erase the line that is drawn anew, and write."""
        text = (_ERASE if self._drawn else "") + text
        self._drawn = False
        if self._out is None or not text:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):  # stderr was closed: nobody looks, and the run goes on
            self._out = None
