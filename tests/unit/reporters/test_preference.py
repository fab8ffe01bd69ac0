"""A preference on a terminal and in Markdown."""

from __future__ import annotations

import io

from assay.model.preference import (
    JudgedPair,
    Preference,
    PreferenceJudge,
    PreferencePair,
    RankedTarget,
)
from assay.reporters.markdown import preference_lines
from assay.reporters.page import Page
from assay.reporters.preference import write_preference
from assay.stats.estimates import Estimate

RATE = Estimate(0.6, 0.5, 0.7, 0.95, "newcombe")
PAIR = PreferencePair(
    *("old", "<b>new", 10, 5, 3, 2, 1, 1, 4, 4),
    identical=2,
    flip_rate=0.125,
    win_rate=RATE,
    p_value=0.03,
    adjusted=0.06,
)
FOUND = Preference(
    "Which | is clearer?",
    PreferenceJudge("judge", "id", 20, 4, 0.5),
    ("old", "<b>new"),
    (PAIR,),
    (RankedTarget("<b>new", RATE), RankedTarget("old", None)),
    (JudgedPair("s", "c1", "old", "<b>new", None, error="no verdict\x1b[2J"),),
    unasked=3,
    notes=("the budget is spent",),
)


def written(found: Preference) -> str:
    out = io.StringIO()
    write_preference(found, Page(out))
    return out.getvalue()


def test_the_terminal_has_the_rate_the_counts_the_ranking_and_the_cost() -> None:
    text = written(FOUND)
    for part in (
        "<b>new against old: <b>new wins 60 % (50 to 70) of 10 cases, p = 0.03",
        "that may be chance",
        "5 wins, 3 losses, 2 ties, 2 of them identical answers",
        "the order decided in 1 of 8 cases (12.5 %), which are ties",
        "the longer answer won 4 of 8",
        "judge, 20 calls, 4 replies from the cache, $0.5000, not calibrated",
        "3 pairs of answers not judged",
        "the budget is spent",
        "not known",
    ):
        assert part in " ".join(text.split()), part
    assert "\x1b" not in text


def test_many_flips_are_pointed_out() -> None:
    assert "goes by the order" not in written(FOUND)
    flipped = PreferencePair("a", "b", 10, 0, 0, 10, 8, 0, 0, 0, flip_rate=0.8, win_rate=RATE)
    assert "often goes by the order" in written(
        Preference("x", FOUND.judge, ("a", "b"), (flipped,))
    )


def test_markdown_escapes_names_and_criteria() -> None:
    text = "\n".join(preference_lines(FOUND))
    assert "<b>" not in text
    assert "Which &#124; is clearer" in text
    assert "| 10 | 5 | 3 | 2 | 60 % (50 to 70) |" in text
    assert "\x1b" not in text
