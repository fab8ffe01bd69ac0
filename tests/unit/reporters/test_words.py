"""Numbers in words: rounded, but never so that they say something else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from assay.model.comparison import Comparison
from assay.reporters.words import VERDICTS, facts, interval, rate, verdict
from assay.text import duration, money, percent
from unit.sample_runs import LISBON, PORTO, entry, run, suite, written


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (5 / 6, "83.3 %"),
        (0.95, "95 %"),
        (0.99999, "99.9 %"),
        (0.00001, "0.1 %"),
    ],
)
def test_all_and_nothing_are_told_only_when_it_is_so(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (59_900, "59.9 s"),
        (59_960, "1 min 0 s"),
        (200_000, "3 min 20 s"),
        (3_599_600, "1 h 0 min"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_durations(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0, "$0.00"), (0.00001, "under $0.0001"), (0.0123, "$0.0123"), (1234.5, "$1,234.50")],
)
def test_money(usd: float, text: str) -> None:
    assert money(usd) == text


def test_an_interval_is_told_when_there_is_one() -> None:
    bounds: dict[str, Any] = {"low": 0.5, "high": 1.0, "level": 0.95}
    assert interval({"passRate": bounds}) == "95 % interval 50 % to 100 %"
    assert interval({"passRate": {**bounds, "low": None}}) == ""
    assert interval({"passRate": None}) == ""
    assert interval({}) == ""


def test_the_rate_of_a_suite() -> None:
    bounds = {"passRate": {"low": 0.095, "high": 0.905}}
    assert rate(suite(LISBON, PORTO, statistics=bounds)) == "50 % (9.5 to 90.5)"
    assert rate(suite(LISBON)) == "100 %"
    assert rate(suite(entry("a", "errored"))) == ""


def test_a_suite_that_is_alone_speaks_for_the_run() -> None:
    alone = suite(LISBON, statistics={"passRate": {"low": 0.2, "high": 1.0, "level": 0.95}})
    assert dict(facts(run(alone)))["Pass rate"] == "100 % (95 % interval 20 % to 100 %)"
    assert dict(facts(run(alone, suite(LISBON))))["Pass rate"] == "100 %"


@pytest.mark.parametrize(("began", "ended"), [("", None), ("2026-01-31T12:00:00", "yesterday")])
def test_a_run_that_has_not_ended_has_only_the_time_of_its_cases(
    began: str, ended: str | None
) -> None:
    whole = run(suite(LISBON))
    record = msgspec.structs.replace(whole.record, started_at=began, finished_at=ended)
    told = dict(facts(type(whole)(record, whole.suites, whole.summary)))
    assert told["Duration"] == "cases took 1.2 s"


def test_assertions_without_data_are_counted() -> None:
    counts = msgspec.structs.replace(suite(LISBON).summary, skipped_assertions=1)
    told = dict(facts(run(suite(LISBON, summary=counts))))
    assert told["Unchecked"] == "1 assertion without data"


def test_every_exit_code_has_a_verdict() -> None:
    found = [verdict(run(exit_code=code)) for code in VERDICTS]
    assert found == [*list(VERDICTS.values())[:4], "stale", "nothing selected", "interrupted"]
    unclear = Comparison("main", "x", "inconclusive", 1, "inconclusive")
    for code in (0, 4):
        assert verdict(run(exit_code=code, comparison=unclear)) == "inconclusive"
    assert verdict(run(exit_code=9)) == "exit code 9"


REPEATED = {
    "n": 5,
    "cases": 3,
    "complete": 3,
    "passHatK": {"1": 0.7, "5": 0.25},
    "passAtK": {"1": 0.7, "5": 0.95},
    "headline": {"k": 5, "estimate": 0.25, "low": 0.1, "high": 0.6, "level": 0.95, "method": "m"},
    "worst": 0.25,
    "best": 0.25,
    "flaky": ["a.yaml: <b>"],
    "flakyCount": 12,
}


def test_repeats_are_headed_by_all_attempts_passing() -> None:
    told = dict(facts(run(suite(LISBON), statistics={"repeats": REPEATED})))
    assert told["pass^5"] == (
        "25 % of 3 repeated cases (95 % interval 10 % to 60 %, m); one attempt 70 %, pass@5 95 %"
    )
    assert told["Flaky"] == "12 cases both passed and failed: a.yaml: <b> and 11 more"


def test_what_has_no_headline_has_no_line() -> None:
    nothing = {"headline": None, "cases": 0, "complete": 0, "flakyCount": 0}
    none = {"repeats": REPEATED | nothing}
    told = dict(facts(run(suite(LISBON), statistics=none)))
    assert not {"pass^5", "Flaky", "Mean score", "Clusters"} & set(told)


def test_repeats_without_a_verdict_are_told_beside_the_headline() -> None:
    some = REPEATED | {"complete": 2, "worst": 0.2, "best": 0.55}
    told = dict(facts(run(suite(LISBON), statistics={"repeats": some})))
    rest = "2 of 3 cases have 5 judged attempts, over all pass^5 lies between 20 % and 55 %"
    assert told["pass^5"].endswith(f"pass@5 95 %; {rest}")
    none = some | {"complete": 0, "headline": None, "passHatK": {}, "passAtK": {}}
    told = dict(facts(run(suite(LISBON), statistics={"repeats": none})))
    assert told["pass^5"] == f"not known; {rest.replace('2 of 3', '0 of 3')}"


def test_missing_verdicts_bound_the_pass_rate() -> None:
    bounds = {"coverage": {"judged": 1, "planned": 2, "worst": 0.5, "best": 1.0}}
    told = dict(facts(run(suite(LISBON), statistics=bounds)))
    assert told["Coverage"].endswith(", so the pass rate lies between 50 % and 100 %")


def test_only_graded_scores_are_told() -> None:
    score = {"estimate": 0.8, "low": 0.61, "high": 0.95, "level": 0.95, "method": "bootstrap"}
    graded = {"score": score | {"graded": True}, "clusters": {"count": 2, "warning": "few"}}
    told = dict(facts(run(suite(LISBON), statistics=graded)))
    assert told["Mean score"] == "0.800 (95 % interval 0.610 to 0.950, bootstrap)"
    assert told["Clusters"] == "few"
    unlimited = {"score": score | {"graded": True, "low": None}}
    assert dict(facts(run(suite(LISBON), statistics=unlimited)))["Mean score"] == "0.800"
    assert "Mean score" not in dict(facts(run(suite(LISBON), statistics={"score": score})))


def test_names_of_flaky_cases_are_escaped_in_markdown() -> None:
    page = written("md", run(suite(LISBON), statistics={"repeats": REPEATED}))
    assert "<b>" not in page
    assert "- pass^5: 25 %" in page
