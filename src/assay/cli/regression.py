"""`assay regression`: the ledger of bugs that must not come back."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from assay import service
from assay.errors import printable
from assay.settings import shown_path

_paths = click.argument("paths", nargs=-1, metavar="[PATH]...")


@click.group("regression")
def command() -> None:
    """Lock, archive and list regression cases.

    A regression case never changes. `lock` records a hash of each case in
    <tool>.regression.lock.json, which belongs in version control; `validate` compares.

    \b
    Examples:
      assay regression lock evals/
      assay regression archive rg-get_weather-001
      assay regression list --json
    """


@command.command("lock")
@_paths
def lock(paths: tuple[str, ...]) -> None:
    """Lock the cases that are not locked yet; refuses when a locked one was changed.

    \b
    Examples:
      assay regression lock
      assay regression lock evals/get_weather.regression.json
    """
    for file, added in service.lock_regressions(paths or (".",)).items():
        for identity in added:
            click.echo(printable(f"{file}: locked {identity}"))
        if not added:
            click.echo(f"{file}: nothing to lock")


@command.command("archive")
@click.argument("identity", metavar="ID")
@_paths
def archive(identity: str, paths: tuple[str, ...]) -> None:
    """Move a case that no longer applies to <tool>.regression.archive.json.

    \b
    Examples:
      assay regression archive rg-get_weather-001
      assay regression archive rg-get_weather-001 evals/
    """
    target = service.archive_regression(identity, paths or (".",))
    click.echo(f"moved {identity} to {shown_path(target)}")


@command.command("list")
@_paths
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_cases(paths: tuple[str, ...], as_json: bool) -> None:
    """List regression cases with their state: locked, unlocked, changed, gone, archived.

    \b
    Examples:
      assay regression list
      assay regression list evals/ --json
    """
    listed = service.list_regressions(paths or (".",))
    if as_json:
        rows = [
            {"file": file, **asdict(entry)} for file, found in listed.items() for entry in found
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for file, found in listed.items():
        click.echo(file)
        for entry in found:
            facts = "  ".join(
                part for part in (entry.created_at, entry.bug_ref, entry.description) if part
            )
            click.echo(printable(f"  {entry.id}  {entry.status}" + (f"  {facts}" if facts else "")))
