"""`assay compare`: what changed between two runs."""

from __future__ import annotations

import sys
from typing import Any, get_args

import click

from assay.cli.documents import store_option
from assay.cli.json import echo_json
from assay.model.comparison import CaseRef, Comparison
from assay.model.options import Gate, RunOptions
from assay.reporters.words import count
from assay.service import history
from assay.terminal import Terminal, safe, wrap

#: How many cases of each list are shown.
MAX_LISTED = 20
_TITLES = {
    "regressions": "passed before, fail now",
    "newPasses": "failed before, pass now",
    "added": "new",
    "removed": "gone",
    "notComparable": "changed since, so not compared",
    "unjudged": "errored in one of the runs, so not compared",
    "flaky": "passed and failed in one of the runs",
}
_OPTIONS = RunOptions.model_fields
_COLOURS = {"regressed": "red", "improved": "green", "unchanged": "green"}


@click.command("compare")
@click.argument("base")
@click.argument("candidate")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--gate",
    type=click.Choice(get_args(Gate)),
    default=_OPTIONS["gate"].default,
    show_default=True,
    help="What fails the comparison.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=_OPTIONS["margin"].default,
    show_default=True,
    help=_OPTIONS["margin"].description,
)
@click.option("--strict", is_flag=True, help="Exit with 4 when nothing can be decided.")
@store_option
def command(
    base: str,
    candidate: str,
    as_json: bool,
    gate: Gate,
    margin: float,
    strict: bool,
    store: str | None,
) -> None:
    """Show what changed between two runs, and whether it could be chance.

    BASE and CANDIDATE are runs: an id, the start of one, the name of a baseline, `latest`, or a
    file of results: of Assay, AgentV (.jsonl) or promptfoo (.json). Exits 0, or 1 when the gate
    fails.

    \b
    Examples:
      assay compare main latest
      assay compare 0198c0de latest --gate strict
      assay compare old.jsonl new.jsonl --json
    """
    found = history.compare(base, candidate, gate=gate, margin=margin, strict=strict, store=store)
    if as_json:
        echo_json(found.to_dict())
    else:
        _print(found, base, candidate)
    raise SystemExit(found.exit_code)


def _print(found: Comparison, base: str, candidate: str) -> None:
    for role, reference, name in (("base", base, found.base), ("now", candidate, found.candidate)):
        known = "" if reference == name else f" ({name})"
        click.echo(safe(f"{role:5} {reference}{known}"))
    for name, title in _TITLES.items():
        _print_list(title, found.lists[name])
    for score in found.scores:
        click.echo("\n" + safe(_score_line(score)))
    click.echo()
    for note in found.notes:
        click.echo(safe(f"note: {note}"))
    word = found.decision.replace("_", " ")
    click.echo(click.style(word, fg=_COLOURS.get(found.decision, "yellow"), bold=True), nl=False)
    click.echo(f": {_numbers(found)}" if found.pairs else "")
    for line in wrap(safe(found.explanation), Terminal.of(sys.stdout).width):
        click.echo(line)
    _print_gate(found)


def _print_list(title: str, refs: tuple[CaseRef, ...]) -> None:
    if not refs:
        return
    click.echo(f"\n{title} ({len(refs):,})")
    for ref in refs[:MAX_LISTED]:
        click.echo(safe(f"  {ref}"))
    if len(refs) > MAX_LISTED:
        click.echo(f"  ... {len(refs) - MAX_LISTED:,} more; --json names all")


def _numbers(found: Comparison) -> str:
    cases = f"{count(found.pairs, 'case')} compared"
    if found.difference is None or found.test is None:
        return cases
    low, middle, high = (100 * found.difference[name] for name in ("low", "estimate", "high"))
    return (
        f"{cases}, pass rate {middle:+.1f} points ({low:+.1f} to {high:+.1f}), "
        f"p = {found.test['pValue']:.2g}"
    )


def _score_line(score: dict[str, Any]) -> str:
    suite = f" of {score['suite']}" if score["suite"] else ""
    difference, test = score["difference"], score["test"]
    ends = [difference["low"], difference["high"]]
    spread = "" if None in ends else f" ({ends[0]:+.3f} to {ends[1]:+.3f})"
    change = f"{difference['estimate']:+.3f}{spread}"
    return (
        f"mean score{suite}: {change}, p = {test['adjusted']:.2g}; it does not affect the decision"
    )


def _print_gate(found: Comparison) -> None:
    if not found.gate_failures:
        click.echo(f"gate {found.gate}: passed")
        return
    click.echo(f"gate {found.gate}: " + click.style("failed", fg="red", bold=True))
    for reason in found.gate_failures:
        click.echo(safe(f"  {reason}"))
