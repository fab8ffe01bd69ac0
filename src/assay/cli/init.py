"""`assay init`: a small project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from assay.service.project import working_directory
from assay.service.scaffold import write_project
from assay.settings import shown_path


@click.command("init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--pytest", "with_pytest", is_flag=True, help="Write tests for pytest too.")
def command(folder: Path, with_pytest: bool) -> None:
    """Write a config, an example agent and a commented suite into FOLDER; never overwrites.

    \b
    Examples:
      assay init
      assay init my-agent
      assay init my-agent --pytest
    """
    written = write_project(working_directory() / folder, pytest=with_pytest)
    for file in written:
        click.echo(f"wrote {shown_path(file)}")
    there = "" if shown_path(folder) == "." else f"cd {shown_path(folder)} && "
    configured = any(file.name == "pytest.ini" for file in written)
    tests = "pytest" if configured else "pytest --assay"
    click.echo(f"now try: {there}{tests if with_pytest else 'assay run evals/'}", err=True)
