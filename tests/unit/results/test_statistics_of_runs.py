"""Statistics of real runs: in results, in the store, in the reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import assay
from assay.service import history
from assay.service.project import project as settings
from assay.service.result import Run
from assay.service.store import open_store
from unit.conftest import Project


def answering(right: dict[str, int]) -> Callable[[str], str]:
    """Answers right at the first attempts at a question, then wrong."""
    asked: dict[str, int] = {}

    def answer(question: str) -> str:
        asked[question] = asked.get(question, 0) + 1
        return "yes" if asked[question] <= right[question] else "no"

    return answer


def run(project: Project, right: dict[str, int], *, case: dict[str, Any], **options: Any) -> Run:
    ids = list(right)
    for name, part in (("a", ids[::2]), ("b", ids[1::2])):
        cases = [{"id": i, "input": i, "expected_output": "yes"} | case for i in part]
        project.write(f"{name}.yaml", json.dumps({"cases": cases}))
    return assay.run(["a.yaml", "b.yaml"], target=answering(right), **options)


RIGHT = {"c0": 3, "c1": 2, "c2": 0, "c3": 3}


@pytest.fixture
def repeated(project: Project) -> Run:
    return run(project, RIGHT, case={}, repeat=3)


def test_a_run_is_its_suites_together(repeated: Run) -> None:
    found = repeated.statistics
    assert found["passRate"]["estimate"] == 0.5
    assert found["repeats"]["passHatK"] == {"1": pytest.approx(2 / 3), "2": 7 / 12, "3": 0.5}
    assert found["repeats"]["passAtK"]["3"] == 0.75
    assert found["repeats"]["flaky"] == ["b.yaml: c1"]
    first, second = (suite.statistics for suite in repeated.suites)
    assert first["repeats"]["passHatK"]["1"] == 0.5
    assert second["repeats"]["flaky"] == ["c1"]
    assert (
        first["coverage"]
        == second["coverage"]
        == {"judged": 2, "planned": 2, "worst": 0.5, "best": 0.5}
    )


def test_pass_hat_k_heads_the_reports(repeated: Run) -> None:
    text, page = repeated.report(), repeated.report("md")
    rate = "50 % of 4 repeated cases (95 % interval 0 % to 100 %, bootstrap)"
    assert f"pass^3     {rate}; one attempt 66.7 %" in text
    assert "Flaky      1 case both passed and failed: b.yaml: c1" in text
    assert f"- pass^3: {rate}" in page
    assert "a      suite       1       1        0        0  50 % (9.5 to 90.5)" in text


def test_the_document_has_the_statistics_of_every_suite(repeated: Run) -> None:
    document = json.loads(repeated.report("json"))
    for shown, suite in zip(document["suites"], repeated.suites, strict=True):
        assert shown["statistics"] == json.loads(json.dumps(suite.statistics))


def test_the_store_keeps_the_statistics(repeated: Run) -> None:
    store = open_store(settings())
    summary = store.run(repeated.id).summary
    store.close()
    assert summary is not None
    assert summary["statistics"] == repeated.statistics
    assert [part["file"] for part in summary["suites"]] == ["a.yaml", "b.yaml"]
    assert summary["suites"][1]["statistics"] == repeated.suites[1].statistics
    assert history.show(repeated.id).statistics == repeated.statistics


def test_a_case_may_pass_with_some_of_its_attempts(project: Project) -> None:
    found = run(project, RIGHT, case={"repeat": 3, "min_pass_rate": 0.6})
    cases = {case.id: case for suite in found.suites for case in suite.cases}
    assert [cases[name].outcome for name in RIGHT] == ["passed", "passed", "failed", "passed"]
    assert cases["c1"].details.pass_rate == pytest.approx(2 / 3)
    assert found.statistics["passRate"]["estimate"] == 0.75
    # How often all attempts pass does not depend on how many must.
    assert found.statistics["repeats"]["headline"]["estimate"] == 0.5


def test_missing_verdicts_bound_the_pass_rate(project: Project) -> None:
    project.write("a.yaml", "cases: [{id: a, input: q, expected_output: q}]")
    project.write("b.yaml", "cases: [{id: b, input: p, expected_output: q}]")

    def answer(question: str) -> str:
        if question == "p":
            raise RuntimeError("no answer")
        return question

    found = assay.run(["a.yaml", "b.yaml"], target=answer)
    bounds = {"judged": 1, "planned": 2, "worst": 0.5, "best": 1.0}
    assert found.statistics["coverage"] == bounds
    assert "(1 of 2 cases judged), so the pass rate lies between 50 % and 100 %" in found.report()
