"""Executes a run for a command: shows progress, stops on signals, writes reports."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, NoReturn

from msgspec.structs import replace

from assay.blocking import wait_for
from assay.cli import streams
from assay.cli.documents import Documents
from assay.cli.progress import Progress
from assay.engine.brake import Brake
from assay.service import runs
from assay.service.result import Run

#: The time between two updates of the progress while no event arrives.
TICK_SECONDS = 1.0


def follow(order: runs.Order, options: dict[str, Any], documents: Documents) -> NoReturn:
    """Run, report, and exit with the code of the run."""
    brake = Brake()
    with (
        _signals_to(brake),
        closing(Progress(sys.stderr, quiet=documents.quiet)) as progress,
        streams.stdout_redirected(),
    ):
        order = replace(order, door=runs.Door(progress, brake, reports=True))
        result = wait_for(lambda: _with_ticks(progress, runs.carry_out(order, options)))
    documents.write(result)
    runs.confirm_reports(result)
    raise SystemExit(result.exit_code)


async def _with_ticks(progress: Progress, work: Awaitable[Run]) -> Run:
    """Await the run, and update the progress meanwhile."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            progress.tick()

    ticking = asyncio.create_task(tick())
    try:
        return await work
    finally:
        ticking.cancel()


@contextmanager
def _signals_to(brake: Brake) -> Iterator[None]:
    """SIGINT and SIGTERM press the brake: the first lets trials finish, the second cancels them.

    A third interrupts the event loop too: an evaluator of the project may block it.
    """

    def press(number: int, frame: FrameType | None) -> None:
        if not brake.is_heeded or brake.presses > 1:
            raise KeyboardInterrupt
        brake.press()

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, press) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
