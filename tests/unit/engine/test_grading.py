"""Scores to outcomes: weights, gates, thresholds, and what errored means."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.engine.grading import Preparation, aggregate
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult
from assay.model.score import EvaluationScore
from assay.ports import Check, Resources

SEEN = Observation("an answer")


class Fixed(EvaluatorSpec):
    """Answers with the given text."""

    says: Any = 1.0

    def runs_in(self) -> CheckPlace:
        return "loop"

    def evaluate(self, context: Context) -> EvaluationScore:
        if isinstance(self.says, BaseException):
            raise self.says
        if isinstance(self.says, (int, float)):
            return EvaluationScore(float(self.says))
        said: EvaluationScore = self.says
        return said


def spec(says: Any = 1.0, **keys: Any) -> Fixed:
    return Fixed.model_construct(type="fixed", says=says, **{"name": "fixed", **keys})


def case(*specs: EvaluatorSpec, **keys: Any) -> EvalCase:
    return EvalCase("c1", (Message("user", "hello"),), specs, **keys)


def grade(*specs: EvaluatorSpec, observation: Observation = SEEN, **keys: Any) -> EvalCaseResult:
    grader = Preparation(Resources()).grader(case(*specs, **keys))
    result = grader.grade(observation)

    async def wait() -> EvalCaseResult:
        return result if isinstance(result, EvalCaseResult) else await result

    return asyncio.run(wait())


# Weights and thresholds


def test_the_score_of_a_case_is_the_mean_by_weight() -> None:
    result = grade(spec(1.0, weight=3.0), spec(0.2, weight=1.0))
    assert result.score == pytest.approx(0.8)
    assert (result.outcome, result.verdict) == ("passed", "pass")


def test_weight_zero_reports_but_does_not_count() -> None:
    result = grade(spec(1.0), spec(0.0, weight=0.0, name="shadow"))
    assert (result.score, result.outcome) == (1.0, "passed")
    assert [e.score.score for e in result.evaluators] == [1.0, 0.0]


def test_all_weights_zero_gives_zero() -> None:
    result = grade(spec(1.0, weight=0.0))
    assert (result.score, result.outcome) == (0.0, "failed")


@pytest.mark.parametrize("weight", [1e308, 5e-324])
@pytest.mark.parametrize("required", [False, 0.5])
def test_weights_may_be_as_large_and_as_small_as_numbers_are(
    weight: float, required: bool | float
) -> None:
    high, low = (spec(s, weight=weight, required=required, name=str(s)) for s in (1.0, 0.5))
    assert grade(high, low, threshold=0.7).score == 0.75
    failed = grade(high, low)
    assert (failed.outcome, failed.score, failed.verdict) == ("failed", 0.75, "borderline")


@pytest.mark.parametrize(
    ("score", "verdict"),
    [(1.0, "pass"), (0.8, "pass"), (0.8 - 1e-12, "pass"), (0.79, "borderline"), (0.6, "borderline"),
     (0.6 - 1e-12, "borderline"), (0.59, "fail"), (0.0, "fail")],
)  # fmt: skip
def test_the_verdict_follows_from_the_score(score: float, verdict: str) -> None:
    assert EvaluationScore(score).verdict == verdict
    assert grade(spec(score)).verdict == verdict


@pytest.mark.parametrize(
    ("threshold", "outcome"), [(None, "failed"), (0.7, "passed"), (0.75, "failed"), (0.0, "passed")]
)
def test_a_case_passes_from_its_threshold(threshold: float | None, outcome: str) -> None:
    assert grade(spec(0.7), threshold=threshold).outcome == outcome


def test_thresholds_tolerate_rounding() -> None:
    result = grade(
        *(spec(s, weight=w) for s, w in ((0.9, 0.1), (0.8, 0.7), (0.7, 0.2))), threshold=0.79
    )
    assert result.outcome == "passed"


# Gates


def test_a_required_evaluator_that_does_not_pass_fails_the_case() -> None:
    result = grade(spec(1.0, weight=99.0), spec(0.7, required=True, name="gate"))
    assert (result.outcome, result.verdict) == ("failed", "fail")
    assert result.failures[0].startswith("gate: the score is 0.7, but a pass is required")


@pytest.mark.parametrize(("score", "outcome"), [(0.5, "passed"), (0.49, "failed")])
def test_required_may_be_a_least_score(score: float, outcome: str) -> None:
    assert grade(spec(1.0, weight=9.0), spec(score, required=0.5)).outcome == outcome


def test_a_required_evaluator_of_weight_zero_is_still_a_gate() -> None:
    assert grade(spec(1.0), spec(0.0, weight=0.0, required=True)).outcome == "failed"


def test_a_gate_inside_an_evaluator_fails_the_case_whatever_the_score() -> None:
    result = grade(spec(EvaluationScore(0.95, "fail", failed_gate="'safe' is not met")))
    assert (result.outcome, result.failures) == ("failed", ("fixed: 'safe' is not met",))


# Errors are not zeros


def test_an_errored_evaluator_makes_the_case_errored_not_failed() -> None:
    result = grade(spec(1.0), spec(EvaluationScore.errored("the judge is away"), name="judge"))
    assert (result.outcome, result.score, result.verdict) == ("errored", None, None)
    assert result.failures == ("judge: the judge is away",)
    assert [e.score.score for e in result.evaluators] == [1.0, None]


def test_a_crash_is_an_error_and_the_others_still_run() -> None:
    result = grade(spec(ZeroDivisionError("division by zero")), spec(0.5))
    assert result.outcome == "errored"
    assert "it raised ZeroDivisionError: division by zero" in result.failures[0]
    assert result.evaluators[1].score.score == 0.5


@pytest.mark.parametrize("raised", [SystemExit(7), asyncio.CancelledError()])
def test_an_evaluator_cannot_end_the_program_or_the_run(raised: BaseException) -> None:
    class Later(Fixed):
        async def evaluate(self, context: Context) -> EvaluationScore:  # type: ignore[override]
            return super().evaluate(context)

    later = Later.model_construct(type="later", name="later", says=raised)
    result = graded(case(spec(raised), later, spec(0.5, name="other")))
    said = f"it raised {type(raised).__name__}" + (": 7" if str(raised) else "")
    assert result.failures == (f"fixed: {said}", f"later: {said}")
    assert result.evaluators[2].score.score == 0.5


def test_an_evaluator_that_is_waited_for_can_be_cancelled() -> None:
    class Endless(EvaluatorSpec):
        async def evaluate(self, context: Context) -> EvaluationScore:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def go() -> None:
        endless = case(Endless.model_construct(type="endless", name="endless"))
        task = asyncio.create_task(Preparation(Resources()).grader(endless).graded(SEEN))
        await started.wait()
        task.cancel()
        await task

    started = asyncio.Event()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())


def test_an_errored_evaluator_without_weight_does_not_count() -> None:
    broken = EvaluationScore.errored("away")
    assert grade(spec(1.0), spec(broken, weight=0.0)).outcome == "passed"
    assert grade(spec(1.0), spec(broken, weight=0.0, required=True)).outcome == "errored"
    assert grade(spec(1.0), spec(broken, weight=0.0, required=0.0)).outcome == "errored"


def test_a_failed_gate_decides_although_another_evaluator_errored() -> None:
    result = grade(spec(EvaluationScore.errored("away")), spec(0.0, required=True, name="gate"))
    assert result.outcome == "failed"
    assert any("away" in reason for reason in result.failures)


def test_an_evaluator_that_returns_something_else_is_errored() -> None:
    class Odd(EvaluatorSpec):
        def evaluate(self, context: Context) -> Any:
            return 0.9

    result = graded(case(Odd.model_construct(type="odd", name="odd")))
    assert result.failures == ("odd: it returned float, not an EvaluationScore",)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1, True, "1"])
def test_no_other_value_is_a_score(score: Any) -> None:
    with pytest.raises(ValueError, match="score"):
        EvaluationScore(score)


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.0, "pass"), (0.79, "pass"), (0.5, "borderline"), (1.0, "great")]
)
def test_a_verdict_may_be_stricter_than_the_score_but_not_laxer(score: float, verdict: Any) -> None:
    with pytest.raises(ValueError, match=f"the verdict is '{verdict}'"):
        EvaluationScore(score, verdict)
    assert EvaluationScore(score, "fail").verdict == "fail"


def test_a_score_and_an_error_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        EvaluationScore(0.5, error="broken")
    with pytest.raises(ValueError, match="exactly one"):
        EvaluationScore()
    with pytest.raises(ValueError, match="no verdict"):
        EvaluationScore(verdict="pass", error="broken")


def test_a_target_that_failed_makes_the_case_errored() -> None:
    result = grade(spec(1.0), observation=Observation(error="connection refused"))
    assert (result.outcome, result.error, result.evaluators) == (
        "errored",
        "connection refused",
        (),
    )


# Skipped


def test_a_case_to_skip_is_not_judged() -> None:
    result = grade(spec(0.0), skip="the tool is being rebuilt")
    assert (result.outcome, result.error) == ("skipped", "the tool is being rebuilt")


class Judged(EvaluatorSpec):
    """Cannot be made ready without a judge."""

    def prepare(self, resources: Resources) -> Check:
        resources.judge(None, None)
        raise AssertionError("there is no judge")


def test_a_case_to_skip_needs_no_judge() -> None:
    judged = Judged.model_construct(type="judged", name="judged")
    assert grade(judged, skip="there is no judge yet").outcome == "skipped"
    with pytest.raises(UsageError):
        grade(judged)


def test_details_are_the_evaluators_own() -> None:
    """A key of ours in them, such as that of skipped assertions, means nothing."""
    for own in (3, "one", ["a"], None):
        result = grade(spec(EvaluationScore(1.0, details={"skipped": own})))
        assert result.skipped_assertions == 0
        assert result.to_dict()["details"]["evaluators"][0]["details"] == {"skipped": own}


def test_nothing_left_to_check_is_skipped_not_passed() -> None:
    result = grade(spec(EvaluationScore(skipped="nothing verified")))
    assert (result.outcome, result.failures) == ("skipped", ("nothing verified",))
    assert grade(spec(EvaluationScore(skipped="nothing verified")), spec(1.0)).outcome == "passed"


# Waiting


class Slow(EvaluatorSpec):
    """Answers when all that it waits for have been asked."""

    gate: ClassVar[asyncio.Barrier]

    async def evaluate(self, context: Context) -> EvaluationScore:
        await Slow.gate.wait()
        return EvaluationScore(1.0)


def graded(of: EvalCase, observation: Observation = SEEN) -> EvalCaseResult:
    async def go() -> EvalCaseResult:
        return await Preparation(Resources()).grader(of).graded(observation)

    return asyncio.run(go())


def test_evaluators_wait_at_the_same_time() -> None:
    async def go() -> EvalCaseResult:
        Slow.gate = asyncio.Barrier(2)  # neither comes back before both are asked
        slow = [Slow.model_construct(type="slow", name=f"slow{i}") for i in range(2)]
        async with asyncio.timeout(10):
            return await Preparation(Resources()).grader(case(*slow)).graded(SEEN)

    assert asyncio.run(go()).outcome == "passed"


# Preparing


class Counting(EvaluatorSpec):
    """Counts how often it is prepared."""

    prepared: ClassVar[list[str]] = []

    def runs_in(self) -> CheckPlace:
        return "loop"

    def prepare(self, resources: Resources) -> Check:
        self.prepared.append(self.name)
        return lambda context: EvaluationScore(1.0)


class Unprepared(EvaluatorSpec):
    """Breaks before it has seen anything."""

    raises: Any

    def prepare(self, resources: Resources) -> Check:
        raise self.raises


class Mute(EvaluatorSpec):
    """Has no judgement."""


def unprepared(error: BaseException, **keys: Any) -> Unprepared:
    return Unprepared.model_construct(type="unprepared", name="new", raises=error, **keys)


@pytest.mark.parametrize(
    "error", [LookupError("no model"), SystemExit("no model"), asyncio.CancelledError("no model")]
)
def test_an_evaluator_that_cannot_be_prepared_is_errored(error: BaseException) -> None:
    result = grade(unprepared(error), spec(0.5))
    cause = f"it could not be prepared: {type(error).__name__}: no model"
    assert (result.outcome, result.error) == ("errored", f"new: {cause}")
    assert [e.score.score for e in result.evaluators] == [None, 0.5]
    assert grade(unprepared(error, weight=0.0), spec()).outcome == "passed"


def test_one_that_has_no_judgement_is_errored_too() -> None:
    result = grade(Mute.model_construct(type="mute", name="mute"), spec())
    assert result.outcome == "errored"
    assert "it could not be prepared: AttributeError" in (result.error or "")


def test_a_missing_setting_is_raised_when_an_evaluator_is_prepared() -> None:
    with pytest.raises(UsageError, match="set it"):
        grade(unprepared(UsageError("set it")), spec())


def test_an_evaluator_that_cases_share_is_prepared_once() -> None:
    shared, own = (Counting.model_construct(type="counting", name=n) for n in ("shared", "own"))
    Counting.prepared.clear()
    preparation = Preparation(Resources())
    for specs in ((shared,), (shared, own), (shared,)):
        preparation.grader(case(*specs)).grade(SEEN)
    assert Counting.prepared == ["shared", "own"]


def test_prepared_evaluators_are_evicted() -> None:
    Counting.prepared.clear()
    preparation = Preparation(Resources())
    for index in range(5000):
        one = Counting.model_construct(type="counting", name=str(index))
        preparation.grader(case(one))
    assert len(Counting.prepared) == 5000
    assert len(preparation._prepared) <= 1024


# Properties

scores = st.floats(0, 1) | st.just(1.0) | st.none()


@given(
    st.lists(st.tuples(scores, st.floats(0, 10), st.booleans()), min_size=1, max_size=6),
    st.floats(0, 1),
)
def test_passed_means_no_error_no_failed_gate_and_enough_points(
    rows: list[tuple[float | None, float, bool]], threshold: float
) -> None:
    given_scores = [
        EvaluationScore.errored("x") if s is None else EvaluationScore(s) for s, _, _ in rows
    ]
    specs = [
        spec(given_scores[i], weight=w, required=r, name=f"e{i}")
        for i, (_, w, r) in enumerate(rows)
    ]
    result = aggregate(case(*specs, threshold=threshold), SEEN, given_scores)
    assert grade(*specs, threshold=threshold) == result
    gates = any(r and s is not None and s < 0.8 - 1e-9 for s, _, r in rows)
    errors = any(s is None and (w or r) for s, w, r in rows)
    if gates:
        assert result.outcome == "failed"
    elif errors:
        assert result.outcome == "errored"
    elif all(s is None for s, _, _ in rows):
        assert result.outcome == "skipped"
    else:
        weight = sum(w for s, w, _ in rows if s is not None)
        mean = sum((s or 0) * w for s, w, _ in rows) / weight if weight else 0.0
        assert result.outcome == ("passed" if mean >= threshold - 1e-9 else "failed")
    assert (result.score is None) == (result.outcome in ("errored", "skipped"))


@given(st.permutations([0.1, 0.5, 0.9, 1.0]))
def test_the_order_of_evaluators_does_not_change_the_outcome(order: list[float]) -> None:
    result = grade(*(spec(s, name=str(s)) for s in order), threshold=0.6)
    assert result.outcome == "passed"
    assert result.score == pytest.approx(0.625)


# Strangers


@pytest.mark.parametrize(
    ("misses", "expected"),
    [(["a", "b"], ["f: a", "f: b"]), ("abc", ["f: abc"]), ((1, None), ["f: 1", "f: None"])],
)
def test_misses_of_plugins_are_reported_in_any_form(misses: Any, expected: list[str]) -> None:
    result = grade(spec(EvaluationScore(0.0, misses=misses), name="f"))
    assert list(result.failures)[:-1] == expected
    assert result.to_dict()["details"]["failures"][:-1] == expected


# The record


def test_a_result_is_the_json_of_a_result_file() -> None:
    seen = Observation("hi", tool_calls=(), duration_ms=12.5, cost_usd=0.01)
    result = grade(spec(0.0, name="words"), observation=seen, description="greets").to_dict()
    assert {key: result[key] for key in ("id", "description", "passed", "durationMs", "error")} == {
        "id": "c1",
        "description": "greets",
        "passed": False,
        "durationMs": 12.5,
        "error": "words: scored 0; the score 0 is below the threshold 0.8",
    }
    details = result["details"]
    assert details["outcome"] == "failed"
    assert (details["score"], details["verdict"], details["toolsCalled"]) == (0.0, "fail", [])
    assert details["evaluators"] == [
        {
            "name": "words",
            "type": "fixed",
            "weight": 1.0,
            "score": 0.0,
            "verdict": "fail",
            "hits": [],
            "misses": [],
        }
    ]


def test_a_passed_result_has_no_error() -> None:
    assert "error" not in grade(spec(1.0)).to_dict()
