"""`assay runs`: list, show, merge and remove recorded runs."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from assay.cli.completion import files
from assay.cli.json import echo_json
from assay.cli.report_output import print_report, store_option
from assay.errors import UsageError
from assay.model.json_encoding import as_dict
from assay.model.result import CaseResult, decode_case
from assay.model.run import MERGED_FROM
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult
from assay.reporters.terminal import Terminal, safe
from assay.service import history
from assay.service.groups import named_group, runs_of, show_group
from assay.service.merging import merge_runs
from assay.text import columns, count, cut, printable

#: The length of an id's timestamp prefix, to the millisecond; a shorter one may not be unique.
SHORT_ID = 13
_COUNTS = ("passed", "failed", "errored", "skipped")
_HEADS = ("Run", "Started (UTC)", "Result", "Baseline", "Group", "Target", "Suite")
#: The columns that are left out if no run has anything in them.
_SPARE = ("Baseline", "Group")


@click.group("runs")
def command() -> None:
    """List, show, merge and remove recorded runs.

    \b
    Examples:
      assay runs list
      assay runs show latest
      assay runs rm 0198c0de
    """


@command.command("list")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=history.LISTED,
    show_default=True,
    help="How many runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@store_option
def list_all(limit: int, as_json: bool, store: str | None) -> None:
    """List the newest runs, the newest first.

    \b
    Examples:
      assay runs list
      assay runs list --limit 100 --json
    """
    rows = [as_dict(run) for run in history.list_runs(limit, store=store)]
    if as_json:
        echo_json(rows)
        return
    if sys.stdout.isatty():
        lines = table(rows, Terminal.of(sys.stdout).width) if rows else []
    else:
        lines = [printable(_line(row)) for row in rows]
    for line in lines:
        click.echo(line)
    if not rows:
        click.echo("no run is recorded; `assay run` records one", err=True)


def _line(row: dict[str, Any]) -> str:
    names = f"  group {row['group']}" if row["group"] else ""
    names += f"  [{', '.join(row['baselines'])}]" if row["baselines"] else ""
    facts = (row["runId"], row["startedAt"], row["status"], row["target"] or "-", _files(row))
    return "  ".join((*facts, _counts(row))) + names


def table(rows: list[dict[str, Any]], width: int) -> list[str]:
    """The runs as a table that fits the width: short but unique ids, long cells truncated."""
    shared = Counter(row["runId"][:SHORT_ID] for row in rows)
    cells = [_HEADS, *(_cells(row, whole_id=shared[row["runId"][:SHORT_ID]] > 1) for row in rows)]
    for head in _SPARE:
        place = cells[0].index(head)
        if not any(line[place] for line in cells[1:]):
            cells = [line[:place] + line[place + 1 :] for line in cells]
    *fixed, target, suite = (max(map(columns, column)) for column in zip(*cells, strict=True))
    # The target and the suite share the remaining width.
    room = max(width - sum(fixed) - 2 * len(fixed) - 2, 0)
    target = min(target, max(room - suite, room // 2))
    return [_fit(line, (*fixed, target, suite), width) for line in cells]


def _cells(row: dict[str, Any], *, whole_id: bool) -> tuple[str, ...]:
    """The cells of a row. Runs that began in the same millisecond need whole ids."""
    counts, status = _counts(row), row["status"]
    result = counts if status == "finished" else f"{status}, {counts}"
    when = row["startedAt"][:16].replace("T", " ")
    names, target = safe(", ".join(row["baselines"])), safe(row["target"] or "-")
    name = row["runId"] if whole_id else row["runId"][:SHORT_ID]
    group = safe(row["group"] or "")[:SHORT_ID]
    return name, when, result, names, group, target, safe(_files(row))


def _fit(cells: tuple[str, ...], widths: tuple[int, ...], width: int) -> str:
    parts = [cut(cell, size) for cell, size in zip(cells, widths, strict=True)]
    padded = [part + " " * (size - columns(part)) for part, size in zip(parts, widths, strict=True)]
    return cut("  ".join(padded).rstrip(), width)


def _counts(row: dict[str, Any]) -> str:
    if row["totalCases"] is None:
        return "no counts yet"
    return ", ".join(f"{row[name]:,} {name}" for name in _COUNTS if row[name]) or "no cases"


def _files(row: dict[str, Any]) -> str:
    suites = row["suites"]
    return str(suites[0]) if len(suites) == 1 else f"{len(suites)} suites"


@command.command("show")
@click.argument("run", default="latest", metavar="[RUN|GROUP]")
@click.option("--json", "as_json", is_flag=True, help="Print the document of `run --json`.")
@click.option("--failed", is_flag=True, help="Only the cases that failed or errored.")
@store_option
def show(run: str, as_json: bool, failed: bool, store: str | None) -> None:
    """Show a run as it was reported when it ended.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default; or a group of
    runs, by its id. With --failed each case that failed or errored is one line.

    \b
    Examples:
      assay runs show
      assay runs show main --json
      assay runs show 0198c0de --failed
    """
    if (group := named_group(run, store=store)) is not None:
        if failed:
            raise UsageError(f"--failed is about one run, and {group.id} a group; {runs_of(group)}")
        print_report(show_group(group.id, store=store), sys.stdout, as_json=as_json)
        return
    found = history.show(run, store=store)
    if failed and not as_json:
        for suite in found.suites:
            for case in _only_unpassed(suite).cases:
                click.echo(printable(_case_line(suite, case)))
        return
    shown: RunResult = found  # the store stays open as long as `found` is referenced
    if failed:
        shown = replace(shown, suites=tuple(map(_only_unpassed, found.suites)))
    print_report(shown, sys.stdout, as_json=as_json)


def _only_unpassed(suite: EvalSuiteResult) -> EvalSuiteResult:
    """The suite with only the cases that failed or errored."""
    return replace(suite, entries=partial(_unpassed, suite.entries))


def _unpassed(entries: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    return (entry for entry in entries() if decode_case(entry).outcome in ("failed", "errored"))


def _case_line(suite: EvalSuiteResult, case: CaseResult) -> str:
    file, line = case.source
    place = f"{file}:{line}" if file else suite.file
    return f"{place}: {case.outcome}: {case.id}: {case.error or ''}".replace("\n", " ").rstrip()


@command.command("merge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN|FILE...", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print the run as in `runs list --json`.")
@store_option
def merge(runs: tuple[str, ...], as_json: bool, store: str | None) -> None:
    """Join the shards of one plan into one complete run.

    RUN is a run that was made with `--shard`: an id, the start of one, or `latest`. FILE is what
    `assay run --shard i/n -o FILE.json` wrote, perhaps on another machine. All shards of the same
    plan are needed. The merged run is new; the shards stay.

    \b
    Examples:
      assay runs merge shard-1.json shard-2.json shard-3.json
      assay runs merge 0198c0de 0198c0df
    """
    merged = merge_runs(runs, store=store)
    record, row = merged.record, as_dict(history.ListedRun.of(merged.record))
    if as_json:
        echo_json(row | {MERGED_FROM: record.merged_from})
        return
    shards = count(len(record.merged_from), "shard")
    click.echo(f"merged {shards} into {record.id}: {_counts(row)}")
    for note in merged.notes:
        click.echo(printable(f"note: {note}"))
    click.echo(printable(f"next: {_after_merge(record.id, merged.store.baselines())}"))


def _after_merge(run_id: str, baselines: Collection[str]) -> str:
    """The command to call next: compare it, or make it the first baseline."""
    if not baselines:
        return f"assay baseline set main {run_id}"
    name = "main" if "main" in baselines else min(baselines)
    return f"assay compare {shlex.quote(name)} {run_id}"


@command.command("rm")
@click.argument("runs", nargs=-1, required=True, metavar="RUN|GROUP...")
@store_option
def remove(runs: tuple[str, ...], store: str | None) -> None:
    """Remove runs and their result files, all of them or none.

    A GROUP is the whole id of a group: all of its runs are removed. A run that is a baseline is
    refused: remove its name first.

    \b
    Examples:
      assay runs rm 0198c0de
      assay baseline rm old && assay runs rm 0198c0de
    """
    for run_id in history.remove_runs(runs, store=store):
        click.echo(f"removed {run_id}")
