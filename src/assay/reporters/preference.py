"""Writes a preference for a terminal."""

from __future__ import annotations

from assay.model.preference import Preference
from assay.reporters.page import Page
from assay.reporters.preference_words import (
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
    for text in (*first_errors(found), *found.notes):
        page.prose("  - ", safe(text))
