"""Checks of an answer's text, and the messages for their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from assay.model.context import Context
from assay.model.score import EvaluationScore, checks, full_marks
from assay.model.values import MISSING, find_json, parse_json, quoted, same
from assay.patterns import TIME_LIMIT

if TYPE_CHECKING:
    from assay.ports import Check

SLOW_PATTERN = f"the pattern took longer than {TIME_LIMIT:g} s"
TOO_DEEP = "the schema refers to itself endlessly, or the answer is nested too deeply"
NO_EXPECTED_OUTPUT = "the case has no expected output to compare with"


class TextCheck(msgspec.Struct, frozen=True):
    """One check of a text, and what to report if it holds or does not."""

    holds: Callable[[str], bool]
    hit: str
    miss: Callable[[str], str]


def single(check: TextCheck) -> Check:
    """The score of a single check; the passing score is shared by all answers."""
    holds, miss, passed = check.holds, check.miss, full_marks((check.hit,))

    def judge(context: Context) -> EvaluationScore:
        text = context.observation.response
        try:
            return passed if holds(text) else EvaluationScore(0.0, misses=(miss(text),))
        except TimeoutError:
            return EvaluationScore.errored(SLOW_PATTERN)

    return judge


def share(wanted: Sequence[TextCheck]) -> Check:
    """The share of checks that hold."""
    if len(wanted) == 1:
        return single(wanted[0])
    passed = full_marks(tuple([check.hit for check in wanted]))

    def judge(context: Context) -> EvaluationScore:
        text = context.observation.response
        try:
            held = [check.holds(text) for check in wanted]
        except TimeoutError:
            return EvaluationScore.errored(SLOW_PATTERN)
        if all(held):
            return passed
        pairs = list(zip(wanted, held, strict=True))
        hits = [check.hit for check, held_it in pairs if held_it]
        return checks(hits, [check.miss(text) for check, held_it in pairs if not held_it])

    return judge


def inverted(check: TextCheck, hit: str, miss: str) -> TextCheck:
    """A check that holds when the other does not."""
    holds = check.holds
    return TextCheck(lambda text: not holds(text), hit, lambda text: miss)


def other_case(text: str, value: str) -> str:
    """A hint if the value occurs with other capitalisation."""
    return (
        "; it is there with different capitalisation" if value.casefold() in text.casefold() else ""
    )


def _json_hint(text: str) -> str:
    """A hint if an answer that is not JSON contains some."""
    if parse_json(text) is MISSING and find_json(text) is not MISSING:
        return "; it contains JSON, but the whole answer must be JSON"
    return ""


def not_json(text: str) -> str:
    return f"expected JSON, found {quoted(text)}{_json_hint(text)}"


def expected_output(context: Context) -> Any:
    """The case's expected output, text or a JSON value; MISSING if it has none."""
    content = context.case.expected_output
    if content is None:
        return MISSING
    if isinstance(content, tuple):  # parts, text or files
        texts = [p.value if p.path is None else p.path.read_text("utf-8") for p in content]
        return "\n".join(texts)
    return content


def equal(text: str, value: Any) -> bool:
    """Text is compared without surrounding space; any other value with the JSON in the answer."""
    if isinstance(value, str):
        return text.strip() == value.strip()
    kind = type(value) if isinstance(value, (dict, list)) else object
    return same(find_json(text, kind), value)


def equality(value: Any, negate: bool) -> TextCheck:
    """The check that an answer equals a value, or with `negate` that it does not."""
    shown_value = quoted(value)
    check = TextCheck(
        lambda text: equal(text, value),
        f"equals {shown_value}",
        lambda text: f"expected {shown_value}, found {quoted(text)}{_case_only(text, value)}",
    )
    if not negate:
        return check
    miss = f"expected an answer that does not equal {shown_value}, but it does"
    return inverted(check, f"does not equal {shown_value}", miss)


def _case_only(text: str, value: Any) -> str:
    if isinstance(value, str) and text.strip().casefold() == value.strip().casefold():
        return "; only the capitalisation differs"
    return ""
