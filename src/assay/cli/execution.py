"""Executes a run for a command: shows progress, stops on signals, writes reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, NoReturn

from msgspec.structs import replace

from assay.blocking import wait_for
from assay.cli import streams
from assay.cli.report_output import ReportOutput
from assay.engine.cancellation import Cancellation
from assay.reporters.progress import Progress
from assay.service import matrix, runs
from assay.service.run_group import RunGroup


def execute_run(
    request: runs.RunRequest, options: dict[str, Any], report_output: ReportOutput
) -> NoReturn:
    """Run, report, and exit with the code of the run."""
    cancellation = Cancellation()
    with (
        signals_to(cancellation),
        closing(Progress(sys.stderr, quiet=report_output.quiet)) as progress,
        streams.stdout_redirected(),
    ):
        formats = report_output.formats
        hooks = runs.RunHooks(progress, cancellation, reports=True, formats=formats)
        request = replace(request, hooks=hooks)
        result = wait_for(lambda: progress.shown_while(matrix.execute(request, options)))
    report_output.write(result)
    for run in result.runs if isinstance(result, RunGroup) else (result,):
        runs.confirm_reports(run)
    raise SystemExit(result.exit_code)


@contextmanager
def signals_to(cancellation: Cancellation) -> Iterator[None]:
    """SIGINT and SIGTERM cancel: the first lets trials finish, the second cancels them too.

    A third interrupts the event loop too: an evaluator of the project may block it.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not cancellation.is_observed or cancellation.requests > 1:
            raise KeyboardInterrupt
        cancellation.request()

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
