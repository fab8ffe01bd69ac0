"""`assay run`: ask, grade, record, compare."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from assay import running
from assay.blocking import wait_for
from assay.cli.documents import Documents
from assay.cli.options import given, run_options
from assay.cli.progress import Progress
from assay.engine.runner import Brake


@click.command("run")
@click.argument("paths", nargs=-1, metavar="PATH...")
@run_options()
@click.option("--resume", is_flag=False, flag_value="", metavar="[RUN]", help="Go on with a run.")
@click.option("--rerun-failed", metavar="RUN", help="Ask again what failed or errored in a run.")
@click.option("-o", "--output", multiple=True, metavar="FILE", help="Write a report, by suffix.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--store", metavar="URL", help="Where runs are recorded.")
def command(
    paths: tuple[str, ...],
    resume: str | None,
    rerun_failed: str | None,
    output: tuple[str, ...],
    as_json: bool,
    store: str | None,
    **options: Any,
) -> None:
    """Ask a target every case, grade what it did, record it, and compare it with a baseline.

    Every finished trial is on disk before it is told. Ctrl-C lets trials in flight finish;
    --resume goes on with what is left. docs/runs.md explains options and exit codes.

    \b
    Examples:
      assay run evals/ --target python:my_agent:answer
      assay run evals/ --target http://localhost:8000/ask --baseline main
      assay run evals/ --target replay:seen.jsonl -o report.md -o junit.xml
      assay run evals/ --resume
    """
    if resume and Path(resume).exists():
        paths, resume = (resume, *paths), ""  # `--resume evals/` names no run
    documents = Documents(output, as_json=as_json)
    brake = Brake()
    with _braking(brake), closing(Progress(sys.stderr)) as progress:
        order = running.Order(
            paths,
            store=store,
            resume=resume,
            rerun_failed=rerun_failed,
            door=running.Door(progress, brake),
        )
        result = wait_for(lambda: running.carry_out(order, given(options)))
    documents.write(result)
    raise SystemExit(result.exit_code)


@contextmanager
def _braking(brake: Brake) -> Iterator[None]:
    """Signals press the brake: the first gently, the second at once."""

    def press(number: int, frame: FrameType | None) -> None:
        brake.press()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, press) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
