"""`text`: a run on a terminal, with the verdict on the first line and its reasons on the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from assay.model.comparison import Comparison
from assay.model.run_result import RunResult
from assay.model.suite_result import Summary
from assay.redaction import cut as shortened
from assay.reporters.excerpts import Excerpt, gather
from assay.reporters.terminal import Terminal, columns, cut, safe, wrap
from assay.reporters.words import (
    baseline_of,
    changes,
    facts,
    headline,
    moved,
    rate,
    verdict,
    warnings,
)
from assay.text import count

#: It is for the terminal, and not chosen by the suffix of a file.
writes_files = False
#: How many cases of a list, and how many warnings, are shown.
MAX_LISTED = 20
#: How many cases are named above their common reason.
MAX_SAME = 10
#: The most lines of a reason.
MAX_LINES = 3

_SIGN_STYLES = {"-": "red", "+": "green", "~": "yellow", "=": "dim"}
_HEADS = ("Passed", "Failed", "Errored", "Skipped", "Pass rate")
_LABEL = 11


def write(run: RunResult, out: TextIO) -> None:
    """The verdict; failed, errored and skipped cases; what changed; the suites; the reasons."""
    page, found, summary = _Page(out), gather(run), run.summary
    page.prose("", f"{verdict(run).upper()}: {safe(headline(run))}", _colour(run), "bold")
    page.line()
    _cases(page, found.failed, summary.failed, "red")
    _cases(page, found.errored, summary.errored, "yellow")
    _skipped(page, found.skipped)
    if run.comparison is not None:
        _comparison(page, run.comparison, baseline_of(run, run.comparison))
    if run.suites:
        _table(page, run)
    _facts(page, run)
    _verdict(page, run)


class _Page:
    """Writes lines that fit the width of the terminal. Untrusted text must be `safe`."""

    def __init__(self, out: TextIO) -> None:
        self._out, self.terminal = out, Terminal.of(out)

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line, truncated to the width."""
        self.whole(cut(self.terminal.fit(text), self.terminal.width), *styles)

    def whole(self, text: str, *styles: str) -> None:
        """Write one line in full: it has a name or path to be copied."""
        self._out.write(self.terminal.paint(self.terminal.fit(text), *styles) + "\n")

    def prose(self, head: str, text: str, *styles: str, max_lines: int | None = None) -> None:
        """Write text that must be read, wrapped; beyond `max_lines` its middle is left out."""
        width = max(self.terminal.width, 40) - len(head)
        text = self.terminal.fit(text)
        lines, room = wrap(text, width), width * (max_lines or 1)
        while max_lines is not None and len(lines) > max_lines:
            lines = wrap(shortened(text, room, "both"), width)
            room -= width // 8
        for index, line in enumerate(lines):
            self.whole((" " * len(head) if index else head) + line, *styles)

    def listed(self, texts: Sequence[str], indent: str) -> None:
        """Write the first texts as a list, and how many more there are."""
        for text in texts[:MAX_LISTED]:
            self.prose(f"{indent}- ", safe(text))
        if len(texts) > MAX_LISTED:
            self.line(f"{indent}and {len(texts) - MAX_LISTED:,} more")


def _cases(page: _Page, listed: Sequence[Excerpt], total: int, colour: str) -> None:
    by_reasons: dict[object, list[Excerpt]] = {}
    for case in listed:
        same = (case.standing, case.reasons, case.notes, case.diffs)
        by_reasons.setdefault(same, []).append(case)
    for cases in by_reasons.values():
        _same_reasons(page, cases, colour)
    if total > len(listed) and listed:
        page.line(f"and {count(total - len(listed), f'more {listed[0].outcome} case')}", colour)
        page.line()


def _same_reasons(page: _Page, cases: Sequence[Excerpt], colour: str) -> None:
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
        page.line(f"  trajectory of {safe(name)}:")
        for line in lines:
            page.line(f"    {safe(line)}", *_style_of(line))
    page.line()


def _head(page: _Page, case: Excerpt, colour: str) -> None:
    head = page.terminal.fit(f"{case.outcome.upper()} {safe(case.place)} {safe(case.id)}")
    room = page.terminal.width - columns(head)
    description = cut(page.terminal.fit(f" - {safe(case.description)}"), room)
    page.whole(head + description if case.description and room > 6 else head, colour, "bold")


def _style_of(line: str) -> tuple[str, ...]:
    return (_SIGN_STYLES[line[0]],) if line[:1] in _SIGN_STYLES else ()


def _skipped(page: _Page, skipped: dict[str, int]) -> None:
    if not skipped:
        return
    page.line(f"SKIPPED {count(sum(skipped.values()), 'case')}", "bold")
    for reason, number in skipped.items():
        page.prose(f"  {number:,}: ", safe(reason), max_lines=MAX_LINES)
    page.line()


def _comparison(page: _Page, comparison: Comparison, base: str) -> None:
    page.prose("", f"AGAINST {safe(base)}: {moved(comparison)}", "bold")
    if comparison.explanation:
        page.prose("  pass rate alone: ", safe(comparison.explanation))
    for heading, refs in changes(comparison):
        page.line(f"  {heading}:")
        page.listed([str(ref) for ref in refs], "    ")
    page.line(f"  gate {comparison.gate}: {comparison.verdict}")
    page.line()


def _table(page: _Page, run: RunResult) -> None:
    """A row per suite, and their sum if there are several."""
    rows: list[tuple[str, ...]] = [("Suite", "Tier", *_HEADS)]
    rows += [_row(suite.name, suite.tier, suite.summary, rate(suite)) for suite in run.suites]
    if len(run.suites) > 1:
        rows.append(_row("All", "", run.summary, ""))
    widths = [max(columns(row[column]) for row in rows) for column in range(len(_HEADS) + 2)]
    # The name gets what the other columns leave.
    widths[0] = min(widths[0], max(page.terminal.width - sum(widths[1:]) - 2 * len(_HEADS) - 2, 10))
    for row in rows:
        name, tier, *numbers, last = map(_padded, row, widths)
        numbers = [number.strip().rjust(len(number)) for number in numbers]
        styles = ("bold",) if row is rows[0] else ()
        page.line("  ".join((name, tier, *numbers, last)).rstrip(), *styles)
    page.line()


def _row(name: str, tier: str, summary: Summary, rate: str) -> tuple[str, ...]:
    counts = (summary.passed, summary.failed, summary.errored, summary.skipped)
    return (safe(name), tier, *(f"{number:,}" for number in counts), rate)


def _padded(text: str, width: int) -> str:
    text = cut(text, width)
    return text + " " * (width - columns(text))


def _facts(page: _Page, run: RunResult) -> None:
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


def _verdict(page: _Page, run: RunResult) -> None:
    """The last lines: how the run ended, and why."""
    page.line(f"{verdict(run).upper()} (exit code {run.exit_code})", _colour(run), "bold")
    page.listed(run.reasons, "  ")


def _colour(run: RunResult) -> str:
    return {"passed": "green", "failed": "red"}.get(verdict(run), "yellow")
