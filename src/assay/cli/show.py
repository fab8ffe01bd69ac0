"""`assay show`: one case of a recorded run, or a list of its cases."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from assay.cli.completion import filters
from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.errors import UsageError
from assay.model.case_rows import CasePage, CaseRow
from assay.model.case_view import CaseView
from assay.model.checks import Check
from assay.reporters import case_words
from assay.reporters.page import Page, table_width
from assay.reporters.terminal import safe
from assay.reporters.text import answers, calls, trajectory
from assay.service import showing
from assay.text import duration, money

_COLOURS = {"passed": "green", "failed": "red", "errored": "yellow"}
_LABEL = 11


@click.command("show")
@click.argument("names", nargs=-1, metavar="[RUN] [CASE|FILTER]", shell_complete=filters)
@click.option(
    "--baseline",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Show how the answer differs from that of the baseline of the run, or of another run.",
)
@click.option("--sort", default="position", help="Order of a list, such as score or -cost.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=showing.LISTED,
    show_default=True,
    help="How many cases of a list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the case or the list as JSON.")
@store_option
def command(
    names: tuple[str, ...],
    baseline: str | None,
    sort: str,
    limit: int,
    as_json: bool,
    store: str | None,
) -> None:
    """Show one case of a recorded run, or list the cases that match a filter.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default. CASE is an id,
    `FILE: ID` or a position. FILTER is explained in docs/filters.md.

    \b
    Examples:
      assay show                             list the cases of the latest run
      assay show refund-1                    one case, by its id
      assay show main 17 --baseline          by its position, compared with the baseline
      assay show 'outcome:failed tag:billing'
      assay show main 'score<0.5' --sort -cost --json
    """
    if len(names) > 2:
        rest = " ".join(map(repr, names[2:]))
        raise UsageError(f"unexpected {rest}: put a filter of several terms in quotes")
    wanted = showing.Wanted(names, baseline, sort, limit)
    found = showing.show(wanted, store=store)
    if as_json:
        echo_json(found.to_dict())
        return
    page = Page(sys.stdout)
    if found.case is not None:
        print_case(page, found.case)
        if baseline is not None:
            _print_before(page, found.case, found.before, found.base)
    elif found.page is not None:
        print_list(page, found.page, found.run_id)


def print_case(page: Page, case: CaseView) -> None:
    """The question, the answer, its calls, what each evaluator said, and the numbers."""
    row, content = case.row, case.content
    colour = _COLOURS.get(row.outcome, "dim")
    place = case.source or row.suite
    page.whole(f"{row.outcome.upper()} {safe(place)} {safe(row.id)}", colour, "bold")
    if content.description:
        page.prose("", safe(content.description))
    if not content.input:
        _title(page, "Question")
        page.line("  not recorded: the run is of an older version")
    for role, text in case_words.question_of(content):
        _title(page, "Question" if role == "user" else f"Question ({safe(role)})")
        page.block("  ", text)
    if expected := list(case_words.expectations_of(content)):
        _title(page, "Expected")
        for label, text in expected:
            page.block(f"  {label}: ", text)
    trial = case_words.shown_trial(case)
    seen = case_words.observed(trial)
    if row.outcome != "skipped":
        _title(page, case_words.answer_title(case))
        if seen.error is None:
            page.block("  ", seen.response or "(empty)")
        else:
            page.prose("  none: ", safe(seen.error))
    if seen.tool_calls:
        _title(page, f"Calls ({len(seen.tool_calls):,})")
        calls(page, "  ", seen.tool_calls)
    if checks := case_words.checks_of(case):
        _title(page, "Evaluators")
        for check in checks:
            _print_check(page, check)
    if reasons := case_words.reasons_of(case):
        _title(page, "Why it was skipped" if row.outcome == "skipped" else "Why it did not pass")
        for reason in reasons:
            page.prose("  - ", safe(reason, 3000))
    page.line()
    for label, text in case_words.facts_of(case):
        page.prose(f"{label:<{_LABEL}}", safe(text))


def _title(page: Page, text: str) -> None:
    page.line()
    page.line(text, "bold")


def _print_check(page: Page, check: Check) -> None:
    colour = "green" if check.verdict.startswith("pass") else "red"
    page.prose(f"  {safe(check.name)}: ", safe(check.verdict), colour)
    if check.criterion:
        page.prose("    criterion: ", safe(check.criterion, 3000))
    if check.reasoning:
        who = f"judge {safe(check.judge)}: " if check.judge else ""
        page.prose(f"    {who}", safe(check.reasoning, 3000))
    for sign, texts, style in (("-", check.misses, "red"), ("+", check.hits, "green")):
        for text in texts:
            page.prose(f"    {sign} ", safe(text, 3000), style)
    for name, lines in check.diffs:
        trajectory(page, "    ", name, lines)


def _print_before(page: Page, case: CaseView, before: CaseView | None, base: str) -> None:
    """How the answer differs from that of the baseline."""
    _title(page, f"Against {safe(base)}")
    if before is None:
        page.line("  the baseline does not have this case")
        return
    page.line(f"  {before.row.outcome} there, {case.row.outcome} here")
    answers(page, case_words.answer_of(before), case_words.answer_of(case), "  ")


def print_list(page: Page, found: CasePage, run_id: str) -> None:
    """A row for each case, and how many there are."""
    folder = _common_folder([row.suite for row in found.rows])
    rows = [_HEADS, *(_cells(row, folder) for row in found.rows)]
    empty = [head for head, *cells in zip(*rows, strict=True) if not any(cells)]
    if len({row.suite for row in found.rows}) == 1:
        empty.append("Suite")
    for head in (*empty, "Tags", "Cost", "Time"):  # the last go when there is no room
        if head in rows[0] and (head in empty or table_width(rows) > page.terminal.width):
            column = rows[0].index(head)
            rows = [row[:column] + row[column + 1 :] for row in rows]
    if found.rows:
        numbers = [i for i, head in enumerate(rows[0]) if head in ("#", "Score", "Cost", "Time")]
        shrink = [i for i, head in enumerate(rows[0]) if head in ("Case", "Suite", "Tags")]
        page.table(rows, right=numbers, shrink=shrink)
        page.line()
    page.line(f"{'Run':<{_LABEL}}{safe(run_id)}")
    page.prose(f"{'Cases':<{_LABEL}}", case_words.totals(len(found.rows), found.facets))


_HEADS = ["#", "Outcome", "Score", "Repeats", "Changed", "Case", "Suite", "Tags", "Cost", "Time"]


def _common_folder(files: Sequence[str]) -> str:
    """The folder that all files are in, with a slash; empty if there is none."""
    folders = {file.rpartition("/")[0] for file in files}
    return f"{folders.pop()}/" if len(folders) == 1 and folders != {""} else ""


def _cells(row: CaseRow, folder: str) -> list[str]:
    return [
        str(row.position),
        row.outcome,
        "" if row.score is None else f"{row.score:.3g}",
        f"{row.passes}/{row.judged}" if row.judged > 1 else "",
        (row.changed or "").replace("-", " "),
        safe(row.id),
        safe(row.suite.removeprefix(folder)),
        safe(", ".join(row.tags)),
        "" if row.cost_usd is None else money(row.cost_usd),
        duration(row.latency_ms),
    ]
