"""Measures of an answer, as far as its target reported them, and limits on them."""

from __future__ import annotations

import math
from typing import TypeVar

from assay.model.message import ToolCall
from assay.model.numbers import amount, rounded
from assay.model.observation import Observation, Usage

N = TypeVar("N", int, float)


class Unjudged(Exception):
    """A check cannot be judged, usually because the target did not report what it needs."""


def calls(seen: Observation) -> tuple[ToolCall, ...]:
    if seen.tool_calls is None:
        raise Unjudged("target reports no tool calls")
    return seen.tool_calls


def tool_calls(seen: Observation) -> int:
    return len(calls(seen))


def llm_calls(seen: Observation) -> int:
    return _reported(seen.llm_calls, "number of model calls")


def duration_ms(seen: Observation) -> float:
    return _reported(seen.duration_ms, "duration")


def cost_usd(seen: Observation) -> float:
    return _reported(seen.cost_usd, "cost")


def input_tokens(seen: Observation) -> int:
    return _reported(_usage(seen).input_tokens, "input tokens")


def output_tokens(seen: Observation) -> int:
    return _reported(_usage(seen).output_tokens, "output tokens")


def total_tokens(seen: Observation) -> int:
    return _reported(_usage(seen).total, "tokens of input and output")


def _usage(seen: Observation) -> Usage:
    return seen.usage or Usage()


def _reported(value: N | None, what: str) -> N:
    if value is None:
        raise Unjudged(f"target reports no {what}")
    return value


def within(value: float, limit: float) -> bool:
    """Is the value at most the limit, allowing for float rounding?"""
    return value <= limit or math.isclose(value, limit, rel_tol=1e-9)


class Bound:
    """A limit on a measure with its unit, in words: `at most 500 ms`."""

    def __init__(self, limit: float, unit: str, *, least: bool = False) -> None:
        self._limit, self._unit, self._least = limit, unit, least
        words = "at least" if least else "at most"
        self.wanted = f"{words} {amount(f'{limit:,.10g}', unit)}"

    def allows(self, value: float) -> bool:
        return within(self._limit, value) if self._least else within(value, self._limit)

    def miss(self, value: float) -> str:
        """`expected at most 500 ms, found 671.9 ms`."""
        found = amount(rounded(value, self._limit), self._unit)
        return f"expected {self.wanted}, found {found}"
