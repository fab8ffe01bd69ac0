"""`md`: Markdown for the summary of a GitHub job, and for people.

Untrusted text is put in `<code>` or `<pre>`, where GitHub makes no mentions and no links, with
characters that are special in Markdown or HTML as character references.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TextIO

from assay.charts.intervals import rate_words
from assay.model.comparison import CaseRef
from assay.model.group import GroupComparison
from assay.model.group_result import GroupResult
from assay.model.preference import Preference
from assay.model.run_result import RunResult
from assay.model.suite_result import Summary
from assay.reporters.excerpts import Excerpt, gather
from assay.reporters.group_words import (
    HOW_BEST,
    TARGET_HEADS,
    TEXT_HEADS,
    cell_kind,
    cell_words,
    counts_of,
    differing_note,
    outcome_of_group,
    run_words,
    significant,
    standing,
    target_rows,
    used_columns,
)
from assay.reporters.preference_words import (
    PAIR_HEADS,
    RANKING_HEADS,
    agreement_of,
    details_of,
    first_errors,
    judge_of,
    ranks_of,
    result_of,
)
from assay.reporters.terminal import safe
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
from assay.text import count
from assay.web.environment import SIGNS, capitalize_first

#: The limits of a list, and of the table of suites.
MAX_LISTED, MAX_SUITES = 20, 200
#: How many of the cases are listed on which the targets of a group differ.
MAX_DIFFERING = 50
#: GitHub rejects summaries of more than 1 MiB.
MAX_CHARACTERS = 600_000

#: ASCII characters that may be special in Markdown, HTML or on GitHub.
_SPECIAL = re.compile(r"[!-$&-*:<>?@\[-`{-~]|(?<=www)\.", re.IGNORECASE)

#: The facts whose text is untrusted.
_UNTRUSTED = ("Run", "Target", "Results", "Flaky", "Judge")


def write(run: RunResult, out: TextIO) -> None:
    """The verdict, suites, changes, failures in collapsed sections, warnings."""
    found, summary, room = gather(run), run.summary, MAX_CHARACTERS
    parts = chain(_head(run), _suites(run), _comparison(run))
    room -= _write_lines(out, parts)
    room -= _write_lines(out, _cases(found.failed, summary.failed, room))
    room -= _write_lines(out, _cases(found.errored, summary.errored, room))
    _write_lines(out, chain(_skipped(found.skipped), _warnings(run)))


def write_group(group: GroupResult, out: TextIO) -> None:
    """The best set, a row for each target, a column for each where they differ, then the runs."""
    preferred = () if group.preference is None else preference_lines(group.preference)
    lines = chain(_group(group.comparison), preferred, _runs(group))
    room = MAX_CHARACTERS - _write_lines(out, lines)
    for index, run in enumerate(group.runs):
        found, summary = gather(run), run.summary
        left = room // (len(group.runs) - index)
        head = (f"### {code(run.target)}: {verdict(run)}", "")
        parts = (
            head if found.failed or found.errored else (),
            _cases(found.failed, summary.failed, left),
            _cases(found.errored, summary.errored, left),
        )
        room -= _write_lines(out, chain(*parts))


def _group(found: GroupComparison) -> Iterator[str]:
    word, _, sentence = standing(found)
    yield f"## Assay: {word.lower()}"
    yield ""
    yield code(f"{word}: {sentence}", 1000)
    yield ""
    rows = target_rows(found)
    used = used_columns(rows)
    yield f"| {' | '.join(TARGET_HEADS[n] for n in used)} |"
    yield f"|{'|'.join('---' if TARGET_HEADS[n] in TEXT_HEADS else '--:' for n in used)}|"
    for row in rows:  # the first and the last cell name targets
        cells = [code(row.cells[0]), *row.cells[1:-1], code(row.cells[-1])]
        yield f"| {' | '.join(cells[n] for n in used)} |"
    yield ""
    yield from _listed([code(text) for text in significant(found)])
    yield f"{capitalize_first(counts_of(found))}. {HOW_BEST}"
    yield ""
    yield from _differing(found)
    yield from _listed([f"Note: {code(note)}" for note in found.notes])


def _differing(found: GroupComparison) -> Iterator[str]:
    shown = found.differing[:MAX_DIFFERING]
    if not shown:
        return
    yield f"### {differing_note(found, len(shown))}"
    yield ""
    yield f"| Case | {' | '.join(code(target.target) for target in found.targets)} |"
    yield f"|---{'|---' * len(found.targets)}|"
    for case in shown:
        cells = (f"{SIGNS[cell_kind(cell)]} {cell_words(cell)}" for cell in case.cells)
        yield f"| {code(f'{case.suite}: {case.id}')} | {' | '.join(cells)} |"
    yield ""


def _runs(group: GroupResult) -> Iterator[str]:
    yield f"### Runs: {outcome_of_group(group.exit_code, len(group.runs))}"
    yield ""
    for words in map(run_words, group.runs):
        yield f"- {code(words.target)}: {words.word}: {code(words.sentence, 1000)}"
        yield f"  - run {code(words.run_id)}"
    yield ""


def preference_lines(found: Preference) -> Iterator[str]:
    """The lines of a section in Markdown."""
    yield "### Preference"
    yield ""
    yield code(found.criteria)
    yield ""
    yield f"| {' | '.join(PAIR_HEADS)} |"
    yield "|---|--:|--:|--:|--:|--:|"
    for pair in found.pairs:
        counts = (pair.judged, pair.wins, pair.losses, pair.ties)
        cells = [f"{code(pair.b)} against {code(pair.a)}", *(f"{n:,}" for n in counts)]
        yield f"| {' | '.join([*cells, rate_words(pair.win_rate)])} |"
    yield ""
    if found.ranking:
        yield f"| {' | '.join(RANKING_HEADS)} |"
        yield "|---|---|--:|"
        for place, target, wins in ranks_of(found):
            yield f"| {place} | {code(target)} | {wins} |"
        yield ""
    for pair in found.pairs:
        yield f"- {code(result_of(pair))}"
        yield from (f"  - {code(line)}" for line in details_of(pair))
    yield f"- Judge: {code(judge_of(found))}"
    if found.labels is not None:
        yield f"- {code(agreement_of(found.labels))}"
    for text in (*first_errors(found), *found.notes):
        yield f"- {code(text)}"
    yield ""


def _write_lines(out: TextIO, lines: Iterable[str]) -> int:
    """Write the lines; returns the number of characters."""
    written = 0
    for line in lines:
        out.write(f"{line}\n")
        written += len(line) + 1
    return written


def code(text: str, limit: int = 300) -> str:
    """Untrusted text, as part of a line."""
    escaped = _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", safe(text, limit))
    return f"<code>{escaped}</code>"


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """The first lines as a list, and how many more there are."""
    yield from (f"- {line}" for line in lines[:MAX_LISTED])
    if len(lines) > MAX_LISTED:
        yield f"- and {len(lines) - MAX_LISTED:,} more"
    if lines:
        yield ""


def _head(run: RunResult) -> Iterator[str]:
    yield f"## Assay: {verdict(run)}"
    yield ""
    yield code(headline(run), 1000)
    yield ""
    yield from _listed([code(reason) for reason in run.reasons])


def _suites(run: RunResult) -> Iterator[str]:
    suites = asked_suites(run)
    if suites:
        yield "| Suite | Tier | Passed | Failed | Errored | Skipped | Pass rate |"
        yield "|---|---|--:|--:|--:|--:|---|"
    for suite in suites[:MAX_SUITES]:
        yield _row(code(suite.name), suite.tier, suite.summary, rate(suite))
    if len(suites) > MAX_SUITES:
        yield f"| and {count(len(suites) - MAX_SUITES, 'more suite')} | | | | | | |"
    if len(suites) > 1:
        yield _row("**All**", "", run.summary, "")
    if suites:
        yield ""
    for label, text in facts(run):
        yield f"- {label}: {code(text) if label in _UNTRUSTED else text}"
    yield ""


def _row(name: str, tier: str, summary: Summary, rate: str) -> str:
    counts = (summary.passed, summary.failed, summary.errored, summary.skipped)
    numbers = (f"{number:,}" for number in counts)
    return "| " + " | ".join((name, tier, *numbers, rate)) + " |"


def _comparison(run: RunResult) -> Iterator[str]:
    comparison = run.comparison
    if comparison is None:
        return
    yield f"### Against {code(baseline_of(run, comparison))}: {moved(comparison)}"
    yield ""
    if comparison.explanation:
        yield f"Pass rate alone: {code(comparison.explanation, 1000)}"
        yield ""
    listed = [f"{title}: {_refs(refs)}" for title, refs in changes(comparison)]
    yield from _listed([f"gate {comparison.gate}: {comparison.verdict}", *listed])


def _refs(refs: Sequence[CaseRef]) -> str:
    more = f" and {len(refs) - MAX_LISTED:,} more" if len(refs) > MAX_LISTED else ""
    return ", ".join(code(str(ref)) for ref in refs[:MAX_LISTED]) + more


def _cases(listed: Sequence[Excerpt], total: int, room: int) -> Iterator[str]:
    """As many cases as there is room for, and how many more there are."""
    if not listed:
        return
    outcome, shown = listed[0].outcome, 0
    yield f"### {count(total, 'case')} {outcome}"
    yield ""
    for case in listed:
        text = "\n".join(_case(case))
        room -= len(text)
        if room < 0:
            break
        yield text
        shown += 1
    if shown < total:
        yield f"and {count(total - shown, f'more {outcome} case')}"
        yield ""


def _case(case: Excerpt) -> Iterator[str]:
    """A collapsed section with the reasons. `<pre>` holds no Markdown, even after blank lines."""
    place = f" {code(case.place)}" if case.place else ""
    yield f"<details><summary>{code(case.id)}{place}</summary>"
    yield ""
    yield "<pre>"
    for line in _lines(case):
        yield html.escape(line, quote=False)
    yield "</pre>"
    yield "</details>"
    yield ""


def _lines(case: Excerpt) -> Iterator[str]:
    if case.description:
        yield safe(case.description)
    if case.standing:
        yield safe(case.standing)
    yield from (f"- {safe(reason)}" for reason in case.reasons)
    yield from (f"note: {safe(note)}" for note in case.notes)
    for name, diff in case.diffs:
        yield f"trajectory of {safe(name)}:"
        yield from (f"  {line}" for line in diff)


def _skipped(skipped: dict[str, int]) -> Iterator[str]:
    if skipped:
        yield f"### {count(sum(skipped.values()), 'case')} skipped"
        yield ""
    # No limit here: excerpts have at most MAX_SKIPS reasons.
    yield from (f"- {number:,}: {code(reason)}" for reason, number in skipped.items())
    if skipped:
        yield ""


def _warnings(run: RunResult) -> Iterator[str]:
    lines = [f"{label}: {code(text)}" for label, text in warnings(run)]
    if lines:
        yield "### Warnings and notes"
        yield ""
        yield from _listed(lines)
