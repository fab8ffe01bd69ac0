"""`assay run`: ask, grade, record, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import click

from assay.cli.completion import files
from assay.cli.execution import execute_run
from assay.cli.options import given, run_options
from assay.cli.report_output import ReportOutput, report_options, store_option
from assay.service.runs import RunRequest


@click.command("run")
@click.argument("paths", nargs=-1, metavar="PATH...", shell_complete=files)
@run_options("run")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Continue a run that did not finish.",
)
@click.option(
    "--rerun-failed", metavar="RUN", help="Ask again the cases that failed or errored in a run."
)
@click.option(
    "--watch", "watched", is_flag=True, help="Run again whenever eval files or sources change."
)
@report_options
@store_option
def command(
    paths: tuple[str, ...],
    resume: str | None,
    rerun_failed: str | None,
    watched: bool,
    output: tuple[str, ...],
    html_size: float,
    as_json: bool,
    detail: str | None,
    store: str | None,
    **options: Any,
) -> None:
    """Ask a target every case, grade what it did, record it, and compare it with a baseline.

    Every finished trial is on disk before it is reported. Ctrl-C lets trials in flight finish;
    --resume asks the rest. docs/runs.md explains options and exit codes.

    \b
    Examples:
      assay run evals/ --target python:my_agent:answer
      assay run evals/ --target http://localhost:8000/ask --baseline main
      assay run evals/ --target replay:seen.jsonl -o report.html -o junit.xml
      assay run evals/ --resume
      assay run evals/ --watch
    """
    if resume and Path(resume).exists():
        paths, resume = (resume, *paths), ""  # `--resume evals/` is a path, not a run
    if watched:
        _watch(paths, resume, rerun_failed, output, store, given(options))
    report_output = ReportOutput(output, html_size, as_json=as_json, detail=detail)
    request = RunRequest(paths, store=store, resume=resume, rerun_failed=rerun_failed)
    execute_run(request, given(options), report_output)


def _watch(
    paths: tuple[str, ...],
    resume: str | None,
    rerun_failed: str | None,
    output: tuple[str, ...],
    store: str | None,
    options: dict[str, Any],
) -> NoReturn:
    from assay.cli.watching import WatchedRun, watch, words_of  # few runs need it

    if resume is not None or rerun_failed is not None:
        earlier = "--resume" if resume is not None else "--rerun-failed"
        raise click.UsageError(f"--watch starts new runs: leave out {earlier}")
    if not paths:
        raise click.UsageError("--watch needs the paths of eval files, such as 'evals/'")
    words = words_of(click.get_current_context(), ("watched",))
    watch(WatchedRun(paths, options, tuple(words), store, output))
