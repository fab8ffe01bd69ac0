"""A case in two runs, side by side: what was expected, both answers and their difference, calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

import msgspec

from assay.model.case_view import CaseView
from assay.model.observed import ObservedCall
from assay.redaction import cut
from assay.reporters.case_words import (
    answer_of,
    checks_of,
    expectations_of,
    observed,
    shown_trial,
)
from assay.reporters.word_diff import Sign, marked, word_diff

#: The most characters of a text in a list of cases, and where one case is shown.
BRIEF, FULL = 400, 20_000
#: The most lines of what is expected or missed, in a list and where one case is shown.
FEW, MANY = 3, 100
#: The most calls that are aligned.
MAX_CALLS = 200

Parts = list[tuple[Sign, str]]


class Side(msgspec.Struct, frozen=True):
    """The answer of a run to a case; `parts` has its words with those of the other run."""

    outcome: str
    position: int
    passes: int
    judged: int
    parts: Parts
    error: str
    misses: tuple[str, ...]


class CallPair(msgspec.Struct, frozen=True):
    """A call of the base and one of the candidate: `=` the same, `~` with other arguments.

    `-` is only in the base and `+` only in the candidate. Parts are pairs of a text, and whether
    the other call has something else there. Endings say how the calls ended.
    """

    sign: str
    before: list[tuple[str, bool]]
    now: list[tuple[str, bool]]
    before_ending: str = ""
    now_ending: str = ""


def sides(
    before: CaseView | None, now: CaseView | None, limit: int = FULL, lines: int = MANY
) -> tuple[Side | None, Side | None]:
    """Both sides of a case; the texts are cut, but not escaped."""
    answers = [
        None if view is None else cut(answer_of(view), limit, "both") for view in (before, now)
    ]
    parts: Parts = []
    if answers[0] is not None and answers[1] is not None:
        parts = marked(answers[0], answers[1])
    found = [
        None if view is None else _side(view, parts or [("=", answer or "")], lines)
        for view, answer in zip((before, now), answers, strict=True)
    ]
    return found[0], found[1]


def _side(view: CaseView, parts: Parts, lines: int) -> Side:
    missed = [miss for check in checks_of(view) for miss in check.misses]
    return Side(
        view.row.outcome,
        view.row.position,
        view.row.passes,
        view.row.judged,
        parts,
        cut(observed(shown_trial(view)).error or "", BRIEF, "both"),
        _some(missed, lines),
    )


def expected(before: CaseView | None, now: CaseView | None, lines: int = MANY) -> tuple[str, ...]:
    """What the case expects, in the words of its evaluators: those of a run that satisfied them."""
    views = [view for view in (now, before) if view is not None]
    view = next((view for view in views if view.row.outcome == "passed"), views[0])
    said = [text for _, text in expectations_of(view.content)]
    for check in checks_of(view):
        said += filter(None, (check.criterion, *check.hits, *check.misses))
    return _some(said, lines)


def _some(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """The first texts, cut, and how many more there are."""
    shown = [cut(text, BRIEF, "both") for text in dict.fromkeys(texts)]
    if len(shown) > most:
        shown[most:] = [f"and {len(shown) - most:,} more"]
    return tuple(shown)


def call_pairs(before: CaseView | None, now: CaseView | None) -> list[CallPair]:
    """The calls of both runs on the same rows; empty if neither made or recorded any."""
    old, new = (_calls(view) for view in (before, now))
    matcher = SequenceMatcher(None, [c.name for c in old], [c.name for c in new], autojunk=False)
    rows: list[CallPair] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            rows += (_pair(one, other) for one, other in zip(old[i:j], new[k:m], strict=True))
        else:
            rows += _apart(old[i:j], new[k:m])
    return rows


def _calls(view: CaseView | None) -> Sequence[ObservedCall]:
    made = None if view is None else observed(shown_trial(view)).tool_calls
    return (made or ())[:MAX_CALLS]


def _pair(before: ObservedCall, now: ObservedCall) -> CallPair:
    endings = (before.ending, now.ending)
    if before.text == now.text:
        return CallPair("=", [(before.text, False)], [(now.text, False)], *endings)
    parts = word_diff(before.text, now.text)
    old = [(text, sign == "-") for sign, text in parts if sign != "+"]
    new = [(text, sign == "+") for sign, text in parts if sign != "-"]
    return CallPair("~", old, new, *endings)


def _apart(before: Sequence[ObservedCall], now: Sequence[ObservedCall]) -> Iterator[CallPair]:
    """Calls of different tools: each has a row of its own."""
    for old, new in zip_longest(before, now):
        if old is not None:
            yield CallPair("-", [(old.text, False)], [], before_ending=old.ending)
        if new is not None:
            yield CallPair("+", [], [(new.text, False)], now_ending=new.ending)
