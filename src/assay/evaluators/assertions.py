"""Assertions of an `expect` block: their type, and those on limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.evaluators import measures
from assay.evaluators.answers import SLOW_PATTERN
from assay.evaluators.measures import Unjudged, number, within
from assay.model.expect import Expect
from assay.model.observation import Observation
from assay.patterns import compile_pattern

#: Remarks on assertions that hold, for the details of the score.
Notes = dict[str, Any]


class Assertion(NamedTuple):
    """One assertion; its messages begin with its key.

    `judge` returns an empty text if it holds, else what was expected and what was found. It raises
    Unjudged if it cannot tell.
    """

    hit: str
    judge: Callable[[Observation, Notes], str]


#: Makes an assertion from a key, its value (or one item of it) and the block around it.
Maker = Callable[[str, Any, Expect], Assertion]


def search(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).search(text)
    except TimeoutError:
        raise Unjudged(SLOW_PATTERN) from None


def _limit(measure: Callable[[Observation], float], unit: str, *, least: bool = False) -> Maker:
    """Makes assertions that a measure of the answer is within a limit."""
    words = "at least" if least else "at most"

    def make(key: str, bound: float, block: Expect) -> Assertion:
        wanted = f"{words} {number(bound)} {unit}"

        def judge(seen: Observation, notes: Notes) -> str:
            found = measure(seen)
            if within(bound, found) if least else within(found, bound):
                return ""
            return f"{key}: expected {wanted}, found {number(found)}"

        return Assertion(f"{key}: {wanted}", judge)

    return make


def _max_tokens(key: str, bound: float, block: Expect) -> Assertion:
    wanted = f"at most {number(bound)} tokens"

    def judge(seen: Observation, notes: Notes) -> str:
        try:
            count, source = measures.output_tokens(seen), "reported by the target"
        except Unjudged:
            count, source = math.ceil(_length(seen) / 4), "estimated as characters / 4"
        notes["tokens"] = {"count": count, "source": source}
        if count <= bound:
            return ""
        return f"{key}: expected {wanted}, found {number(count)} ({source})"

    return Assertion(f"{key}: {wanted}", judge)


def _length(seen: Observation) -> int:
    return len(seen.response)


ON_LIMITS: dict[str, Maker] = {
    "minToolCalls": _limit(measures.tool_calls, "calls", least=True),
    "maxToolCalls": _limit(measures.tool_calls, "calls"),
    "minLength": _limit(_length, "characters", least=True),
    "maxLength": _limit(_length, "characters"),
    "maxLatencyMs": _limit(measures.duration_ms, "ms"),
    "maxCostUsd": _limit(measures.cost_usd, "USD"),
    "maxTokens": _max_tokens,
}
