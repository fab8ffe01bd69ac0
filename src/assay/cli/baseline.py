"""`assay baseline`: named runs to compare others with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.errors import MAX_REASONS, BaselineRefused
from assay.service import baselines
from assay.service.baselines import Baseline
from assay.text import printable

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("baseline")
def command() -> None:
    """Give runs names to compare others with.

    \b
    Examples:
      assay baseline set main
      assay baseline update main
      assay baseline list
      assay compare main latest
    """


@command.command("set")
@click.argument("name")
@click.argument("run", default="latest", metavar="[RUN]")
@click.option("--accept", is_flag=True, help="Set it anyway, and restart the history of the name.")
@store_option
def set_name(name: str, run: str, accept: bool, store: str | None) -> None:
    """Give a run a name, taking it from the run that had it.

    RUN is an id, the start of one, another baseline, or `latest`, the default. A run that is
    partial, or that lost cases which passed in the baseline, is refused with exit code 1.

    \b
    Examples:
      assay baseline set main
      assay baseline set release-2 0198c0de
      assay baseline set main --accept
    """
    try:
        record = baselines.set_baseline(name, run, accept=accept, store=store)
    except BaselineRefused as error:
        _print_reasons(f"{error.head}:", error.reasons)
        click.echo(
            "to set it anyway, give --accept; this restarts the history of the name", err=True
        )
        raise SystemExit(error.exit_code) from None
    partial = f"; {record.partial}" if record.partial else ""
    click.echo(printable(f"{name} is now {record.id}{partial}"))


@command.command("update")
@click.argument("name")
@click.argument("run", default="latest", metavar="[RUN]")
@click.option("--strict", is_flag=True, help="Exit with 1 if the baseline does not move.")
@store_option
def update(name: str, run: str, strict: bool, store: str | None) -> None:
    """Move a baseline to a run, unless that is a step back. For CI, after a merge.

    The name is created if it does not exist. It moves to a complete run that has every case of
    the baseline that still exists, and whose verdict against the baseline is `passed`. Otherwise
    it stays, and the reasons are printed.

    \b
    Examples:
      assay baseline update main
      assay baseline update main 0198c0de --strict
    """
    found = baselines.update_baseline(name, run, store=store)
    if found.moved and found.run is not None:
        click.echo(printable(f"{name} is now {found.run.id}"))
        return
    stays = "is not created" if found.run is None else f"stays {found.run.id}"
    _print_reasons(f"{name} {stays}:", found.reasons)
    raise SystemExit(1 if strict else 0)


def _print_reasons(head: str, reasons: Sequence[str]) -> None:
    click.echo(printable(head), err=True)
    for reason in reasons[:MAX_REASONS]:
        click.echo(printable(f"  - {reason}"), err=True)
    if len(reasons) > MAX_REASONS:
        more = f"  and {len(reasons) - MAX_REASONS:,} more; `assay compare --json` lists them all"
        click.echo(more, err=True)


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
    row = _row(baselines.baseline(name, store=store))
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
    rows = [_row(found) for found in baselines.baselines(store=store)]
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
    """Forget a name and its history; the runs stay.

    \b
    Examples:
      assay baseline rm release-2
    """
    baselines.remove_baseline(name, store=store)
    click.echo(printable(f"{name} is no longer a baseline; its run is still there"))


def _row(found: Baseline) -> dict[str, Any]:
    run = found.run
    return {
        "name": found.name,
        "runId": run.id,
        "startedAt": run.started_at,
        "finishedAt": run.finished_at,
        "status": run.status,
        "target": run.target,
        "suites": [suite.file for suite in run.suites],
        "partial": run.partial or None,
        "history": list(found.history),
        "summary": run.counts,
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items() if isinstance(v, (int, float)))
    return ", ".join(value) if isinstance(value, list) else str(value)
