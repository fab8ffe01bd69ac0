"""A comparison of two runs in words, the same on a terminal, on a page and in a report."""

from __future__ import annotations

import math
from typing import NamedTuple

from assay.charts.intervals import difference_words
from assay.model.case_content import CaseContent
from assay.model.comparison import Comparison, ScoreDifference
from assay.text import count

#: The words for decisions about the pass rate, and whether they are good news.
_DECISIONS = {
    "improved": ("Better", "better"),
    "unchanged": ("Unchanged", "plain"),
    "regressed": ("Worse", "worse"),
    "inconclusive": ("Cannot tell", "unclear"),
    "not_comparable": ("Not comparable", "unclear"),
}
#: Parts of a case that say what is expected of the answer.
_EXPECTATION = (
    "expected_outcome",
    "expected_messages",
    "reference_data",
    "rubrics",
    "evaluators",
    "threshold",
)


class Standing(NamedTuple):
    """Whether the candidate is better or worse in one word, and the tone of it."""

    word: str
    tone: str


def standing(found: Comparison) -> Standing:
    """The gate comes first: a lost case that fails every re-ask is worse, whatever the rate is."""
    if found.verdict == "failed":
        repeated = any(loss.status == "repeated" for loss in found.losses)
        is_worse = repeated or found.is_worse or found.decision == "regressed"
        return Standing("Worse" if is_worse else "Failed", "worse")
    if found.verdict == "inconclusive" and found.decision != "not_comparable":
        return Standing("Cannot tell", "unclear")
    return Standing(*_DECISIONS[found.decision])


def rate_change(found: Comparison) -> str:
    """`198 cases compared, pass rate -0.5 points (-3.5 to +2.3), p = 1`."""
    cases = f"{count(found.pairs, 'case')} compared"
    if found.difference is None or found.test is None:
        return cases
    return f"{cases}, pass rate {difference_words(found.difference)}, {p_value(found.test.p_value)}"


def score_change(score: ScoreDifference) -> str:
    """How the mean score of a suite changed."""
    suite = f" of {score.suite}" if score.suite else ""
    found = score.difference
    known = math.isfinite(found.interval.width)
    spread = f" ({found.low:+.3f} to {found.high:+.3f})" if known else ""
    p = p_value(score.test.adjusted)
    return f"mean score{suite}: {found.estimate:+.3f}{spread}, {p}; it does not affect the decision"


def what_changed(before: CaseContent, now: CaseContent) -> str:
    """Why two results of a case cannot be compared: the part of the case that is different."""
    if not before.input or not now.input:
        return "what changed is not recorded"
    parts = []
    if before.input != now.input or before.stubs != now.stubs:
        parts.append("the question changed")
    if any(getattr(before, field) != getattr(now, field) for field in _EXPECTATION):
        parts.append("the expectation changed")
    return " and ".join(parts) or "a judge or a file that it uses changed"


def p_value(value: float) -> str:
    """A p-value; it is never 0."""
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.2g}"
