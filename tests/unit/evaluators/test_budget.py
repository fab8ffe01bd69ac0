"""Limits on time, cost, tokens and calls."""

from __future__ import annotations

from typing import Any

import pytest

from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from unit.evaluator_calls import judged

SEEN = Observation(
    "x",
    tool_calls=(ToolCall("a"), ToolCall("b")),
    usage=Usage(100, 20),
    cost_usd=0.1 + 0.2,
    duration_ms=1200.0,
    llm_calls=3,
)


@pytest.mark.parametrize(
    ("kind", "key", "at", "below", "message"),
    [
        ("latency", "threshold", 1200, 1199, "expected at most 1,199 ms, found 1,200 ms"),
        ("cost", "budget", 0.3, 0.29, "expected at most 0.29 USD, found 0.3 USD"),
        ("token_usage", "max_total", 120, 119, "expected at most 119 tokens, found 120 tokens"),
        (
            "token_usage",
            "max_input",
            100,
            99,
            "expected at most 99 input tokens, found 100 input tokens",
        ),
        (
            "token_usage",
            "max_output",
            20,
            19,
            "expected at most 19 output tokens, found 20 output tokens",
        ),
        (
            "execution_metrics",
            "max_tool_calls",
            2,
            1,
            "expected at most 1 tool call, found 2 tool calls",
        ),
        (
            "execution_metrics",
            "max_llm_calls",
            3,
            2,
            "expected at most 2 model calls, found 3 model calls",
        ),
        (
            "execution_metrics",
            "max_tokens",
            120,
            119,
            "expected at most 119 tokens, found 120 tokens",
        ),
        ("execution_metrics", "max_cost_usd", 0.3, 0.2, "expected at most 0.2 USD, found 0.3 USD"),
        ("execution_metrics", "max_duration_ms", 1200, 0, "expected at most 0 ms, found 1,200 ms"),
    ],
)
def test_a_limit_is_kept_at_equality(
    kind: str, key: str, at: Any, below: Any, message: str
) -> None:
    kept = judged(kind, SEEN, **{key: at})
    assert (kept.score, len(kept.hits)) == (1.0, 1)
    broken = judged(kind, SEEN, **{key: below})
    assert (broken.score, broken.misses) == (0.0, (message,))


@pytest.mark.parametrize(
    ("kind", "key", "seen", "reason"),
    [
        ("latency", "threshold", Observation("x"), "duration"),
        ("cost", "budget", Observation("x"), "cost"),
        ("token_usage", "max_total", Observation("x"), "tokens of input and output"),
        ("token_usage", "max_total", Observation(usage=Usage(5)), "tokens of input and output"),
        ("token_usage", "max_input", Observation("x", usage=Usage(None, 5)), "input tokens"),
        ("token_usage", "max_output", Observation("x", usage=Usage(5)), "output tokens"),
        ("execution_metrics", "max_tool_calls", Observation("x"), "tool calls"),
        ("execution_metrics", "max_llm_calls", Observation("x"), "number of model calls"),
        ("execution_metrics", "max_tokens", Observation("x"), "tokens of input and output"),
        ("execution_metrics", "max_cost_usd", Observation("x"), "cost"),
        ("execution_metrics", "max_duration_ms", Observation("x"), "duration"),
    ],
)  # fmt: skip
def test_an_unreported_measure_is_errored(
    kind: str, key: str, seen: Observation, reason: str
) -> None:
    limit: dict[str, Any] = {key: 9}
    score = judged(kind, seen, **limit)
    assert (score.score, score.error) == (None, f"target reports no {reason}")


def test_an_empty_list_of_calls_counts_as_reported() -> None:
    assert judged("execution_metrics", Observation(tool_calls=()), max_tool_calls=0).score == 1


def test_each_limit_is_one_check() -> None:
    limits: dict[str, Any] = {"max_tool_calls": 2, "max_tokens": 1, "max_cost_usd": 1}
    score = judged("execution_metrics", SEEN, **limits, max_duration_ms=1)
    assert (score.score, len(score.hits), len(score.misses)) == (0.5, 2, 2)


def test_an_exceeded_limit_fails_even_if_another_cannot_be_judged() -> None:
    seen = Observation(duration_ms=5.0)
    score = judged("execution_metrics", seen, max_duration_ms=4, max_cost_usd=1)
    assert (score.score, score.details) == (0.0, {"unjudged": ["target reports no cost"]})
    both = judged("execution_metrics", seen, max_tool_calls=4, max_cost_usd=1)
    assert both.error == "target reports no tool calls; target reports no cost"
