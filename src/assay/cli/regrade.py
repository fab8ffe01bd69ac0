"""`assay regrade`: grade the observations of a recorded run with today's evaluators."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.completion import files
from assay.cli.execution import execute_run
from assay.cli.options import given, run_options
from assay.cli.report_output import ReportOutput, report_options, store_option
from assay.service.runs import RunRequest


@click.command("regrade")
@click.argument("run")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@run_options("regrade")
@report_options
@store_option
def command(
    run: str,
    paths: tuple[str, ...],
    output: tuple[str, ...],
    html_size: float,
    as_json: bool,
    detail: str | None,
    store: str | None,
    **options: Any,
) -> None:
    """Grade the observations of a recorded run again, with today's evaluators: a new run.

    RUN is an id, the start of one, the name of a baseline, or `latest`. PATHs are those of
    the run when left out. Nobody but judges is asked. What the run does not have is not
    graded. Secrets are taken out of what is recorded; the report says when that was graded.

    \b
    Examples:
      assay regrade latest
      assay regrade main evals/ --judge openai:gpt-6-sol --baseline main
    """
    report_output = ReportOutput(output, html_size, as_json=as_json, detail=detail)
    execute_run(RunRequest(paths, store=store, regrade=run), given(options), report_output)
