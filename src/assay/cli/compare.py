"""`assay compare`: what changed between two runs, or which target of a group is best."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import click

from assay.cli.compare_groups import (
    Comparing,
    compare_same_targets,
    compare_targets,
    groups_of,
)
from assay.cli.json import echo_json
from assay.cli.preference import preference_options, preferred, request_of
from assay.cli.report_output import ReportOutput, output_options, store_option
from assay.model.comparison import CaseRef, Comparison
from assay.model.options import Gate, RunOptions
from assay.reporters.comparison_words import rate_change, score_change
from assay.reporters.page import Page
from assay.reporters.preference import write_preference
from assay.reporters.terminal import safe
from assay.reporters.text import answers as print_answers
from assay.reporters.words import accepted, moved
from assay.service import history
from assay.service.answers import ChangedAnswer, changed_answers
from assay.service.comparisons import compared_run

#: How many cases of each list are shown.
MAX_LISTED = 20
_TITLES = {
    "newPasses": "failed before, pass now",
    "added": "new",
    "removed": "gone",
    "notComparable": "changed since, so not compared",
    "unjudged": "errored in one of the runs, so not compared",
    "flaky": "passed and failed in one of the runs",
}
NO_ANSWERS: Mapping[CaseRef, ChangedAnswer] = {}
_OPTIONS = RunOptions.model_fields
_COLOURS = {"failed": "red", "passed": "green", "inconclusive": "yellow"}


@click.command("compare")
@click.argument("base", metavar="BASE|GROUP")
@click.argument("candidate", required=False, metavar="[CANDIDATE|GROUP]")
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
@click.option(
    "--answers", is_flag=True, help="Show the old and the new answer of each changed case."
)
@click.option("--pairs", is_flag=True, help="Show all pairs of the targets of a group.")
@click.option("--strict", is_flag=True, help="Exit with 4 when the verdict is inconclusive.")
@preference_options
@output_options()
@store_option
def command(
    base: str,
    candidate: str | None,
    as_json: bool,
    gate: Gate,
    margin: float,
    answers: bool,
    pairs: bool,
    strict: bool,
    output: tuple[str, ...],
    html_size: float,
    store: str | None,
    preference: str | None,
    **judging: Any,
) -> None:
    """Show what changed between two runs, or which target of a group is best.

    BASE and CANDIDATE are runs: an id, the start of one, the name of a baseline, `latest`, or a
    file of results: of Assay, AgentV (.jsonl) or promptfoo (.json). Exits 0, or 1 when the gate
    fails. A lost case counts by the re-asks that its run recorded; nothing is asked here. A report
    (`-o`) is about the candidate, which must be a recorded run. --preference lets a judge compare
    the answers, which costs two calls a case; it does not affect the gate.

    GROUP is what a run of several targets makes: its id, the start of it, or any of its runs.
    Alone, its targets are compared with each other, which fails no gate. Of two groups, the same
    targets are compared, each as two runs are.

    \b
    Examples:
      assay compare main latest
      assay compare latest                   the targets of the latest group
      assay compare 0198c0de latest --gate strict
      assay compare main latest --answers
      assay compare main latest -o compare.html
      assay compare old.jsonl new.jsonl --json
      assay compare main latest --preference "Which answer is clearer?" --judge openai:gpt-6-luna
    """
    asked = Comparing(
        gate=gate,
        margin=margin,
        strict=strict,
        as_json=as_json,
        answers=answers,
        pairs=pairs,
        store=store,
        request=request_of(preference, **judging),
    )
    groups = groups_of(base, candidate, store)
    files = ReportOutput(output, html_size, for_group=candidate is None or groups is not None)
    if candidate is None:
        code = compare_targets(base, asked, files)
    elif groups is not None:
        code = compare_same_targets(*groups, asked, files, _print)
    else:
        code = _compare_runs(base, candidate, asked, files)
    raise SystemExit(code)


def _compare_runs(base: str, candidate: str, asked: Comparing, files: ReportOutput) -> int:
    """Compare two runs; returns the exit code."""
    store = asked.store
    found = history.compare(base, candidate, **asked.rules)
    if files.has_files:
        run = compared_run(found, base, candidate, margin=asked.margin, store=store)
        files.write_files(run)
    changed = []
    if asked.answers:
        changed = changed_answers(base, candidate, found, MAX_LISTED, store=store)
    judged = asked.request and preferred((base, candidate), asked.request, store)
    if asked.as_json:
        more: dict[str, Any] = {}
        if asked.answers:
            more["answers"] = [answer.to_dict() for answer in changed]
        if judged:
            more["preference"] = judged.to_dict()
        echo_json(found.to_dict() | more)
    else:
        _print(found, base, candidate, {answer.ref: answer for answer in changed})
        if judged:
            page = Page(sys.stdout)
            page.line()
            write_preference(judged, page)
    return found.exit_code or (judged.exit_code if judged else 0)


def _print(
    found: Comparison,
    base: str,
    candidate: str,
    changed: Mapping[CaseRef, ChangedAnswer] = NO_ANSWERS,
) -> None:
    page, colour = Page(sys.stdout), _COLOURS[found.verdict]
    page.prose("", f"{found.verdict.upper()}: {moved(found)}", colour, "bold")
    for role, reference, name in (("base", base, found.base), ("now", candidate, found.candidate)):
        known = "" if reference == name else f" ({name})"
        page.whole(safe(f"{role:5} {reference}{known}"))
    _print_list(page, "lost", [(loss.ref, loss.reason) for loss in found.losses], changed)
    _print_list(page, "accepted", [(case.ref, accepted(case)) for case in found.accepted], changed)
    for name, title in _TITLES.items():
        _print_list(page, title, [(ref, "") for ref in found.lists[name]], changed)
    for score in found.scores:
        page.line()
        page.prose("", safe(score_change(score)))
    page.line()
    for label, texts in (("warning", found.warnings), ("note", found.notes)):
        for text in texts:
            page.prose("", safe(f"{label}: {text}"))
    numbers = f": {rate_change(found)}" if found.pairs else ""
    page.prose("", safe(f"pass rate alone: {found.decision.replace('_', ' ')}{numbers}"))
    page.prose("", safe(found.explanation))
    page.line(f"gate {found.gate}: {found.verdict}", colour, "bold")
    for reason in (*found.gate_failures, *found.undecided):
        page.prose("  - ", safe(reason))


def _print_list(
    page: Page,
    title: str,
    entries: Sequence[tuple[CaseRef, str]],
    changed: Mapping[CaseRef, ChangedAnswer],
) -> None:
    """Print the first cases, each with its reason and its answers, if it has them."""
    if not entries:
        return
    page.line()
    page.line(f"{title} ({len(entries):,})")
    for ref, reason in entries[:MAX_LISTED]:
        page.whole(safe(f"  {ref}"))
        if reason:
            page.prose("    ", safe(reason))
        if (answer := changed.get(ref)) is not None:
            _print_answers(page, answer)
    if len(entries) > MAX_LISTED:
        page.line(f"  ... {len(entries) - MAX_LISTED:,} more; --json names all")


def _print_answers(page: Page, answer: ChangedAnswer) -> None:
    if answer.before is None or answer.now is None:
        page.line("    the answers are not in both runs")
    else:
        print_answers(page, answer.before, answer.now, "    ")
