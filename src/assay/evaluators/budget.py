"""`latency`, `cost`, `token_usage`, `execution_metrics`: limits on what an answer may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from assay.evaluators import measures
from assay.evaluators.measures import Bound, Unjudged
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.expectations import NOTHING, Expectation, Expected
from assay.model.observation import Observation
from assay.model.score import EvaluationScore, checks
from assay.ports import Check, Resources
from assay.wire.fields import Count, Number
from assay.wire.rules import NeedsOne, Rule, Ruled

Limit = Annotated[Number, Field(ge=0)]


class _BudgetSpec(EvaluatorSpec):
    reads: ClassVar[frozenset[Expectation]] = NOTHING
    #: The limits that an `expect` block has too, by their names there.
    in_expect: ClassVar[dict[str, str]] = {}

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        limits = {key: getattr(self, name) for key, name in self.in_expect.items()}
        return {key: limit for key, limit in limits.items() if limit}


class LatencyEvaluator(_BudgetSpec):
    """The answer came within `threshold` milliseconds."""

    in_expect: ClassVar[dict[str, str]] = {"maxLatencyMs": "threshold"}
    allowed_in_requests: ClassVar[bool] = True
    type: str = "latency"
    threshold: Limit

    def runs_in(self) -> CheckPlace:
        return "loop"

    def prepare(self, resources: Resources) -> Check:
        return _judging([_Budget(measures.duration_ms, self.threshold, "ms")])


class CostEvaluator(_BudgetSpec):
    """The answer cost at most `budget` US dollars."""

    in_expect: ClassVar[dict[str, str]] = {"maxCostUsd": "budget"}
    allowed_in_requests: ClassVar[bool] = True
    type: str = "cost"
    budget: Limit

    def runs_in(self) -> CheckPlace:
        return "loop"

    def prepare(self, resources: Resources) -> Check:
        return _judging([_Budget(measures.cost_usd, self.budget, "USD")])


def _needs_one(*limits: str) -> tuple[Rule, ...]:
    return (NeedsOne(limits, "no limit is given: set one of " + ", ".join(limits)),)


class TokenUsageEvaluator(_BudgetSpec, Ruled):
    """Limits on the tokens of an answer: in total, of the input, of the output."""

    rules: ClassVar[tuple[Rule, ...]] = _needs_one("max_total", "max_input", "max_output")
    in_expect: ClassVar[dict[str, str]] = {"maxTokens": "max_output"}
    allowed_in_requests: ClassVar[bool] = True
    type: str = "token_usage"
    max_total: Count | None = None
    max_input: Count | None = None
    max_output: Count | None = None

    def runs_in(self) -> CheckPlace:
        return "loop"

    def prepare(self, resources: Resources) -> Check:
        return _judging(
            [
                _Budget(measures.total_tokens, self.max_total, "token"),
                _Budget(measures.input_tokens, self.max_input, "input token"),
                _Budget(measures.output_tokens, self.max_output, "output token"),
            ]
        )


class ExecutionMetricsEvaluator(_BudgetSpec, Ruled):
    """Limits on calls, tokens, cost and time, each one check."""

    rules: ClassVar[tuple[Rule, ...]] = _needs_one(
        "max_tool_calls", "max_llm_calls", "max_tokens", "max_cost_usd", "max_duration_ms"
    )
    in_expect: ClassVar[dict[str, str]] = {
        "maxToolCalls": "max_tool_calls",
        "maxCostUsd": "max_cost_usd",
        "maxLatencyMs": "max_duration_ms",
    }
    allowed_in_requests: ClassVar[bool] = True
    type: str = "execution_metrics"
    max_tool_calls: Count | None = None
    max_llm_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Limit | None = None
    max_duration_ms: Limit | None = None

    def runs_in(self) -> CheckPlace:
        return "loop"

    def prepare(self, resources: Resources) -> Check:
        return _judging(
            [
                _Budget(measures.tool_calls, self.max_tool_calls, "tool call"),
                _Budget(measures.llm_calls, self.max_llm_calls, "model call"),
                _Budget(measures.total_tokens, self.max_tokens, "token"),
                _Budget(measures.cost_usd, self.max_cost_usd, "USD"),
                _Budget(measures.duration_ms, self.max_duration_ms, "ms"),
            ]
        )


class _Budget(NamedTuple):
    """What is measured, its limit (None for no limit), and the unit in the singular."""

    measure: Callable[[Observation], float]
    limit: float | None
    unit: str


def _judging(budgets: list[_Budget]) -> Check:
    """The share of limits that are kept.

    A measure that the target did not report is an error, unless another limit is exceeded.
    """
    limits = [
        (measure, Bound(limit, unit)) for measure, limit, unit in budgets if limit is not None
    ]
    passed = checks([bound.wanted for _, bound in limits], [])

    def judge(context: Context) -> EvaluationScore:
        seen = context.observation
        hits: list[str] = []
        misses: list[str] = []
        unjudged: list[str] = []
        for measure, bound in limits:
            try:
                found = measure(seen)
            except Unjudged as reason:
                unjudged.append(str(reason))
                continue
            if bound.allows(found):
                hits.append(bound.wanted)
            else:
                misses.append(bound.miss(found))
        if misses:
            return checks(hits, misses, details={"unjudged": unjudged} if unjudged else {})
        return EvaluationScore.errored("; ".join(unjudged)) if unjudged else passed

    return judge
