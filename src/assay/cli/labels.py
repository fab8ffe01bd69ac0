"""`assay labels`: move human labels between the store and label files."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path

import click

from assay.cli.completion import files
from assay.cli.report_output import store_option
from assay.comparison.outcomes import find_run
from assay.errors import UsageError
from assay.service.answer_labels import Labelled, export_labels, import_labels
from assay.service.store import project_store
from assay.text import count

_run = click.option("--run", default="latest", show_default=True, help="The labelled run.")
_evaluator = click.option(
    "--evaluator", default="", metavar="NAME", help="The evaluator that the labels are about."
)


@click.group("labels")
def command() -> None:
    """Move human labels between the store and the label files of `assay calibrate`.

    \b
    Examples:
      assay labels export labels.csv --evaluator quality
      assay labels import labels.csv --author ann
    """


@command.command("export")
@click.argument("file", shell_complete=files)
@_run
@_evaluator
@store_option
def export(file: str, run: str, evaluator: str, store: str | None) -> None:
    """Add the labels of a run to a label file.

    FILE ends in .csv or .jsonl. Of several labels of a case the newest counts. Labels that the
    file already has are not added again.

    \b
    Examples:
      assay labels export labels.csv --run main --evaluator quality
    """
    with project_store(store) as opened:
        added = export_labels(opened, find_run(run, opened), Path(file), evaluator)
    click.echo(f"{count(added, 'label')} added to {file}")


@command.command("import")
@click.argument("file", shell_complete=files)
@_run
@_evaluator
@click.option("--author", help="Who gave the labels (default: your user name).")
@store_option
def import_file(file: str, run: str, evaluator: str, author: str | None, store: str | None) -> None:
    """Add the labels of a label file to a run in the store.

    Labels of other runs in the file are left out. A label that the author gave before is replaced.

    \b
    Examples:
      assay labels import labels.csv --run main --evaluator quality --author ann
    """
    given = Labelled(passed=False, author=author or getpass.getuser(), evaluator=evaluator)
    with project_store(store) as opened:
        record = find_run(run, opened)
        if not Path(file).exists():
            raise UsageError(f"{file} does not exist")
        added = import_labels(opened, record, Path(file), given, datetime.now(UTC))
    click.echo(f"{count(added, 'label')} added to the run {record.id}")
