"""Every assertion and every evaluator without a judge can pass, and can fail."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest

from assay.model.expect import Expect
from assay.model.message import ToolCall
from assay.model.observation import Observation, Usage
from assay.model.score import EvaluationScore
from assay.ports import Resources
from assay.scoring import prepare
from unit.evaluator_calls import awaited, context_of, judged, spec_of

Row = tuple[dict[str, Any], Observation, Observation]


def text(words: str) -> Observation:
    return Observation(words)


def called(*tools: str, **keys: Any) -> Observation:
    return Observation(tool_calls=tuple(ToolCall(tool, {"n": 1}, **keys) for tool in tools))


PARAM = {"tool": "a", "paramName": "n", "assertion": "equals"}
ASSERTIONS: dict[str, tuple[Any, Observation, Observation]] = {
    "toolsCalled": (["a"], called("a", "a"), called("a", "b")),
    "toolsAcceptable": ([["a"], ["__none__"]], called(), called("b")),
    "toolsNotCalled": (["a"], called("b"), called("b", "a")),
    "toolParams": ([{**PARAM, "value": 1}], called("a"), called("b")),
    "noToolErrors": (True, called("a"), called("a", success=False)),
    "responseNonEmpty": (True, text("x"), text(" \n")),
    "responseContains": (["x"], text("x"), text("X")),
    "responseContainsAny": ([["x", "y"]], text("y"), text("z")),
    "responseNotContains": (["x"], text("X"), text("x")),
    "responseMatches": (["^x$"], text("x"), text("x\n")),
    "maxLatencyMs": (5, Observation(duration_ms=5), Observation(duration_ms=5.1)),
    "maxTokens": (1, text("four"), text("fives")),
    "maxCostUsd": (0.5, Observation(cost_usd=0.5), Observation(cost_usd=0.6)),
    "minToolCalls": (1, called("a"), called()),
    "maxToolCalls": (1, called("a"), called("a", "a")),
    "jsonValid": (True, text("[]"), text("[")),
    "jsonSchema": ({"type": "array"}, text("[]"), text("{}")),
    "minLength": (2, text("ab"), text("a")),
    "maxLength": (2, text("ab"), text("abc")),
}
STEPS = [{"tool": "a", "args": {"n": 1}}, {"tool": "b"}]
USED = Observation(usage=Usage(3, 4), tool_calls=(), llm_calls=1, cost_usd=0.5, duration_ms=5)
EVALUATORS: dict[str, Row] = {
    "expect": ({"responseContains": ["x"]}, text("x"), text("y")),
    "equals": ({"value": 1}, text("1.0"), text('"1"')),
    "contains": ({"value": "x"}, text("x"), text("X")),
    "contains_any": ({"values": ["x", "y"]}, text("y"), text("z")),
    "icontains_any": ({"values": ["x", "y"]}, text("Y"), text("z")),
    "contains_all": ({"values": ["x", "y"]}, text("xy"), text("y")),
    "icontains": ({"value": "x"}, text("X"), text("y")),
    "starts_with": ({"value": "x"}, text("xy"), text("yx")),
    "ends_with": ({"value": "x"}, text("yx"), text("xy")),
    "regex": ({"value": "x(?=y)"}, text("xy"), text("x")),
    "is_json": ({}, text("{}"), text("{")),
    "json_schema": ({"value": {"const": True}}, text("true"), text("1")),
    "similarity": ({"value": "abcdefghij"}, text("abcdefghiX"), text("abXXXXXXXX")),
    "tool_trajectory": ({"expected": STEPS}, called("a", "c", "b"), called("b", "a")),
    "latency": ({"threshold": 5}, USED, Observation(duration_ms=6)),
    "cost": ({"budget": 0.5}, USED, Observation(cost_usd=0.6)),
    "token_usage": ({"max_total": 7}, USED, Observation(usage=Usage(4, 4))),
    "execution_metrics": ({"max_tool_calls": 0}, USED, called("a")),
    "field_accuracy": ({"fields": [{"path": "n"}]}, text('{"n": 1}'), text('{"n": "1"}')),
    "composite": (
        {
            "evaluators": (spec_of("is_json", name="json"),),
            "aggregator": {"type": "all"},
        },
        text("{}"),
        text("{"),
    ),
}
ASKING = {"llm_judge", "rubric", "code_judge", "python"}


def test_no_assertion_and_no_evaluator_is_left_out() -> None:
    assert set(ASSERTIONS) == set(Expect.model_fields) - {"toolsCalledMode"}
    ours = {e.name for e in entry_points(group="assay.evaluators") if e.module.startswith("assay.")}
    assert set(EVALUATORS) == ours - ASKING


@pytest.mark.parametrize("key", ASSERTIONS)
def test_an_assertion_holds_and_fails(key: str) -> None:
    value, good, bad = ASSERTIONS[key]
    held, missed = judged("expect", good, **{key: value}), judged("expect", bad, **{key: value})
    assert (held.score, held.verdict, held.misses) == (1.0, "pass", ())
    assert (missed.score, missed.verdict, missed.hits) == (0.0, "fail", ())
    assert all(said.startswith(f"{key}: ") for said in (*held.hits, *missed.misses))


def said(kind: str, seen: Observation) -> EvaluationScore:
    spec = spec_of(**{"kind": kind, "name": kind, **EVALUATORS[kind][0]})
    return awaited(prepare(spec, Resources())(context_of(seen, {"n": 1})))


@pytest.mark.parametrize("kind", EVALUATORS)
def test_an_evaluator_passes_and_fails(kind: str) -> None:
    _, good, bad = EVALUATORS[kind]
    assert said(kind, good).verdict == "pass"
    assert said(kind, bad).verdict == "fail"


@pytest.mark.parametrize(
    "kind", ["latency", "cost", "token_usage", "execution_metrics", "tool_trajectory"]
)
def test_unreported_data_makes_an_evaluator_errored(kind: str) -> None:
    assert said(kind, text("x")).score is None
    assert said(kind, text("x")).error
