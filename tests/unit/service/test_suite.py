"""Suites made in Python: what their cases inherit."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay import Case, Suite, contains, equals

CASES = """
  - {id: plain, input: Hi}
  - {id: own, input: Hi, evaluators: [{type: contains, value: b}], threshold: 0.5, tags: [z]}
  - {id: output, input: Hi, expected_output: hello}
  - {id: rubrics, input: Hi, rubrics: [is polite], execution: {target: echo}}
  - {id: skipped, input: Hi, skip: later}
"""
KEYS = """
tags: [x]
execution:
  target: mine
  threshold: 0.7
  repeat: 2
  timeout_seconds: 9
  evaluators: [{type: contains, value: a}]
cases:"""


def cases() -> list[assay.EvalCase]:
    return [
        Case("plain", "Hi"),
        Case("own", "Hi", evaluators=[contains("b")], threshold=0.5, tags=["z"]),
        Case("output", "Hi", expected_output="hello"),
        Case("rubrics", "Hi", rubrics=["is polite"], execution={"target": "echo"}),
        Case("skipped", "Hi", skip="later"),
    ]


def test_cases_inherit_what_they_inherit_in_a_file(project: Any) -> None:
    made = Suite(
        "x",
        cases(),
        target="mine",
        threshold=0.7,
        repeat=2,
        timeout_seconds=9,
        evaluators=[contains("a")],
        tags=["x"],
    )
    loaded = project.suite(KEYS + CASES)
    assert list(made) == list(loaded)
    assert made.cases[0].origin.line > 0
    again = Suite(made.name, made.cases, evaluators=[contains("a")], tags=["x"])
    assert list(again) == list(made)


def test_a_suite_without_keys_has_its_cases() -> None:
    given = cases()
    assert Suite("x", given).cases is given


def test_a_wrong_key_is_an_error_at_its_line() -> None:
    with pytest.raises(assay.EvalFileErrors) as caught:
        Suite("x", cases(), threshold=70)
    (problem,) = caught.value.problems
    assert "'threshold' is 70; it must be <= 1" in problem.message
    assert problem.file.endswith("test_suite.py")


def test_a_loaded_suite_is_a_suite(project: Any) -> None:
    project.write("a.eval.yaml", KEYS + CASES)
    (loaded,) = assay.load("a.eval.yaml")
    assert isinstance(loaded, Suite)
    assert loaded.target == "mine"
    assert [case.target for case in loaded] == ["mine", "mine", "mine", "echo", "mine"]


def test_a_run_needs_evaluators_of_cases_or_suite() -> None:
    with pytest.raises(assay.AssayError, match=r"test_suite.py:\d+\): it has no eval"):
        assay.run(cases()[:1], target=lambda question: question, store="memory:")
    made = Suite("x", cases()[:1], evaluators=[equals("Hi")])
    assert assay.run(made, target=lambda question: question, store="memory:").passed
