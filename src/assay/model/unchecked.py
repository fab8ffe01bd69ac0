"""Finds expectations of a case that none of its evaluators reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.case import EvalCase
from assay.model.evaluator import EvaluatorSpec
from assay.model.expectations import Expectation, Expected
from assay.problems import Problem

_NAMES: dict[Expectation, str] = {
    "expected_output": "expected output",
    "expected_outcome": "expected outcome",
    "tool_calls": "expected tool calls",
}
_HINTS: dict[Expectation, str] = {
    "expected_output": "add an evaluator that compares with it, such as {type: equals}",
    "expected_outcome": "add an evaluator that judges by it, such as {type: llm_judge}",
    "tool_calls": "add a tool_trajectory with the calls",
}


def unread(expected: Expected, specs: Iterable[EvaluatorSpec]) -> list[Expectation]:
    """The expectations that none of the evaluators reads."""
    missing = expected.stated()
    for spec in specs:
        if missing:
            read = spec.reads_of(expected)
            missing = [each for each in missing if each not in read]
    return missing


def unchecked_expectations(case: EvalCase) -> Iterator[Problem]:
    """A warning for each expectation that no evaluator of the case reads."""
    if case.skip is not None or not (case.expected_messages or case.expected_outcome):
        return
    expected = case.expected
    for expectation in unread(expected, case.evaluators):
        message = f"{case.id}: no evaluator of the case reads its {_NAMES[expectation]}"
        hint = f"{_HINTS[expectation]}, or remove it"
        place = case.origin_of(expected.path(expectation))
        yield Problem(*place, "warning", "unchecked-expectation", message, hint)
