"""composite: members, weights, aggregators, gates and members that break."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.errors import TargetError, UsageError
from assay.evaluators.composite import Aggregator, CompositeEvaluator
from assay.evaluators.rubric import RubricEvaluator
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.ports import Resources
from unit.conftest import Project
from unit.fake_judge import Judge, answer, llm_judge, resources, scored


class Fixed(EvaluatorSpec):
    """Says what it is told to say, now or later."""

    says: Any = 1.0
    later: bool = False

    def runs_in(self) -> CheckPlace:
        return "loop"

    def evaluate(self, context: Context) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        said = self.says if isinstance(self.says, EvaluationScore) else EvaluationScore(self.says)
        return self._later(said) if self.later else said

    async def _later(self, said: EvaluationScore) -> EvaluationScore:
        await asyncio.sleep(0)
        return said


def fixed(name: str, says: Any = 1.0, **keys: Any) -> Fixed:
    return Fixed.model_construct(type="fixed", name=name, says=says, **keys)


def composite(*members: EvaluatorSpec, **aggregator: Any) -> CompositeEvaluator:
    return CompositeEvaluator(
        name="both",
        type="composite",
        evaluators=members,
        aggregator=Aggregator.model_validate(aggregator),
    )


def of(*scores: float, **aggregator: Any) -> float | None:
    members = [fixed(f"m{index}", score) for index, score in enumerate(scores)]
    return scored(composite(*members, **aggregator)).score


# Aggregators


def test_the_average_is_by_the_members_weights() -> None:
    score = scored(composite(fixed("a", 1.0, weight=3.0), fixed("b", 0.2)))
    assert score.score == pytest.approx(0.8)
    assert [(m["name"], m["type"], m["weight"], m["score"]) for m in score.details["members"]] == [
        ("a", "fixed", 3.0, 1.0),
        ("b", "fixed", 1.0, 0.2),
    ]


def test_the_aggregators_weights_override_the_members() -> None:
    score = scored(composite(fixed("a", 1.0, weight=9.0), fixed("b", 0.0), weights={"a": 1}))
    assert score.score == 0.5
    assert score.details["members"][0]["weight"] == 1.0


@pytest.mark.parametrize(
    ("scores", "aggregator", "expected"),
    [
        ((1, 0.5), {"type": "min"}, 0.5),
        ((0.9, 0.8), {"type": "all"}, 1.0),
        ((1.0, 0.79), {"type": "all"}, 0.0),
        ((0.0, 0.8), {"type": "any"}, 1.0),
        ((0.0, 0.79), {"type": "any"}, 0.0),
        ((1, 1, 0), {"type": "threshold", "threshold": 0.6}, 1.0),
        ((1, 0, 0), {"type": "threshold", "threshold": 0.6}, 0.0),
        ((1, 0.7, 0.7), {"type": "threshold", "threshold": 0.6}, 0.0),
        ((1, 0, 0), {"type": "threshold", "threshold": 0.6, "weights": {"m0": 4}}, 1.0),
        ((1, 0), {"type": "threshold", "threshold": 0.5}, 1.0),
        ((1, 0), {"type": "min", "weights": {"m1": 0}}, 1.0),
        ((1, 0), {"type": "all", "weights": {"m1": 0}}, 1.0),
        ((0, 1), {"type": "any", "weights": {"m1": 0}}, 0.0),
    ],
)
def test_aggregators(scores: tuple[float, ...], aggregator: Any, expected: float) -> None:
    assert of(*scores, **aggregator) == expected


@pytest.mark.parametrize("kind", ["weighted_average", "min", "all", "any", "threshold"])
def test_weights_that_are_all_zero_give_zero(kind: str) -> None:
    threshold = {"threshold": 0.0} if kind == "threshold" else {}
    assert of(1, 1, type=kind, weights={"m0": 0, "m1": 0}, **threshold) == 0.0


def test_hits_and_misses_name_their_member() -> None:
    good = EvaluationScore(1.0, hits=("it says 4",))
    bad = EvaluationScore(0.5, misses=("it says five",))
    score = scored(composite(fixed("a", good), fixed("b", bad), fixed("c", 0.3)))
    assert score.hits == ("a: it says 4",)
    assert score.misses == ("b: it says five", "c: scored 0.3")


def test_a_reason_tells_how_many_passed() -> None:
    spec = composite(fixed("a", 1.0), fixed("b", 0.0), type="threshold", threshold=0.9)
    assert scored(spec).reasoning == (
        "1 of 2 evaluators passed, a share of 0.5 by weight; 0.9 is needed"
    )


# Gates


@pytest.mark.parametrize("kind", ["weighted_average", "any"])
def test_a_required_member_that_is_not_met_fails_the_composite(kind: str) -> None:
    spec = composite(fixed("a", 1.0, weight=99.0), fixed("b", 0.5, required=True), type=kind)
    score = scored(spec)
    assert score.score
    assert score.score > 0.9
    assert score.verdict == "fail"
    assert score.failed_gate == "b: the score is 0.5, but a pass is required"


def test_a_failed_gate_of_a_member_fails_the_composite() -> None:
    gated = EvaluationScore(0.9, verdict="fail", failed_gate="required item 'x' is not met")
    score = scored(composite(fixed("a"), fixed("rubric", gated)))
    assert (score.verdict, score.failed_gate) == ("fail", "rubric: required item 'x' is not met")


def test_gates_come_through_nested_composites() -> None:
    inner = composite(fixed("a", 0.0, required=0.5))
    score = scored(composite(inner, fixed("b")))
    assert score.failed_gate == "both: a: the score is 0, but at least 0.5 is required"


# Members that break


def test_an_errored_member_makes_the_composite_errored() -> None:
    broken = EvaluationScore.errored("no trace available")
    score = scored(composite(fixed("a"), fixed("b", broken), fixed("c", ValueError("oops"))))
    assert score.error == "b: no trace available; c: it raised ValueError: oops"
    assert [m["score"] for m in score.details["members"]] == [1.0, None, None]


def test_an_errored_member_without_weight_does_not_matter() -> None:
    broken = EvaluationScore.errored("oops")
    assert scored(composite(fixed("a"), fixed("b", broken, weight=0.0))).score == 1.0
    assert scored(composite(fixed("a"), fixed("b", broken), weights={"b": 0})).score == 1.0
    required = fixed("b", broken, weight=0.0, required=True)
    assert scored(composite(fixed("a"), required)).error == "b: oops"


def test_a_failed_gate_counts_more_than_an_error() -> None:
    broken = EvaluationScore.errored("oops")
    score = scored(composite(fixed("a", 0.0, required=True), fixed("b", broken)))
    assert (score.score, score.verdict) == (0.0, "fail")
    assert score.failed_gate


def test_skipped_members_do_not_count() -> None:
    skipped = EvaluationScore(skipped="no seed data")
    assert scored(composite(fixed("a", 0.5), fixed("b", skipped))).score == 0.5
    assert scored(composite(fixed("b", skipped))).skipped == "no seed data"


def test_assertions_that_members_skipped_are_told() -> None:
    partial = EvaluationScore(1.0, skipped_assertions=("response_contains[0]",))
    score = scored(composite(fixed("a", partial), fixed("b", partial)))
    assert score.details["skipped"] == ["response_contains[0]"] * 2
    assert score.skipped_assertions == ("response_contains[0]",) * 2


@pytest.mark.parametrize("without_score", [{"error": "broken"}, {"skipped": "no seed data"}])
def test_a_composite_without_a_score_counts_skipped_assertions_too(
    without_score: dict[str, Any],
) -> None:
    member = EvaluationScore(**without_score, skipped_assertions=("a", "b"))
    score = scored(composite(fixed("a", member)))
    assert score.score is None
    assert score.skipped_assertions == ("a", "b")


# Waiting and sharing


def test_members_that_need_not_wait_are_combined_at_once() -> None:
    check = composite(fixed("a"), fixed("b")).prepare(Resources())
    assert isinstance(check(answer()), EvaluationScore)


def test_members_run_together() -> None:
    waiting = 0

    async def meet(request: Any) -> Observation:
        nonlocal waiting
        waiting += 1
        while waiting < 2:
            await asyncio.sleep(0)
        return Observation('{"score": 1}')

    judge = Judge()
    judge.ask = meet  # type: ignore[method-assign]
    members = llm_judge(name="a"), llm_judge(name="b"), fixed("c", 1.0, later=True)
    assert scored(composite(*members), judge).score == 1.0


def test_one_prepared_composite_serves_many_answers_at_once() -> None:
    judge = Judge(by=lambda r: {"score": 1.0 if "sunny" in r.messages[1].text else 0.0})
    check = composite(llm_judge(), fixed("b", 0.0)).prepare(resources(judge))

    async def together() -> list[float | None]:
        texts = ["sunny", "rainy"] * 20
        scores = await asyncio.gather(*(check(answer(text)) for text in texts))  # type: ignore[arg-type]
        return [score.score for score in scores]

    assert asyncio.run(together()) == [0.5, 0.0] * 20


def test_members_keep_their_prompt_and_rubrics() -> None:
    def judged(request: Any) -> Any:
        if "Is polite" in request.messages[1].text:
            return {"checks": [{"id": "rubric-1", "satisfied": True}]}
        return {"score": 0.6 if "Be harsh" in request.messages[1].text else 0}

    members = (
        llm_judge(prompt="Be harsh: {{candidate_answer}}"),
        RubricEvaluator.model_validate({"name": "r", "rubrics": ["Is polite"]}),
    )
    assert scored(composite(*members), Judge(by=judged)).score == 0.8


def test_a_judge_that_a_member_lacks_is_found_early() -> None:
    with pytest.raises(UsageError, match="no judge is set"):
        composite(llm_judge()).prepare(Resources())


# The llm_judge aggregator


def test_a_judge_can_combine() -> None:
    judge = Judge({"score": 0.7, "reasoning": "b matters more", "misses": ["b is weak"]})
    spec = composite(fixed("a", 1.0), fixed("b", 0.6), type="llm_judge", prompt="Weigh b twice.")
    score = scored(spec, judge)
    assert (score.score, score.verdict, score.reasoning) == (0.7, "borderline", "b matters more")
    assert score.misses == ("b: scored 0.6", "b is weak")
    assert score.details["judge"]["calls"] == 1
    assert [m["name"] for m in score.details["members"]] == ["a", "b"]
    assert judge.prompt.startswith("Weigh b twice.")
    assert '"verdict": "borderline"' in judge.prompt


@pytest.mark.parametrize("name", ["evaluator_results", "EVALUATOR_RESULTS_JSON"])
def test_a_prompt_says_where_the_results_stand(name: str) -> None:
    judge = Judge({"score": 1})
    spec = composite(fixed("a", 0.9), type="llm_judge", prompt=f"Combine {{{{{name}}}}} fairly.")
    scored(spec, judge)
    before, _, rest = judge.prompt.partition("]\n")
    assert before.endswith(f" {name}")
    assert json.loads(rest.rpartition("\n[/")[0])["a"]["score"] == 0.9
    assert judge.prompt.endswith("] fairly.")


def test_the_prompt_of_an_aggregator_may_be_a_file(project: Project) -> None:
    project.write("combine.md", "From the file: {{evaluator_results}}")
    case = project.case(
        """
        cases:
          - id: a
            input: x
            evaluators:
              - type: composite
                evaluators: [{type: contains, value: x}]
                aggregator: {type: llm_judge, prompt: combine.md}
        """
    )
    judge = Judge({"score": 1})
    assert scored(case.evaluators[0], judge, Context(case, Observation("x"))).score == 1.0
    assert judge.prompt.startswith("From the file: [data-")


def test_a_judge_that_cannot_combine_is_errored() -> None:
    spec = composite(fixed("a"), type="llm_judge", prompt="Combine.")
    score = scored(spec, Judge(TargetError("down")))
    assert score.error == "the aggregator failed: the judge 'a-judge' gave no answer: down"
    assert score.details["members"][0]["name"] == "a"


def test_a_failed_gate_stands_even_when_the_aggregator_breaks() -> None:
    spec = composite(fixed("a", 0.25, required=True), type="llm_judge", prompt="Combine.")
    score = scored(spec, Judge(TargetError("down")))
    assert (score.score, score.verdict) == (0.25, "fail")


def test_a_missing_judge_of_the_aggregator_is_found_early() -> None:
    with pytest.raises(UsageError, match="no judge is set"):
        composite(fixed("a"), type="llm_judge", prompt="Combine.").prepare(Resources())


# The code_judge aggregator


def program(tmp_path: Path, body: str) -> list[str]:
    file = tmp_path / "combine.py"
    file.write_text(f"import json, sys\nasked = json.load(sys.stdin)\n{body}")
    return [sys.executable, str(file)]


def test_a_program_can_combine(tmp_path: Path) -> None:
    body = """
results = asked["results"]
best = max(results.values(), key=lambda result: result["score"])
print(json.dumps({"score": best["score"], "reasoning": asked["candidate_answer"],
                  "details": {"best": best["name"], "members": "mine"}}))
"""
    script = program(tmp_path, body)
    score = scored(composite(fixed("a", 0.2), fixed("b", 0.9), type="code_judge", script=script))
    assert (score.score, score.reasoning, score.details["best"]) == (0.9, "4", "b")
    assert [m["score"] for m in score.details["members"]] == [0.2, 0.9]


def test_a_program_that_fails_is_errored(tmp_path: Path) -> None:
    script = program(tmp_path, "sys.exit(3)")
    score = scored(composite(fixed("a"), type="code_judge", script=script))
    assert score.error.startswith("the aggregator failed: the program")
    assert score.details["exit_code"] == 3
    assert score.details["members"][0]["name"] == "a"
