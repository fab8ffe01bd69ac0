"""The built-in evaluators as functions, for cases that are written in Python.

Each has the name and the keys of its type in eval files. A mistake is an EvalFileErrors at the line
of Python that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack

from assay import registry
from assay.errors import UsageError
from assay.loaders.python_cases import evaluator_of, read_evaluator
from assay.model import keywords as keys_of
from assay.model.evaluator import EvaluatorSpec
from assay.model.signatures import shows_keys
from assay.wire.validation_errors import kind_of

#: A call to expect: the name of a tool, one with its arguments, or a step with all of its keys.
Step = str | tuple[str, Mapping[str, Any]] | Mapping[str, Any]


def _made(kind: str, keys: Mapping[str, Any], **positional: Any) -> EvaluatorSpec:
    given = {name: value for name, value in positional.items() if value is not ...}
    return read_evaluator({"type": kind, **given, **keys}, registry.evaluators.get(kind))


@shows_keys
def code_judge(script: Sequence[str], **keys: Unpack[keys_of.CodeJudgeKeys]) -> EvaluatorSpec:
    """Runs a program: the case and the observation go in as JSON, a score comes out."""
    return _made("code_judge", keys, script=script)


@shows_keys
def composite(
    evaluators: Sequence[keys_of.Evaluator], **keys: Unpack[keys_of.CompositeKeys]
) -> EvaluatorSpec:
    """Combines the scores of several evaluators into one."""
    return _made("composite", keys, evaluators=evaluators)


@shows_keys
def contains(value: str = ..., **keys: Unpack[keys_of.ContainsKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """The answer contains the text, case-sensitive."""
    return _made("contains", keys, value=value)


@shows_keys
def contains_all(
    values: str | Sequence[str], **keys: Unpack[keys_of.ContainsAllKeys]
) -> EvaluatorSpec:
    """The answer contains all of the texts."""
    return _made("contains_all", keys, values=values)


@shows_keys
def contains_any(
    values: str | Sequence[str], **keys: Unpack[keys_of.ContainsAnyKeys]
) -> EvaluatorSpec:
    """The answer contains at least one of the texts."""
    return _made("contains_any", keys, values=values)


@shows_keys
def cost(budget: float, **keys: Unpack[keys_of.CostKeys]) -> EvaluatorSpec:
    """The answer cost at most `budget` US dollars."""
    return _made("cost", keys, budget=budget)


@shows_keys
def ends_with(value: str = ..., **keys: Unpack[keys_of.EndsWithKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """The answer ends with the text."""
    return _made("ends_with", keys, value=value)


@shows_keys
def equals(value: Any = ..., **keys: Unpack[keys_of.EqualsKeys]) -> EvaluatorSpec:
    """The answer equals the value, or the expected output of the case when none is given."""
    return _made("equals", keys, value=value)


@shows_keys
def execution_metrics(**keys: Unpack[keys_of.ExecutionMetricsKeys]) -> EvaluatorSpec:
    """Limits on calls, tokens, cost and time, each one check."""
    return _made("execution_metrics", keys)


@shows_keys
def expect(**keys: Unpack[keys_of.ExpectKeys]) -> EvaluatorSpec:
    """Assertions on tools and text; a failed one fails the case."""
    return _made("expect", keys)


@shows_keys
def field_accuracy(
    fields: Sequence[Mapping[str, Any]], **keys: Unpack[keys_of.FieldAccuracyKeys]
) -> EvaluatorSpec:
    """The share of fields, by weight, that agree with the expected output."""
    return _made("field_accuracy", keys, fields=fields)


@shows_keys
def icontains(value: str = ..., **keys: Unpack[keys_of.IcontainsKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """The answer contains the text, ignoring case."""
    return _made("icontains", keys, value=value)


@shows_keys
def icontains_any(
    values: str | Sequence[str], **keys: Unpack[keys_of.IcontainsAnyKeys]
) -> EvaluatorSpec:
    """The answer contains at least one of the texts, ignoring case."""
    return _made("icontains_any", keys, values=values)


@shows_keys
def is_json(**keys: Unpack[keys_of.IsJsonKeys]) -> EvaluatorSpec:
    """The answer is valid JSON."""
    return _made("is_json", keys)


@shows_keys
def json_schema(
    value: Mapping[str, Any] | bool, **keys: Unpack[keys_of.JsonSchemaKeys]
) -> EvaluatorSpec:
    """The answer is JSON that matches the schema."""
    return _made("json_schema", keys, value=value)


@shows_keys
def latency(threshold: float, **keys: Unpack[keys_of.LatencyKeys]) -> EvaluatorSpec:
    """The answer came within `threshold` milliseconds."""
    return _made("latency", keys, threshold=threshold)


@shows_keys
def llm_judge(prompt: str = ..., **keys: Unpack[keys_of.LlmJudgeKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """Asks a judge for a score; `prompt` is text or the path of a file with it."""
    return _made("llm_judge", keys, prompt=prompt)


def python(function: str | Callable[..., Any], **keys: Any) -> EvaluatorSpec:
    """Calls a function, or the one that 'package.module:function' names."""
    if isinstance(function, str):
        kind = f"python:{function.removeprefix('python:')}"
        return read_evaluator({"type": kind, **keys}, registry.evaluators.get("python"))
    if not callable(function):
        message = f"{kind_of(function)} is not a function, nor the name of one"
        raise UsageError(f"{message}: give a function or 'package.module:function'")
    return evaluator_of(function, **keys)


@shows_keys
def regex(value: str = ..., **keys: Unpack[keys_of.RegexKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """The regular expression is found in the answer."""
    return _made("regex", keys, value=value)


@shows_keys
def rubric(
    rubrics: Sequence[str | Mapping[str, Any]], **keys: Unpack[keys_of.RubricKeys]
) -> EvaluatorSpec:
    """One judge call decides all criteria; a required one that is not met fails the case."""
    return _made("rubric", keys, rubrics=rubrics)


@shows_keys
def similarity(value: str = ..., **keys: Unpack[keys_of.SimilarityKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """Similarity by edit distance to the value, or to the expected output when none is given."""
    return _made("similarity", keys, value=value)


@shows_keys
def starts_with(value: str = ..., **keys: Unpack[keys_of.StartsWithKeys]) -> EvaluatorSpec:  # type: ignore[assignment]
    """The answer starts with the text."""
    return _made("starts_with", keys, value=value)


@shows_keys
def token_usage(**keys: Unpack[keys_of.TokenUsageKeys]) -> EvaluatorSpec:
    """Limits on the tokens of an answer: in total, of the input, of the output."""
    return _made("token_usage", keys)


@shows_keys
def tool_trajectory(
    mode: Literal["any_order", "in_order", "exact", "superset", "subset"] = ...,  # type: ignore[assignment]
    expected: Sequence[Step] = ...,  # type: ignore[assignment]
    **keys: Unpack[keys_of.ToolTrajectoryKeys],
) -> EvaluatorSpec:
    """Compares the calls the agent made with the calls it should have made.

    A step is the name of a tool, `(name, arguments)`, or a mapping with the keys of eval files.
    """
    return _made("tool_trajectory", keys, mode=mode, expected=_steps(expected))


def _steps(expected: Any) -> Any:
    return [_step(step) for step in expected] if isinstance(expected, (list, tuple)) else expected


def _step(step: Any) -> Any:
    if isinstance(step, str):
        return {"tool": step}
    if isinstance(step, tuple) and len(step) == 2:
        return {"tool": step[0], "args": step[1]}
    return step
