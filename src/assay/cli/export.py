"""`assay export`: the results or the observations of a recorded run, for other tools."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import IO

import click

from assay import history
from assay.cli.documents import report_to, store_option, writable, written
from assay.errors import printable
from assay.runs import Run

FORMATS = ("jsonl", "csv", "observations")


@click.command("export")
@click.argument("run", default="latest", metavar="[RUN]")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="Results as JSONL or CSV, or observations as lines of a replay file.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file in place of stdout.")
@store_option
def command(run: str, form: str, output: str | None, store: str | None) -> None:
    """Export the results or the observations of a recorded run.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default.
    Observations have one line a trial, repeats in order; `--target replay:FILE` grades them.

    \b
    Examples:
      assay export main > results.jsonl
      assay export latest --format csv -o results.csv
      assay export latest --format observations -o seen.jsonl
    """
    file = None if output is None else Path(output)
    if file is not None:
        writable(file)
    found = history.show(run, store=store)
    if file is None:
        _write(found, form, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        with written(file) as stream:
            _write(found, form, stream)
    if form == "observations":
        _warn_of_twins(found)


def _write(run: Run, form: str, out: IO[bytes]) -> None:
    if form != "observations":
        report_to(out, form, run)
        return
    for observation in run.observations():
        out.write(observation + b"\n")


def _warn_of_twins(run: Run) -> None:
    """Lines of a replay file belong to an id; two suites may have a case of the same."""
    if len(run.suites) < 2:
        return
    counts = Counter(hash(trial.case_id) for trial in run.store.facts(run.id) if not trial.repeat)
    if twins := sum(1 for count in counts.values() if count > 1):
        ids = "1 id is" if twins == 1 else f"{twins:,} ids are"
        click.echo(printable(f"{ids} in more than one suite: a replay mixes their lines"), err=True)
