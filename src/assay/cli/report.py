"""`assay report`: a recorded run or group in any report format."""

from __future__ import annotations

import click

from assay.cli.report_output import ReportOutput, output_options, store_option
from assay.service import history
from assay.service.groups import named_group, show_group


@click.command("report")
@click.argument("run", default="latest", metavar="[RUN|GROUP]")
@output_options(required=True)
@store_option
def command(run: str, output: tuple[str, ...], html_size: float, store: str | None) -> None:
    """Write reports of a recorded run or group, as `assay run -o` does.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default. GROUP is the
    id of the runs of several targets, or the start of it.

    \b
    Examples:
      assay report -o report.html
      assay report main -o junit.xml -o results.csv
    """
    group = named_group(run, store=store)
    files = ReportOutput(output, html_size, for_group=group is not None)
    if group is None:
        files.write_files(history.show(run, store=store))
    else:
        files.write_files(show_group(group.id, store=store))
