"""`assay init`: a small project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from assay.service.project import working_directory
from assay.service.scaffold import write_project
from assay.settings import shown_path


@click.command("init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a config, an example agent and a commented suite into FOLDER; never overwrites.

    \b
    Examples:
      assay init
      assay init my-agent
    """
    for file in write_project(working_directory() / folder):
        click.echo(f"wrote {shown_path(file)}")
    there = "" if shown_path(folder) == "." else f"cd {shown_path(folder)} && "
    click.echo(f"now try: {there}assay run evals/", err=True)
