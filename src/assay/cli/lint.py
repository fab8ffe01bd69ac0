"""`assay lint`: find weak cases in files that load."""

from __future__ import annotations

import click

from assay.cli.problems import paths_argument, report, report_options
from assay.service import eval_files


@click.command("lint")
@paths_argument
@report_options
def command(paths: tuple[str, ...], as_json: bool, strict: bool) -> None:
    """Find weak cases in files that load.

    Reports what `validate` reports, and warns about cases that cannot fail, ask the same
    twice, or would pass for the wrong reason. Exits 0, with --strict 2 when it warns.

    \b
    Examples:
      assay lint evals/
      assay lint get_weather.golden.json --strict
    """
    report(eval_files.lint, paths, as_json, strict)
