"""The keyword arguments of the Python interface, as types.

`make docs` writes this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from assay.model.case import Tier
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message

#: An evaluator: one that a function of `assay` made, a function, an entry as in eval files, or a
#: criterion in words.
Evaluator = EvaluatorSpec | Callable[..., Any] | Mapping[str, Any] | str
#: An input: a text, or messages.
Input = str | Sequence[Message | Mapping[str, Any]]


class OptionKeys(TypedDict, total=False):
    """The options of a run."""

    workers: int | None
    executor: str | None
    workers_per_machine: int | None
    repeat: int | None
    timeout_seconds: float | None
    timeout: float | None
    max_retries: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    budget_usd: float | None
    max_failures: int | None
    filter: str | Sequence[str]
    tag: str | Sequence[str]
    tier: Tier | Sequence[Tier]
    select: str | None
    of: str | None
    limit: int | None
    shard: str | None
    seed: int
    cache: bool
    evaluators: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    evaluator: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    gate: Literal["regression", "strict", "non-inferiority"]
    margin: float
    confirm: int | None
    stop_when: Literal["decided"] | None
    preference: bool
    min_pass_rate: float | None
    min_coverage: float
    require_calibrated: bool
    strict: bool


class CaseKeys(TypedDict, total=False):
    """The keys of a case."""

    description: str
    expected_outcome: str | None
    outcome: str | None
    criteria: str | None
    expected_messages: Any
    expected_output: Any
    rubrics: Sequence[str | Mapping[str, Any]] | None
    evaluators: Sequence[Evaluator]
    assertions: Sequence[Evaluator]
    expect: Mapping[str, Any] | None
    conversation_id: str | None
    execution: Mapping[str, Any] | None
    vars: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None
    vars_from: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    threshold: float | None
    repeat: int | None
    min_pass_rate: float | None
    skip: str | None
    cluster: str | None
    critical: bool
    stubs: Mapping[str, Any]
    max_turns: int | None
    maxTurns: int | None


class EvaluatorKeys(TypedDict, total=False):
    """What all have."""

    name: str
    weight: float
    required: bool | float


class NegatableKeys(EvaluatorKeys, total=False):
    """What can be negated."""

    negate: bool


class CodeJudgeKeys(EvaluatorKeys, total=False):
    """The keys of `code_judge`."""

    cwd: str | None
    timeout_seconds: float
    env: Sequence[str]
    max_memory_mb: float | None
    max_cpu_seconds: float | None
    config: Mapping[str, Any]


class CompositeKeys(EvaluatorKeys, total=False):
    """The keys of `composite`."""

    aggregator: Mapping[str, Any]


class ContainsKeys(NegatableKeys, total=False):
    """The keys of `contains`."""

    values: Sequence[str] | None


class ContainsAllKeys(NegatableKeys, total=False):
    """The keys of `contains_all`."""


class ContainsAnyKeys(NegatableKeys, total=False):
    """The keys of `contains_any`."""


class CostKeys(EvaluatorKeys, total=False):
    """The keys of `cost`."""


class EndsWithKeys(NegatableKeys, total=False):
    """The keys of `ends_with`."""

    values: Sequence[str] | None


class EqualsKeys(NegatableKeys, total=False):
    """The keys of `equals`."""

    values: Sequence[Any] | None


class ExecutionMetricsKeys(EvaluatorKeys, total=False):
    """The keys of `execution_metrics`."""

    max_tool_calls: int | None
    max_llm_calls: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    max_duration_ms: float | None


class ExpectKeys(EvaluatorKeys, total=False):
    """The keys of `expect`."""

    tools_called_mode: Literal["set", "multiset", "sequence"]
    tools_not_called: Literal[False] | Sequence[str]
    tool_params: Literal[False] | Sequence[Mapping[str, Any]]
    response_contains: Literal[False] | Sequence[str]
    response_contains_any: Literal[False] | Sequence[Sequence[str]]
    response_not_contains: Literal[False] | Sequence[str]
    response_matches: Literal[False] | Sequence[str]
    max_latency_ms: Literal[False] | float | None
    max_tokens: Literal[False] | float | None
    max_cost_usd: Literal[False] | float | None
    min_tool_calls: Literal[False] | int | None
    max_tool_calls: Literal[False] | int | None
    json_valid: bool
    json_schema: Literal[False] | Mapping[str, Any] | None
    min_length: Literal[False] | int | None
    max_length: Literal[False] | int | None
    tools_called: Literal[False] | Sequence[str] | None
    tools_acceptable: Literal[False] | Sequence[Sequence[str]] | None
    no_tool_errors: bool
    response_non_empty: bool


class FieldAccuracyKeys(EvaluatorKeys, total=False):
    """The keys of `field_accuracy`."""

    aggregation: Literal["weighted_average", "all_or_nothing"]


class IcontainsKeys(NegatableKeys, total=False):
    """The keys of `icontains`."""

    values: Sequence[str] | None


class IcontainsAnyKeys(NegatableKeys, total=False):
    """The keys of `icontains_any`."""


class IsJsonKeys(NegatableKeys, total=False):
    """The keys of `is_json`."""


class JsonSchemaKeys(NegatableKeys, total=False):
    """The keys of `json_schema`."""


class LatencyKeys(EvaluatorKeys, total=False):
    """The keys of `latency`."""


class LlmJudgeKeys(EvaluatorKeys, total=False):
    """The keys of `llm_judge`."""

    model: str | None
    target: str | None
    samples: int


class RegexKeys(NegatableKeys, total=False):
    """The keys of `regex`."""

    values: Sequence[str] | None


class RubricKeys(EvaluatorKeys, total=False):
    """The keys of `rubric`."""

    model: str | None
    target: str | None


class SimilarityKeys(NegatableKeys, total=False):
    """The keys of `similarity`."""

    values: Sequence[str] | None


class StartsWithKeys(NegatableKeys, total=False):
    """The keys of `starts_with`."""

    values: Sequence[str] | None


class TokenUsageKeys(EvaluatorKeys, total=False):
    """The keys of `token_usage`."""

    max_total: int | None
    max_input: int | None
    max_output: int | None


class ToolTrajectoryKeys(EvaluatorKeys, total=False):
    """The keys of `tool_trajectory`."""

    minimums: Mapping[str, Any]
    maximums: Mapping[str, Any]
    ignore: Sequence[str]
    forbidden: Sequence[str]
