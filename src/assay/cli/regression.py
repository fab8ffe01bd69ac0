"""`assay regression`: the ledger of bugs that must not come back."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import asdict

from assay.cli.completion import files
from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.service import bug_reports, regressions
from assay.settings import shown_path
from assay.text import printable

_paths = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)


@click.group("regression")
def command() -> None:
    """Add, lock, archive and list regression cases.

    A regression case never changes. `lock` records a hash of each case in
    <tool>.regression.lock.json, which belongs in version control; `validate` compares.

    \b
    Examples:
      assay regression add --from latest/oslo --bug WX-212
      assay regression lock evals/
      assay regression archive rg-get_weather-001
      assay regression list --json
    """


@command.command("add", short_help="Turn a failed result into a regression case.")
@click.option("--from", "source", required=True, metavar="RUN/CASE", help="The failed result.")
@click.option("--bug", "bug_ref", required=True, metavar="REF", help="The issue, or the fix.")
@click.option("--description", default="", metavar="TEXT", help="What the bug was.")
@click.option("--tool", default="", metavar="NAME", help="The tool that it is about.")
@click.option(
    "--file",
    default="",
    metavar="FILE",
    shell_complete=files,
    help="The regression file to add to.",
)
@click.option("--contains", multiple=True, metavar="TEXT", help="What the answer must contain.")
@click.option(
    "--tool-called", "tools_called", multiple=True, metavar="NAME", help="A tool to be called."
)
@click.option(
    "--param", "params", multiple=True, metavar="TOOL.PATH=VALUE", help="An argument of a call."
)
@click.option("--force", is_flag=True, help="Even when it passed, or its file has changed.")
@store_option
def add(store: str | None, **report: Any) -> None:
    """Turn a recorded result that failed into a regression case, and lock it.

    RUN is an id, the start of one, the name of a baseline, or `latest`. CASE is the id of a
    case; SUITE:ID when more than one suite has it. The new case takes over the prompt, the
    `expect` block, and the other checks that failed: texts, and calls with their arguments.
    --contains, --param and --tool-called add to these. A case that would pass on the recorded
    answer is refused: it would not have caught the bug. It goes to <tool>.regression.json
    beside the eval file, with the next number and today's date.

    \b
    Examples:
      assay regression add --from latest/gs-get_weather-003 --bug WX-212
      assay regression add --from latest/refund-7 --bug PAY-9 --param refund.amount=42.5
      assay regression add --from main/oslo --bug 4f2a1c9 --tool get_weather --contains -4
    """
    file, identity = bug_reports.regression_from_run(bug_reports.BugReport(**report), store=store)
    click.echo(printable(f"{shown_path(file)}: added and locked {identity}"))


@command.command("lock", short_help="Lock the cases that are not locked yet.")
@_paths
def lock(paths: tuple[str, ...]) -> None:
    """Lock the cases that are not locked yet; refuses when a locked one was changed.

    \b
    Examples:
      assay regression lock
      assay regression lock evals/get_weather.regression.json
    """
    for file, added in regressions.lock(paths or (".",)).items():
        for identity in added:
            click.echo(printable(f"{file}: locked {identity}"))
        if not added:
            click.echo(f"{file}: nothing to lock")


@command.command("archive", short_help="Archive a case that no longer applies.")
@click.argument("identity", metavar="ID")
@_paths
def archive(identity: str, paths: tuple[str, ...]) -> None:
    """Move a case that no longer applies to <tool>.regression.archive.json.

    \b
    Examples:
      assay regression archive rg-get_weather-001
      assay regression archive rg-get_weather-001 evals/
    """
    target = regressions.archive(identity, paths or (".",))
    click.echo(f"moved {identity} to {shown_path(target)}")


@command.command("list", short_help="List the cases with their state.")
@_paths
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_cases(paths: tuple[str, ...], as_json: bool) -> None:
    """List regression cases with their state: locked, unlocked, changed, gone, archived.

    \b
    Examples:
      assay regression list
      assay regression list evals/ --json
    """
    listed = regressions.entries(paths or (".",))
    if as_json:
        rows = [
            {"file": file, **asdict(entry)} for file, found in listed.items() for entry in found
        ]
        echo_json(rows)
        return
    for file, found in listed.items():
        click.echo(file)
        for entry in found:
            facts = "  ".join(
                part for part in (entry.created_at, entry.bug_ref, entry.description) if part
            )
            click.echo(printable(f"  {entry.id}  {entry.status}" + (f"  {facts}" if facts else "")))
