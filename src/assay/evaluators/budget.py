"""`latency`, `cost`, `token_usage`, `execution_metrics`: limits on what an answer may take."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from assay.model.evaluator import EvaluatorSpec
from assay.model.rules import NeedsOne, Rule, Ruled
from assay.model.shape import Count, Number

Limit = Annotated[Number, Field(ge=0)]


class LatencyEvaluator(EvaluatorSpec):
    """The answer came within `threshold` milliseconds."""

    threshold: Limit


class CostEvaluator(EvaluatorSpec):
    """The answer cost at most `budget` US dollars."""

    budget: Limit


def _some(*limits: str) -> tuple[Rule, ...]:
    return (NeedsOne(limits, "no limit is given: set one of " + ", ".join(limits)),)


class TokenUsageEvaluator(EvaluatorSpec, Ruled):
    """The answer took at most so many tokens."""

    rules: ClassVar[tuple[Rule, ...]] = _some("max_total", "max_input", "max_output")

    max_total: Count | None = None
    max_input: Count | None = None
    max_output: Count | None = None


class ExecutionMetricsEvaluator(EvaluatorSpec, Ruled):
    """Limits on calls, tokens, cost and time, each one check."""

    rules: ClassVar[tuple[Rule, ...]] = _some(
        "max_tool_calls", "max_llm_calls", "max_tokens", "max_cost_usd", "max_duration_ms"
    )

    max_tool_calls: Count | None = None
    max_llm_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Limit | None = None
    max_duration_ms: Limit | None = None
