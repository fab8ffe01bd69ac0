"""The built-in evaluators as functions."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import assay
from assay.errors import UsageError
from assay.model.evaluator import NegatableSpec
from assay.registry import evaluators
from unit.model.test_evaluator_keys import ACCEPTED


def made(entry: dict[str, Any]) -> assay.EvaluatorSpec:
    """The evaluator of an entry, made by its function."""
    kind = "python" if entry["type"].startswith("python:") else entry["type"]
    keys = {key: value for key, value in entry.items() if key != "type"}
    first = (entry["type"],) if kind == "python" else ()
    spec: assay.EvaluatorSpec = getattr(assay, kind)(*first, **keys)
    return spec


def test_every_built_in_evaluator_is_a_function() -> None:
    for kind in evaluators.usable():
        assert inspect.getdoc(getattr(assay, kind)), kind


@pytest.mark.parametrize("entry", ACCEPTED, ids=str)
def test_a_function_accepts_what_an_entry_accepts(entry: dict[str, Any]) -> None:
    cls = evaluators.get("python" if entry["type"].startswith("python:") else entry["type"])
    wanted = assay.Case("a", "Hi", expected_output="x", evaluators=[entry]).evaluators[0]
    assert assay.Case("a", "Hi", expected_output="x", evaluators=[made(entry)]).evaluators == (
        wanted,
    )
    assert isinstance(wanted, cls)


def test_the_most_important_keys_need_no_name() -> None:
    assert assay.contains("a") == assay.contains(value="a")
    assert assay.contains(values=["a", "b"]).is_given("values")
    assert assay.contains_any("a") == assay.contains_any(["a"])
    assert assay.latency(500) == assay.latency(threshold=500)
    assert assay.equals().is_given("value") is False
    assert assay.equals(None).is_given("value") is True


def test_steps_have_a_shorthand() -> None:
    short = assay.tool_trajectory("exact", ["a", ("b", {"x": 1}), {"tool": "c", "optional": True}])
    steps: list[dict[str, Any]] = [
        {"tool": "a"},
        {"tool": "b", "args": {"x": 1}},
        {"tool": "c", "optional": True},
    ]
    assert short == assay.tool_trajectory(mode="exact", expected=steps)


def test_negation_is_that_of_files() -> None:
    spec = assay.contains("a", negate=True)
    assert isinstance(spec, NegatableSpec)
    assert spec.negate
    with pytest.raises(assay.EvalFileErrors) as caught:
        assay.cost(1, negate=True)  # type: ignore[call-arg]
    assert "'negate' is not known here" in str(caught.value)


def test_a_function_of_the_project_is_an_evaluator() -> None:
    def long_enough(response: str, least: int = 3) -> bool:
        return len(response) >= least

    case = assay.Case("a", "Hi", evaluators=[assay.python(long_enough, least=5), long_enough])
    assert [assay.evaluate(case, "four").scores[i].score for i in (0, 1)] == [0.0, 1.0]
    with pytest.raises(assay.EvalFileErrors) as caught:
        assay.python(long_enough, leats=5)
    assert "did you mean 'least'" in str(caught.value)
    with pytest.raises(UsageError, match="an int is not a function, nor the name of one"):
        assay.python(3)  # type: ignore[arg-type]
