"""A group on a terminal: the best set first, a row for each target, the cases that differ."""

from __future__ import annotations

from assay.model.group import DifferingCase, GroupComparison
from assay.model.group_result import GroupResult
from assay.reporters.group_words import (
    HOW_BEST,
    HOW_PAIRS,
    TARGET_HEADS,
    cell_words,
    counts_of,
    differing_note,
    headline,
    outcome_of_group,
    pair_words,
    run_words,
    significant,
    standing,
    target_rows,
    used_columns,
)
from assay.reporters.page import MAX_LISTED, Page, table_width
from assay.reporters.terminal import safe
from assay.reporters.words import tone_of

_COLOURS = {"better": "green", "worse": "red", "plain": "green"}
#: The columns that go when there is no room.
_SPARE = ("p50", "Judges", "p95")


def write_comparison(page: Page, found: GroupComparison, *, all_pairs: bool = False) -> None:
    """Which targets are best, their numbers, the pairs that matter, and the cases that differ."""
    word, tone, sentence = standing(found)
    page.prose("", safe(f"{word.upper()}: {sentence}"), _COLOURS.get(tone, "yellow"), "bold")
    page.prose("", safe(counts_of(found)))
    page.line()
    _targets(page, found)
    pairs = significant(found)
    if all_pairs:
        pairs = [pair_words(pair, len(found.pairs)) for pair in found.pairs]
    for text in pairs:
        page.prose("  - ", safe(text))
    page.prose("", f"{HOW_BEST} {HOW_PAIRS}" if all_pairs else HOW_BEST)
    page.line()
    _differing(page, found)
    for note in found.notes:
        page.prose("note: ", safe(note))
    if found.notes:
        page.line()


def _targets(page: Page, found: GroupComparison) -> None:
    rows = target_rows(found)
    used = used_columns(rows)
    table = [[TARGET_HEADS[n] for n in used], *([row.cells[n] for n in used] for row in rows)]
    complete = all(target.judged + target.skipped == found.cases for target in found.targets)
    for head in ("Judged", *_SPARE) if complete else _SPARE:
        if table_width(table) > page.terminal.width and head in table[0]:
            column = table[0].index(head)
            table = [row[:column] + row[column + 1 :] for row in table]
    table = [[safe(cell) for cell in row] for row in table]
    right = [
        n for n, head in enumerate(table[0]) if head not in ("Target", "Pass rate", "Best set")
    ]
    page.table(table, right=right, shrink=[0, len(table[0]) - 1])


def _differing(page: Page, found: GroupComparison) -> None:
    shown = found.differing[:MAX_LISTED]
    if not shown:
        return
    page.prose("", differing_note(found, len(shown)))
    several = len({case.suite for case in shown}) > 1
    heads = ["Case", *(safe(target.target) for target in found.targets)]
    rows = [[_ref(case, several=several), *map(cell_words, case.cells)] for case in shown]
    page.table([heads, *rows], shrink=range(len(heads)))
    page.line()


def _ref(case: DifferingCase, *, several: bool) -> str:
    return safe(f"{case.suite}: {case.id}" if several else case.id)


def write_verdicts(page: Page, group: GroupResult) -> None:
    """How each run ended by its own rules, and the exit code."""
    for run in group.runs:
        words = run_words(run)
        colour = _COLOURS.get(tone_of(words.word), "yellow")
        page.prose("", safe(f"{words.target}: {words.word}: {words.sentence}"), colour)
        page.whole(f"  assay runs show {words.run_id}")
    page.line()
    page.whole(f"Group      {safe(group.id)}")
    word = {0: "green", 1: "red"}.get(group.exit_code, "yellow")
    page.line(outcome_of_group(group.exit_code, len(group.runs)), word, "bold")


def verdict_line(page: Page, group: GroupResult) -> None:
    """The group in one line."""
    ended = outcome_of_group(group.exit_code, len(group.runs))
    page.prose("", safe(f"{headline(group.comparison)}; {ended}"), "bold")
