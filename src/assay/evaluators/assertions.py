"""Assertions of an `expect` block: their type, and those on limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.evaluators import measures
from assay.evaluators.answers import SLOW_PATTERN
from assay.evaluators.measures import Bound, Unjudged
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

    def make(key: str, limit: float, block: Expect) -> Assertion:
        bound = Bound(limit, unit, least=least)

        def judge(seen: Observation, notes: Notes) -> str:
            found = measure(seen)
            return "" if bound.allows(found) else f"{key}: {bound.miss(found)}"

        return Assertion(f"{key}: {bound.wanted}", judge)

    return make


def _max_tokens(key: str, limit: float, block: Expect) -> Assertion:
    bound = Bound(limit, "token")

    def judge(seen: Observation, notes: Notes) -> str:
        try:
            count, source = measures.output_tokens(seen), "reported by the target"
        except Unjudged:
            count, source = math.ceil(_length(seen) / 4), "estimated as characters / 4"
        notes["tokens"] = {"count": count, "source": source}
        return "" if bound.allows(count) else f"{key}: {bound.miss(count)} ({source})"

    return Assertion(f"{key}: {bound.wanted}", judge)


def _length(seen: Observation) -> int:
    return len(seen.response)


ON_LIMITS: dict[str, Maker] = {
    "minToolCalls": _limit(measures.tool_calls, "call", least=True),
    "maxToolCalls": _limit(measures.tool_calls, "call"),
    "minLength": _limit(_length, "character", least=True),
    "maxLength": _limit(_length, "character"),
    "maxLatencyMs": _limit(measures.duration_ms, "ms"),
    "maxCostUsd": _limit(measures.cost_usd, "USD"),
    "maxTokens": _max_tokens,
}
