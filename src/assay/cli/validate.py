"""`assay validate`: report every problem of every eval file."""

from __future__ import annotations

import click

from assay.cli.problems import paths_argument, report, report_options
from assay.service import eval_files


@click.command("validate")
@paths_argument
@report_options
def command(paths: tuple[str, ...], as_json: bool, strict: bool) -> None:
    """Check eval files and directories, and report every problem at once.

    Each line is `file:line:column: error[slug]: message`; docs/errors.md explains the
    slugs. Exits 0 when everything loads, 2 when something does not.

    \b
    Examples:
      assay validate evals/
      assay validate weather.eval.yaml get_weather.golden.json
      assay validate evals/ --json --strict
    """
    report(eval_files.validate, paths, as_json, strict)
