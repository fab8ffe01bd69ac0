"""Writes a preference: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from assay.charts.intervals import rate_words
from assay.model.preference import Preference
from assay.reporters.markdown import code
from assay.reporters.page import Page
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
from assay.text import count

#: How many errors of the judge are shown.
MAX_ERRORS = 3


def write_preference(found: Preference, page: Page) -> None:
    """The pairs, the ranking, the judge and what it cost."""
    page.prose("preference  ", safe(found.criteria), "bold")
    for pair in found.pairs:
        page.prose("", safe(f"{pair.b} against {pair.a}: {result_of(pair)}"))
        for line in details_of(pair):
            page.prose("  ", safe(line))
    if found.ranking:
        page.line()
        rows = [tuple(map(safe, row)) for row in ranks_of(found)]
        page.table([RANKING_HEADS, *rows], shrink=[1])
    page.line()
    page.prose("judge       ", safe(judge_of(found)))
    if found.labels is not None:
        page.prose("            ", safe(agreement_of(found.labels)))
    if found.unasked:
        page.prose("", f"{count(found.unasked, 'pair of answers', 'pairs of answers')} not judged")
    for text in (*first_errors(found.cases, MAX_ERRORS), *found.notes):
        page.prose("  - ", safe(text))


def markdown(found: Preference) -> Iterator[str]:
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
    for text in (*first_errors(found.cases, MAX_ERRORS), *found.notes):
        yield f"- {code(text)}"
    yield ""
