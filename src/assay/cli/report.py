"""`assay report`: a recorded run in any report format."""

from __future__ import annotations

import click

from assay.cli.report_output import ReportOutput, output_options, store_option
from assay.service import history


@click.command("report")
@click.argument("run", default="latest", metavar="[RUN]")
@output_options(required=True)
@store_option
def command(run: str, output: tuple[str, ...], html_size: float, store: str | None) -> None:
    """Write reports of a recorded run, as `assay run -o` does.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default.

    \b
    Examples:
      assay report -o report.html
      assay report main -o junit.xml -o results.csv
    """
    ReportOutput(output, html_size).write_files(history.show(run, store=store))
