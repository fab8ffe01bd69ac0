"""How a result is written, whatever an evaluator or a target put into it."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.case import EvalCase, Origin
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.model.result import EvalCaseResult
from assay.model.score import EvaluationScore

TEXT = st.text(max_size=5)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MEASURE = st.none() | st.floats(0, 1e9)
SCORES = st.builds(
    EvaluationScore,
    score=st.floats(0, 1),
    hits=TEXTS,
    misses=TEXTS,
    reasoning=TEXT,
    details=st.dictionaries(TEXT, JSON, max_size=3),
    failed_gate=TEXT,
    skipped_assertions=TEXTS,
) | st.builds(EvaluationScore.errored, TEXT)
SEEN = st.builds(
    Observation,
    response=TEXT,
    tool_calls=st.none() | st.lists(st.builds(ToolCall, st.just("t")), max_size=2).map(tuple),
    usage=st.none() | st.builds(Usage, st.none() | st.integers(0), st.none() | st.integers(0)),
    cost_usd=MEASURE,
    duration_ms=MEASURE,
)


def result(
    *scores: EvaluationScore, seen: Observation, failures: tuple[str, ...] = ("no",)
) -> EvalCaseResult:
    specs = tuple(
        EvaluatorSpec.model_construct(type="t", name=f"e{n}", weight=1.0)
        for n in range(len(scores))
    )
    place = Origin("a.yaml", 2, 3)
    case = EvalCase("c", (Message("user", "q"),), specs, locate=lambda steps: place)
    return EvalCaseResult(case, "failed", 0.5, "fail", scores, seen, failures)


@given(st.lists(SCORES, max_size=3), SEEN, TEXTS)
def test_to_json_equals_the_json_of_to_dict(
    scores: list[EvaluationScore], seen: Observation, failures: tuple[str, ...]
) -> None:
    made = result(*scores, seen=seen, failures=failures)
    assert json.loads(made.to_json()) == made.to_dict() == json.loads(json.dumps(made.to_dict()))
    assert made.to_dict()["details"] == made.details
    assert made.details["evaluators"] == [entry.to_dict() for entry in made.evaluators]
    assert made.details["evaluators"] == [
        {"name": f"e{n}", "type": "t", "weight": 1.0, **score.to_dict()}
        for n, score in enumerate(scores)
    ]


@given(SCORES)
def test_all_fields_of_a_score_are_written(score: EvaluationScore) -> None:
    written = score.to_dict()
    read = {name: getattr(score, name) for name in ("reasoning", "details", "error", "skipped")}
    assert {name: written.get(name, type(value)()) for name, value in read.items()} == read
    assert written.get("failedGate", "") == score.failed_gate
    assert (written["score"], written["verdict"]) == (score.score, score.verdict)
    assert (tuple(written["hits"]), tuple(written["misses"])) == (score.hits, score.misses)


def test_texts_of_a_score_are_converted_to_str() -> None:
    odd: Any = {"hits": (1,), "misses": [None], "reasoning": 3, "failed_gate": None}
    written = result(EvaluationScore(0.5, **odd), seen=Observation()).to_dict()["details"]
    entry = written["evaluators"][0]
    assert (entry["hits"], entry["misses"], entry["reasoning"]) == (["1"], ["None"], "3")
    assert "failedGate" not in entry


def test_details_are_in_the_order_of_a_result_file() -> None:
    seen = Observation("r", (ToolCall("t"),), usage=Usage(1, None), cost_usd=0.5, duration_ms=2.0)
    score = EvaluationScore(0.5, skipped_assertions=("x",), failed_gate="g")
    written = result(score, seen=seen).to_dict()
    assert [*written] == ["id", "description", "passed", "durationMs", "error", "details"]
    details = written["details"]
    assert details.pop("evaluators")[0]["failedGate"] == "g"
    assert details == {
        "outcome": "failed",
        "score": 0.5,
        "verdict": "fail",
        "response": "r",
        "failures": ["no"],
        "trials": [],
        "toolsCalled": ["t"],
        "usage": {"inputTokens": 1},
        "costUsd": 0.5,
        "skippedAssertions": 1,
        "source": "a.yaml:2",
    }


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("held", "written"),
    [
        (math.nan, None),
        (-math.inf, None),
        (Odd(), "odd"),
        ((1, (2,)), [1, [2]]),
        ({1: 2}, {"1": 2}),
        (2**80, 2**80),
        ("half \ud800 pair", "half ? pair"),
        ({"\udfff": "\ud800"}, {"?": "?"}),
        (Odd, str(Odd)),
    ],
)
def test_details_of_a_plugin_evaluator_are_written_as_json(held: Any, written: Any) -> None:
    score = EvaluationScore(1.0, details={"held": held})
    made = result(score, seen=Observation())
    assert made.details["evaluators"][0]["details"] == {"held": written}
    assert msgspec.json.decode(made.to_json()) == made.to_dict()


def test_half_of_a_surrogate_pair_in_an_answer_is_written_as_a_question_mark() -> None:
    made = result(seen=Observation("a\ud800b"), failures=("\udc00",))
    assert made.to_dict()["details"]["response"] == "a?b"
    assert made.to_dict()["error"] == "?"
