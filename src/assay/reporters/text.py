"""`text`: a run on a terminal, with the verdict on the first line and its reasons on the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TextIO

from assay.model.comparison import Comparison
from assay.model.group_result import GroupResult
from assay.model.observed import ObservedCall
from assay.model.run_result import RunResult
from assay.model.suite_result import Summary
from assay.redaction import cut as shortened
from assay.reporters.excerpts import Excerpt, gather
from assay.reporters.group_text import verdict_line, write_comparison, write_verdicts
from assay.reporters.page import MAX_LISTED, Page, table_width
from assay.reporters.preference import write_preference
from assay.reporters.terminal import safe
from assay.reporters.word_diff import word_diff
from assay.reporters.words import (
    asked_suites,
    baseline_of,
    changes,
    facts,
    headline,
    moved,
    rate,
    verdict,
    warnings,
)
from assay.text import columns, count, cut

#: It is for the terminal, and not chosen by the suffix of a file.
writes_files = False
#: How many cases are named above their common reason.
MAX_SAME = 10
#: The most lines of a reason, and of an answer if all answers are shown.
MAX_LINES, MAX_ANSWER = 3, 40
#: How much is shown: only the verdict, the reasons of failures, or their answers and calls too.
Detail = Literal["verdict", "reasons", "answers"]

_SIGN_STYLES = {"-": "red", "+": "green", "~": "yellow", "=": "dim"}
_HEADS = ("Passed", "Failed", "Errored", "Skipped", "Pass rate")
_LABEL = 11


def write(run: RunResult, out: TextIO, detail: Detail = "reasons") -> None:
    """The verdict; failed, errored and skipped cases; what changed; the suites; the reasons."""
    page, summary = Page(out), run.summary
    page.prose("", f"{verdict(run).upper()}: {safe(headline(run))}", _colour(run), "bold")
    if detail == "verdict":
        return
    found = gather(run, answers=detail == "answers")
    page.line()
    _cases(page, found.failed, summary.failed, "red")
    _cases(page, found.errored, summary.errored, "yellow")
    _skipped(page, found.skipped)
    if run.comparison is not None:
        _comparison(page, run.comparison, baseline_of(run, run.comparison))
    _suites(page, run)
    _facts(page, run)
    _verdict(page, run)


def write_group(group: GroupResult, out: TextIO, detail: Detail = "reasons") -> None:
    """The best set, the targets, the cases that differ; with answers, each run in full too."""
    page = Page(out)
    if detail == "verdict":
        verdict_line(page, group)
        return
    write_comparison(page, group.comparison, all_pairs=detail == "answers")
    if group.preference is not None:
        write_preference(group.preference, page)
        page.line()
    for run in group.runs if detail == "answers" else ():
        page.line(f"--- {safe(run.target)}", "bold")
        page.line()
        write(run, out, detail)
        page.line()
    write_verdicts(page, group)


def _cases(page: Page, listed: Sequence[Excerpt], total: int, colour: str) -> None:
    by_reasons: dict[object, list[Excerpt]] = {}
    for case in listed:
        same = (case.standing, case.reasons, case.notes, case.diffs, case.answer)
        by_reasons.setdefault(same, []).append(case)
    for cases in by_reasons.values():
        _same_reasons(page, cases, colour)
    if total > len(listed) and listed:
        page.line(f"and {count(total - len(listed), f'more {listed[0].outcome} case')}", colour)
        page.line()


def _same_reasons(page: Page, cases: Sequence[Excerpt], colour: str) -> None:
    """Cases that did not pass for the same reasons, which are shown once."""
    for case in cases[:MAX_SAME]:
        _head(page, case, colour)
    case = cases[0]
    if len(cases) > MAX_SAME:
        more = count(len(cases) - MAX_SAME, f"more {case.outcome} case")
        page.line(f"and {more} for the same reason", colour)
    if case.standing:
        page.prose("  ", safe(case.standing))
    for reason in case.reasons:
        page.prose("  - ", safe(reason), max_lines=MAX_LINES)
    for note in case.notes:
        page.prose("  note: ", safe(note), max_lines=MAX_LINES)
    for name, lines in case.diffs:
        trajectory(page, "  ", name, lines)
    _answer(page, case)
    page.line()


def _answer(page: Page, case: Excerpt) -> None:
    """The answer, its calls, and what a judge said, as far as the excerpt has them."""
    if case.answer is not None and case.calls is None:
        words = " ".join(shortened(case.answer, 2000, "both").split())
        page.prose("  answer: ", safe(words) or "(empty)", max_lines=MAX_LINES)
    elif case.answer is not None:
        page.line("  answer:")
        page.block("    ", case.answer or "(empty)", most=MAX_ANSWER)
    for label, text in case.judged:
        page.prose(f"  {label}: ", safe(text), max_lines=MAX_LINES)
    if case.calls:
        page.line("  calls:")
        calls(page, "    ", case.calls)


def trajectory(page: Page, indent: str, name: str, lines: Sequence[str]) -> None:
    """The diff of a trajectory."""
    page.line(f"{indent}trajectory of {safe(name)}:")
    for line in lines:
        step = line.lstrip()
        style = (_SIGN_STYLES[line[0]],) if line[:1] in _SIGN_STYLES else ()
        page.prose(f"{indent}  {line[: len(line) - len(step)]}", safe(step), *style)


def calls(page: Page, indent: str, made: Sequence[ObservedCall]) -> None:
    """Every call with its arguments, and how it ended."""
    for number, call in enumerate(made, 1):
        page.prose(f"{indent}{number}. ", safe(call.text, 3000))
        style = ("red",) if call.ending.startswith("error") else ("dim",)
        page.prose(f"{indent}   ", safe(call.ending, 3000), *style)


def _head(page: Page, case: Excerpt, colour: str) -> None:
    head = page.terminal.fit(f"{case.outcome.upper()} {safe(case.place)} {safe(case.id)}")
    room = page.terminal.width - columns(head)
    description = cut(page.terminal.fit(f" - {safe(case.description)}"), room)
    page.whole(head + description if case.description and room > 6 else head, colour, "bold")


def _skipped(page: Page, skipped: dict[str, int]) -> None:
    if not skipped:
        return
    page.line(f"SKIPPED {count(sum(skipped.values()), 'case')}", "bold")
    for reason, number in skipped.items():
        page.prose(f"  {number:,}: ", safe(reason), max_lines=MAX_LINES)
    page.line()


def _comparison(page: Page, comparison: Comparison, base: str) -> None:
    page.prose("", f"AGAINST {safe(base)}: {moved(comparison)}", "bold")
    if comparison.explanation:
        page.prose("  pass rate alone: ", safe(comparison.explanation))
    for heading, refs in changes(comparison):
        page.line(f"  {heading}:")
        page.listed([str(ref) for ref in refs], "    ")
    page.line(f"  gate {comparison.gate}: {comparison.verdict}")
    page.line()


def _suites(page: Page, run: RunResult) -> None:
    """A row per suite, and their sum if there are several."""
    suites = asked_suites(run)
    if not suites:
        return
    rows = [["Suite", "Tier", *_HEADS]]
    rows += [_row(suite.name, suite.tier, suite.summary, rate(suite)) for suite in suites]
    if len(suites) > 1:
        rows.append(_row("All", "", run.summary, ""))
    # What says nothing goes first when there is no room: columns of zeros, then the tier.
    for head in ("Errored", "Skipped", "Tier"):
        column = rows[0].index(head)
        zeros = all(row[column] == "0" for row in rows[1:])
        if table_width(rows) > page.terminal.width and (zeros or head == "Tier"):
            rows = [row[:column] + row[column + 1 :] for row in rows]
    numbers = [index for index, head in enumerate(rows[0]) if head in _HEADS[:-1]]
    page.table(rows, right=numbers, shrink=[0])
    page.line()


def _row(name: str, tier: str, summary: Summary, rate: str) -> list[str]:
    counts = (summary.passed, summary.failed, summary.errored, summary.skipped)
    return [safe(name), tier, *(f"{number:,}" for number in counts), rate]


def _facts(page: Page, run: RunResult) -> None:
    for label, text in facts(run):
        if label in ("Run", "Results"):
            page.whole(f"{label:<{_LABEL}}{safe(text)}")
        else:
            page.prose(f"{label:<{_LABEL}}", safe(text))
    labelled = list(warnings(run))
    for label, text in labelled[:MAX_LISTED]:
        page.prose(f"{label:<{_LABEL}}", safe(text), *(("yellow",) if label == "Stale" else ()))
    if len(labelled) > MAX_LISTED:
        page.line(f"{'':<{_LABEL}}and {len(labelled) - MAX_LISTED:,} more warnings and notes")
    page.line()


def _verdict(page: Page, run: RunResult) -> None:
    """The last lines: how the run ended, and why."""
    page.line(f"{verdict(run).upper()} (exit code {run.exit_code})", _colour(run), "bold")
    page.listed(run.reasons, "  ")


def _colour(run: RunResult) -> str:
    return {"passed": "green", "failed": "red"}.get(verdict(run), "yellow")


def answers(page: Page, before: str, now: str, indent: str) -> None:
    """Two answers: as a word diff in colours, else one after the other."""
    if before == now:
        page.line(f"{indent}the answer is the same")
        return
    parts = word_diff(before, now) if page.terminal.colour else []
    if any(sign == "=" for sign, _ in parts):
        page.diff(indent, parts)
        return
    for label, answer, style in (("before", before, "red"), ("now", now, "green")):
        page.line(f"{indent}{label}:")
        page.block(f"{indent}  ", answer or "(empty)", style)
