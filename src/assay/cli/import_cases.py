"""`assay import`: import test cases from files into the store."""

from __future__ import annotations

import click

from assay.cli.completion import files
from assay.cli.problems import echo_problem
from assay.cli.report_output import store_option
from assay.service import test_cases

#: How many reasons are printed.
SHOWN = 100


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", shell_complete=files)
@click.option("--tag", multiple=True, metavar="TAG", help="A tag for all of them.")
@click.option(
    "--raw", is_flag=True, help="For CSV that was exported with --raw: keep leading apostrophes."
)
@store_option
def command(paths: tuple[str, ...], tag: tuple[str, ...], raw: bool, store: str | None) -> None:
    """Import test cases from files into the store.

    FILE is an eval file (YAML, JSONL, CSV, of Assay or of AgentV), a promptfoo config, samples of
    OpenAI's evals as JSONL, or what `assay export --test-cases` wrote. What a test case cannot
    express is refused with the reason, entry by entry, and the rest is imported. What was imported
    before is changed where it differs. The exit code is 1 when some entries were refused, and 2
    when nothing could be imported.

    \b
    Examples:
      assay import evals/weather.eval.yaml
      assay import promptfooconfig.yaml --tag promptfoo
      assay import samples.jsonl && assay run store: --target python:my_agent:answer
    """
    done = test_cases.import_test_cases(paths, tags=tag, store=store, raw=raw)
    for problem in done.problems[:SHOWN]:
        echo_problem(problem, err=True)
    if len(done.problems) > SHOWN:
        click.echo(f"... and {len(done.problems) - SHOWN:,} more", err=True)
    counts = f"{done.added:,} added, {done.changed:,} changed, {done.unchanged:,} as before"
    click.echo(f"test cases: {counts}, {done.refused:,} refused")
    raise SystemExit(1 if done.refused else 0)
