"""`assay plan`: what cases show, where the noise is taken from, and what a run would cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import assay
from assay.errors import UsageError
from assay.model.run_result import RunResult
from assay.service.baselines import set_baseline
from assay.service.plan import PlanRequest, plan
from assay.stats.planning import Variances, cases_needed, detectable_difference, score_cases_needed
from unit.conftest import Project, invoke


def suite(project: Project, count: int = 20, **more: Any) -> None:
    cases = [
        {"id": f"c{n}", "input": f"c{n}", "expected_output": "yes", **more} for n in range(count)
    ]
    project.write("a.yaml", json.dumps({"cases": cases}))


def answering(wrong: Callable[[int, int], bool]) -> Callable[[str], dict[str, Any]]:
    """Wrong by the number of the case and the attempt; each answer costs a cent and 100 ms."""
    seen: dict[str, int] = {}

    def answer(question: str) -> dict[str, Any]:
        attempt = seen[question] = seen.get(question, -1) + 1
        said = "no" if wrong(int(question[1:]), attempt) else "yes"
        return {"response": said, "costUsd": 0.01, "durationMs": 100.0}

    return answer


def run(wrong: Callable[[int, int], bool], **options: Any) -> RunResult:
    return assay.run("a.yaml", target=answering(wrong), **options)


def test_detectable_difference_and_needed_cases(project: Project) -> None:
    found = plan(PlanRequest(cases=100, difference=0.05))
    assert found.detectable == detectable_difference(100, 0.2)
    assert found.needed == cases_needed(0.05, 0.2) == 660
    assert "score" not in found.to_dict()
    assert found.discordant == 0.2


def test_in_words(project: Project) -> None:
    out = invoke("plan", "--cases", "100", "--difference", "0.05").stdout
    assert out.splitlines() == [
        "20 % of the cases change between two runs (assumed; --run takes it from a recorded run)",
        "100 cases: a difference of 12.8 points of the pass rate, found 80 times out of 100",
        "a difference of 5 points: 660 cases, found 80 times out of 100",
    ]
    assert "4 cases: too few to show" in invoke("plan", "--cases", "4").stdout


def test_more_power_needs_more_cases(project: Project) -> None:
    usual, surer = (
        plan(PlanRequest(difference=0.05)),
        plan(PlanRequest(difference=0.05, power=0.95)),
    )
    assert usual.needed is not None
    assert surer.needed is not None
    assert surer.needed > usual.needed


def test_a_large_difference_changes_as_many_cases(project: Project) -> None:
    found = plan(PlanRequest(difference=0.5))
    assert found.discordant == 0.5
    assert found.needed == cases_needed(0.5, 0.5)


def test_repeats_help_mean_scores(project: Project) -> None:
    found = plan(PlanRequest(cases=100, difference=0.05, repeat=4))
    noise = Variances(0.0, 0.1, 0.1)
    assert found.score_needed == score_cases_needed(0.05, noise, 4, 4)
    assert found.to_dict()["score"]["casesNeeded"] == found.score_needed
    out = invoke("plan", "--cases", "100", "--difference", "0.05", "--repeat", "4").stdout
    assert "4 attempts at each case, averaged: 0.05 of the mean score needs 157 cases" in out
    assert plan(PlanRequest(cases=1, repeat=2, power=0.99)).score_detectable is None


def test_nothing_to_plan(project: Project) -> None:
    with pytest.raises(UsageError, match="nothing to plan"):
        plan(PlanRequest())


def test_noise_from_repeats(project: Project) -> None:
    """Ten of twenty cases pass every other time: of two attempts half of those differ."""
    suite(project, 20)
    run(lambda n, attempt: n < 10 and attempt % 2 == 0, repeat=4)
    found = plan(PlanRequest(run="latest"))
    assert found.cases == 20
    assert found.discordant == pytest.approx(0.5 * 2 * 2 * 2 / (4 * 3))
    assert found.noise_model.variances.within_now == pytest.approx(0.5 / 3)
    assert found.noise_model.source.startswith("from the repeats of the run")


def test_noise_from_a_baseline(project: Project) -> None:
    suite(project, 20)
    set_baseline("main", run(lambda n, attempt: n < 2).id)
    later = run(lambda n, attempt: 1 <= n < 5, baseline="main")
    found = plan(PlanRequest(run=later.id))
    assert found.discordant == pytest.approx(4 / 20)
    assert found.noise_model.source.startswith(f"from the run {later.id} and its baseline")
    scores = [1.0] + [-1.0] * 3 + [0.0] * 16
    mean = sum(scores) / 20
    assert found.noise_model.variances.between == pytest.approx(
        sum((s - mean) ** 2 for s in scores) / 19
    )


def test_noise_at_worst(project: Project) -> None:
    suite(project, 20)
    run(lambda n, attempt: n < 5)
    found = plan(PlanRequest(run="latest", difference=0.1))
    assert found.discordant == pytest.approx(2 * 0.75 * 0.25)
    assert "at worst" in found.noise_model.source
    assert not found.by_scores


def test_a_run_without_any_change_is_not_taken_for_certain(project: Project) -> None:
    suite(project, 20)
    run(lambda n, attempt: False)
    assert plan(PlanRequest(run="latest")).discordant == 1 / 20


def test_equal_scores_have_no_variance_estimate(project: Project) -> None:
    suite(project, 20)
    run(lambda n, attempt: False)
    found = plan(PlanRequest(run="latest", difference=0.1, repeat=2))
    assert found.by_scores
    assert (found.score_detectable, found.score_needed) == (None, None)
    out = invoke("plan", "--run", "latest", "--repeat", "2").stdout
    assert "mean score: unknown, as all scores of the run are equal" in out


def test_a_run_without_judged_cases_is_refused(project: Project) -> None:
    suite(project, 2, skip="later")
    run(lambda n, attempt: False)
    with pytest.raises(UsageError, match="no case was judged"):
        plan(PlanRequest(run="latest"))


def test_costs_are_those_of_the_last_run(project: Project) -> None:
    suite(project, 20)
    first = run(lambda n, attempt: False)
    found = plan(PlanRequest(), "a.yaml")
    assert found.cases == 20
    (cost,) = found.suites
    assert (cost.file, cost.trials, cost.run_id) == ("a.yaml", 20, first.id)
    assert found.cost_usd == pytest.approx(0.2)
    assert found.duration_ms == pytest.approx(200.0)
    out = invoke("plan", "a.yaml", "--repeat", "3").stdout
    assert "60 trials in 1 suite\nabout $0.6000\nabout 600 ms with 10 workers\n" in out
    planned = json.loads(invoke("plan", "a.yaml", "--json").stdout)
    assert planned["suites"][0]["costUsd"] == pytest.approx(0.2)
    assert planned["workers"] == 10


def test_suites_that_were_never_asked_are_named(project: Project) -> None:
    suite(project, 20)
    run(lambda n, attempt: False)
    project.write("b.yaml", "cases: [{id: a, input: b, expected_output: c}]")
    out = invoke("plan", "a.yaml", "b.yaml").stdout
    assert "no estimate, as no finished run has it: b.yaml" in out


def test_the_configuration_says_how_many_workers(project: Project) -> None:
    suite(project, 20)
    project.write("assay.yaml", "defaults: {workers: 2}")
    run(lambda n, attempt: False)
    assert plan(PlanRequest(), "a.yaml").duration_ms == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("config", "suites_say", "expected"),
    [
        ("targets: [{name: a, provider: echo, workers: 2}]", None, 2),
        ("targets: [{name: a, provider: echo, workers: 2}]", 5, 2),
        ("targets: [{name: a, provider: echo, workers: 20}]", 5, 5),
        ("targets: [{name: a, provider: echo, workers: 20}]", None, 20),
        ("{targets: [{name: a, provider: echo, workers: 2}], defaults: {workers: 4}}", None, 4),
        ("{targets: [{name: a, provider: echo, workers: 2}], defaults: {target: nope}}", None, 10),
        ("targets: []", 5, 5),
    ],
)
def test_the_workers_of_a_target_limit_the_plan(
    project: Project, config: str, suites_say: int | None, expected: int
) -> None:
    cases = [{"id": "a", "input": "b", "expected_output": "c"}]
    execution = {"workers": suites_say} if suites_say else {}
    project.write("a.yaml", json.dumps({"execution": execution, "cases": cases}))
    project.write("assay.yaml", config)
    assert plan(PlanRequest(), "a.yaml").workers == expected


def test_skipped_cases_do_not_count(project: Project) -> None:
    suite(project, 20, skip="not yet")
    project.write("b.yaml", "cases: [{id: a, input: b, expected_output: c}]")
    assert plan(PlanRequest(), ["a.yaml", "b.yaml"]).cases == 1
