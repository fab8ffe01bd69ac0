"""`latency`, `cost`, `token_usage`, `execution_metrics`: limits on what an answer may take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from assay.model.evaluator import EvaluatorSpec
from assay.model.shape import Count, Number, problem

Limit = Annotated[Number, Field(ge=0)]


class LatencyEvaluator(EvaluatorSpec):
    """The answer came within `threshold` milliseconds."""

    threshold: Limit


class CostEvaluator(EvaluatorSpec):
    """The answer cost at most `budget` US dollars."""

    budget: Limit


class _LimitsSpec(EvaluatorSpec):
    @model_validator(mode="after")
    def _has_a_limit(self) -> _LimitsSpec:
        limits = [name for name in type(self).model_fields if name.startswith("max_")]
        if all(getattr(self, name) is None for name in limits):
            raise problem("missing-key", "no limit is given: set one of " + ", ".join(limits))
        return self


class TokenUsageEvaluator(_LimitsSpec):
    """The answer took at most so many tokens."""

    max_total: Count | None = None
    max_input: Count | None = None
    max_output: Count | None = None


class ExecutionMetricsEvaluator(_LimitsSpec):
    """Limits on calls, tokens, cost and time, each one check."""

    max_tool_calls: Count | None = None
    max_llm_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Limit | None = None
    max_duration_ms: Limit | None = None
