"""What a suite's statistics say, against numbers that were computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from assay.model.result import Outcome
from assay.model.run import TrialFacts
from assay.model.trials import outcome_of
from assay.results.run import draws_of
from assay.results.statistics import MAX_FLAKY, Measure
from assay.stats.means import score_mean


def trial(
    outcome: Outcome = "passed",
    score: float | None = None,
    *,
    case: str = "c",
    repeat: int = 0,
    cluster: str | None = None,
    suite: str = "a.yaml",
) -> TrialFacts:
    if score is None and outcome in ("passed", "failed"):
        score = float(outcome == "passed")
    known: dict[str, Any] = {"comparability": "k", "critical": False, "min_pass_rate": 1.0}
    known |= {"skipped_assertions": 0, "confirms": False, "final": True, "position": 0}
    known |= {"duration_ms": 1.0, "cost_usd": None, "judge_cost_usd": None}
    return TrialFacts(
        repeat=repeat,
        suite=suite,
        case_id=case,
        outcome=outcome,
        score=score,
        cluster=cluster,
        **known,
    )


def tries(case: str, passed: int, failed: int, errored: int = 0) -> list[TrialFacts]:
    outcomes: list[Outcome] = ["passed"] * passed
    outcomes += ["failed"] * failed
    outcomes += ["errored"] * errored
    return [trial(o, case=case, repeat=n) for n, o in enumerate(outcomes)]


def measured(*cases: Sequence[TrialFacts]) -> Measure:
    measure = Measure()
    for trials in cases:
        measure.add(trials, outcome_of(trials))
    return measure


def test_the_pass_rate_has_wilsons_interval() -> None:
    cases = [[trial()]] * 9 + [[trial("failed")]]
    found = measured(*cases).statistics(10)
    assert found["passRate"]["method"] == "wilson"
    assert found["passRate"]["estimate"] == 0.9
    assert found["passRate"]["low"] == pytest.approx(0.595844, abs=1e-6)
    assert found["passRate"]["high"] == pytest.approx(0.982124, abs=1e-6)
    assert found["coverage"] == {"judged": 10, "planned": 10, "worst": 0.9, "best": 0.9}
    assert "repeats" not in found
    assert "clusters" not in found


def test_without_a_verdict_there_is_no_rate_and_bounds_are_0_and_1() -> None:
    found = measured([trial("errored")], [trial("errored")]).statistics(2)
    assert found["passRate"] is None
    assert found["score"] is None
    assert found["coverage"] == {"judged": 0, "planned": 2, "worst": 0.0, "best": 1.0}


def test_missing_verdicts_bound_the_rate() -> None:
    cases = [[trial()]] * 45 + [[trial("failed")]] * 5 + [[trial("errored")]] * 10
    coverage = measured(*cases).statistics(60)["coverage"]
    assert coverage == {"judged": 50, "planned": 60, "worst": 0.75, "best": 55 / 60}


def test_skipped_cases_are_in_no_number() -> None:
    found = measured([trial()], [trial("skipped")]).statistics(1)
    assert found["coverage"] == {"judged": 1, "planned": 1, "worst": 1.0, "best": 1.0}


def test_scores_that_only_pass_or_fail_are_a_rate() -> None:
    found = measured(*[[trial()]] * 9, [trial("failed")]).statistics(10)
    assert found["score"]["method"] == "wilson"
    assert found["score"]["low"] == found["passRate"]["low"]


def test_many_suites_draw_less_but_never_too_little() -> None:
    assert [draws_of(n) for n in (1, 20, 40, 10_000)] == [10_000, 10_000, 5_000, 1_000]
    scores = [[trial("failed", n / 10)] for n in range(1, 9)]
    few, many = (measured(*scores).statistics(8, draws=draws)["score"] for draws in (1000, 10_000))
    assert few["low"] == pytest.approx(many["low"], abs=0.05)
    assert few["low"] != many["low"]


@pytest.mark.parametrize("count", [8, 29, 30, 31])
def test_graded_scores_have_the_interval_of_their_number(count: int) -> None:
    scores = [0.4 + 0.02 * n for n in range(count)]
    found = measured(*([trial("failed", score)] for score in scores)).statistics(count)
    wanted = score_mean(scores)
    assert wanted is not None
    assert found["score"]["method"] == ("bootstrap" if count < 30 else "student-t")
    assert found["score"]["graded"] is True
    for name in ("estimate", "low", "high"):
        assert found["score"][name] == pytest.approx(getattr(wanted, name), abs=1e-9)


def test_seven_of_ten_attempts() -> None:
    found = measured(tries("c", 7, 3)).statistics(1)["repeats"]
    assert (found["n"], found["cases"], found["complete"]) == (10, 1, 1)
    assert found["passHatK"]["1"] == 0.7
    assert found["passHatK"]["2"] == pytest.approx(42 / 90)
    assert found["passHatK"]["8"] == 0.0
    assert found["passAtK"]["2"] == pytest.approx(1 - 6 / 90)
    assert found["passAtK"]["4"] == 1.0
    assert found["flaky"] == ["c"]
    assert found["flakyCount"] == 1
    # One case says nothing about others.
    assert (found["headline"]["low"], found["headline"]["high"]) == (0.0, 1.0)


def test_cases_that_all_pass_every_time_leave_doubt() -> None:
    found = measured(*(tries(f"c{n}", 3, 0) for n in range(10))).statistics(10)["repeats"]
    assert found["headline"]["method"] == "wilson"
    assert found["headline"]["low"] == pytest.approx(0.722460, abs=1e-6)
    assert found["headline"]["high"] == 1.0


def test_a_case_is_averaged_before_cases_are() -> None:
    found = measured(tries("a", 4, 0), tries("b", 1, 3)).statistics(2)
    assert found["repeats"]["passHatK"] == {"1": 0.625, "2": 0.5, "3": 0.5, "4": 0.5}
    assert found["score"]["estimate"] == 0.625
    assert found["score"]["graded"] is False  # no answer got a score between 0 and 1
    assert found["passRate"]["estimate"] == 0.5  # one case passed every time, as it must


def test_every_k_is_about_the_cases_with_all_attempts_judged() -> None:
    cases = [tries("a", 3, 0), tries("b", 2, 1), tries("c", 0, 2, 1), tries("d", 2, 0, 1)]
    found = measured(*cases).statistics(4)["repeats"]
    assert (found["n"], found["cases"], found["complete"]) == (3, 4, 2)
    assert found["passHatK"] == {"1": pytest.approx(5 / 6), "2": pytest.approx(2 / 3), "3": 0.5}
    assert found["passAtK"] == {"1": pytest.approx(5 / 6), "2": 1.0, "3": 1.0}
    assert found["headline"]["estimate"] == 0.5
    # c failed, whatever its third attempt would have come to; d may have passed.
    assert (found["worst"], found["best"]) == (0.25, 0.5)


def test_cases_with_more_attempts_than_others_count_once() -> None:
    found = measured(tries("a", 3, 0), tries("b", 4, 0, 2)).statistics(2)["repeats"]
    assert (found["n"], found["cases"], found["complete"]) == (3, 2, 2)
    assert found["passHatK"]["3"] == 1.0
    assert (found["worst"], found["best"]) == (pytest.approx((1 + 4 / 20) / 2), 1.0)


def test_a_skipped_case_was_not_asked() -> None:
    found = measured(tries("a", 3, 0), [trial("skipped", case="b")] * 2).statistics(1)
    assert (found["repeats"]["n"], found["repeats"]["cases"]) == (3, 1)


def test_cases_asked_once_are_not_repeats() -> None:
    found = measured([trial()], tries("b", 1, 1)).statistics(2)["repeats"]
    assert (found["n"], found["cases"]) == (2, 1)


def test_nothing_was_judged_in_any_repeat() -> None:
    found = measured(tries("b", 0, 0, 2)).statistics(1)["repeats"]
    assert (found["cases"], found["complete"]) == (1, 0)
    assert found["passHatK"] == found["passAtK"] == {}
    assert found["headline"] is None
    assert (found["worst"], found["best"]) == (0.0, 1.0)


def test_many_repeats_are_reported_for_the_first_ten_and_all() -> None:
    found = measured(tries("b", 30, 0)).statistics(1)["repeats"]
    assert list(found["passHatK"]) == [*map(str, range(1, 11)), "30"]


def test_flaky_cases_are_counted_beyond_those_that_are_named() -> None:
    cases = [tries(f"c{n}", 1, 1) for n in range(MAX_FLAKY + 5)]
    found = measured(*cases).statistics(len(cases))["repeats"]
    assert len(found["flaky"]) == MAX_FLAKY
    assert found["flakyCount"] == MAX_FLAKY + 5


def test_clusters_widen_the_interval_and_few_are_warned_about() -> None:
    cases = [
        [trial("passed" if n < 40 else "failed", cluster=f"document {n // 10}")] for n in range(50)
    ]
    found = measured(*cases).statistics(50)
    rate = found["passRate"]
    assert rate["method"] == "wilson-clustered"
    assert (round(rate["low"], 2), round(rate["high"], 2)) == (0.22, 0.98)
    assert found["score"]["method"] == "student-t-clustered"
    assert found["clusters"]["count"] == 5
    assert "fewer than 20" in found["clusters"]["warning"]


def test_twenty_clusters_need_no_warning_and_a_case_without_one_is_its_own() -> None:
    cases = [[trial(cluster="one")]] * 3 + [[trial()]] * 19
    assert measured(*cases).statistics(22)["clusters"] == {"count": 20}


def test_suites_join_to_a_run() -> None:
    one = [[trial("passed", 0.9, cluster="x")], tries("b", 1, 1)]
    other = [[trial("failed", 0.2, cluster="x")], [trial("errored")], tries("d", 2, 0)]
    joined = measured(*one)
    joined.join(measured(*other))
    together = measured(*one, *other).statistics(5, whole=True)
    found = joined.statistics(5, whole=True)
    assert found["repeats"].pop("flaky") == together["repeats"].pop("flaky") == ["a.yaml: b"]
    for name in ("low", "high", "estimate"):
        assert found["score"].pop(name) == pytest.approx(together["score"].pop(name))
    assert found == together
