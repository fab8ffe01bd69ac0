"""Carries out what a command ordered: draws the progress, brakes on signals, writes reports."""

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

#: How often the progress is looked at while nothing comes.
TICK_SECONDS = 1.0


def follow(order: runs.Order, options: dict[str, Any], documents: Documents) -> NoReturn:
    """Run, report, and exit with the code of the run."""
    brake = Brake()
    with _braking(brake), closing(Progress(sys.stderr)) as progress, streams.kept_clean():
        order = replace(order, door=runs.Door(progress, brake))
        result = wait_for(lambda: _ticking(progress, runs.carry_out(order, options)))
    documents.write(result)
    raise SystemExit(result.exit_code)


async def _ticking(progress: Progress, work: Awaitable[Run]) -> Run:
    """The run, beside which time passes."""

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
def _braking(brake: Brake) -> Iterator[None]:
    """Signals press the brake: the first gently, the second at once.

    The loop cannot heed it while an evaluator of the project hangs; a third one ends that too.
    """

    def press(number: int, frame: FrameType | None) -> None:
        if not brake.is_heeded or brake.presses > 1:
            raise KeyboardInterrupt
        brake.press()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, press) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
