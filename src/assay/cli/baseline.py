"""`assay baseline`: named runs to compare others with."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.documents import store_option
from assay.cli.json import echo_json
from assay.errors import printable
from assay.model.run import RunRecord
from assay.service import history

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("baseline")
def command() -> None:
    """Give runs names to compare others with.

    \b
    Examples:
      assay baseline set main
      assay baseline list
      assay compare main latest
    """


@command.command("set")
@click.argument("name")
@click.argument("run", default="latest", metavar="[RUN]")
@store_option
def set_name(name: str, run: str, store: str | None) -> None:
    """Give a run a name, taking it from the run that had it.

    RUN is an id, the start of one, another baseline, or `latest`, the default.

    \b
    Examples:
      assay baseline set main
      assay baseline set release-2 0198c0de
    """
    record = history.set_baseline(name, run, store=store)
    unfinished = "" if record.status == "finished" else f", which is {record.status}"
    click.echo(printable(f"{name} is now {record.id}{unfinished}"))


@command.command("show")
@click.argument("name")
@_as_json
@store_option
def show(name: str, as_json: bool, store: str | None) -> None:
    """Show the run that has a name.

    \b
    Examples:
      assay baseline show main
      assay baseline show main --json
    """
    row = _row(name, history.baseline(name, store=store))
    if as_json:
        echo_json(row)
        return
    for key, value in row.items():
        if value is not None:
            click.echo(printable(f"{key:11} {_text(value)}"))


@command.command("list")
@_as_json
@store_option
def list_all(as_json: bool, store: str | None) -> None:
    """List the names and their runs.

    \b
    Examples:
      assay baseline list
      assay baseline list --json
    """
    rows = [_row(name, run) for name, run in history.baselines(store=store).items()]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        facts = (row[key] for key in ("name", "runId", "startedAt", "target"))
        click.echo(printable("  ".join(map(str, facts))))
    if not rows:
        click.echo("there is no baseline; `assay baseline set NAME` makes one", err=True)


@command.command("rm")
@click.argument("name")
@store_option
def remove(name: str, store: str | None) -> None:
    """Forget a name; its run stays.

    \b
    Examples:
      assay baseline rm release-2
    """
    history.remove_baseline(name, store=store)
    click.echo(printable(f"{name} is no longer a baseline; its run is still there"))


def _row(name: str, run: RunRecord) -> dict[str, Any]:
    return {
        "name": name,
        "runId": run.id,
        "startedAt": run.started_at,
        "finishedAt": run.finished_at,
        "status": run.status,
        "target": run.target,
        "suites": [suite.file for suite in run.suites],
        "summary": run.counts,
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items() if isinstance(v, (int, float)))
    return ", ".join(value) if isinstance(value, list) else str(value)
