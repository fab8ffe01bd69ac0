"""`assay doctor`: check that everything a run needs is there."""

from __future__ import annotations

import click

from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.service import doctor
from assay.text import printable

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--target", metavar="TARGET", help="Check this target, in place of all of them.")
@click.option(
    "--executor",
    metavar="NAME",
    help="Check the workers of this executor, such as dask://HOST:PORT.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_option
def command(target: str | None, executor: str | None, as_json: bool, store: str | None) -> None:
    """Check that everything a run needs is there, and say what to do about the rest.

    The configuration, targets, the judge, the store, a cluster, the seed manifest, the registry
    of tools, the project and git. No target is asked anything; it is only checked whether its
    server accepts a connection. Exits with 2 when something is set up wrong, and with 3 when
    something cannot be reached.

    \b
    Examples:
      assay doctor
      assay doctor --target openai:gpt-6-sol
      assay doctor --executor dask://scheduler:8786
    """
    found = doctor.examine(target, store=store, executor=executor)
    code = doctor.exit_code(found)
    if as_json:
        document = {"checks": [finding.to_dict() for finding in found], "exitCode": code}
        echo_json(document)
        raise SystemExit(code)
    for finding in found:
        state = click.style(f"{finding.state:8}", fg=_COLOURS[finding.state], bold=True)
        click.echo(state + printable(f" {finding.area} {finding.name}: {finding.message}"))
        if finding.fix and finding.state != "ok":
            click.echo(printable(f"         {finding.fix}"))
    raise SystemExit(code)
