"""Cases written in Python: what they accept, and where they say that something is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import Case, Message, ToolCall, contains

HERE = Path(__file__).name


def problem_of(make: Callable[[], Any]) -> assay.Problem:
    with pytest.raises(assay.EvalFileErrors) as caught:
        make()
    (problem,) = caught.value.problems
    return problem


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_case_is_that_of_a_file(project: Any) -> None:
    made = Case(
        "refund",
        [Message("system", "Be kind."), {"role": "user", "content": "Refund A100"}],
        expected_messages=[Message("assistant", None, (ToolCall("refund", {"id": "A100"}),))],
        tags=("money",),
        expect={"responseContains": ["42.50"]},
        metadata={"tier": 1},
    )
    written = """
        - id: refund
          input:
            - {role: system, content: Be kind.}
            - {role: user, content: Refund A100}
          expected_output:
            - role: assistant
              tool_calls: [{tool: refund, input: {id: A100}}]
          tags: [money]
          expect: {responseContains: ["42.50"]}
          metadata: {tier: 1}
        """
    assert made == project.case(written)


def test_a_case_knows_its_line() -> None:
    made, here = Case("a", "Hi", expected_output="x"), line()
    assert (Path(made.origin.file).name, made.origin.line) == (HERE, here)
    assert made.origin_of("evaluators.0") == made.origin


WRONG: dict[str, tuple[Callable[[], Any], str, str]] = {
    "an unknown key": (
        lambda: Case("a", "Hi", tag=["x"]),  # type: ignore[call-arg]
        "unknown-key",
        "did you mean 'tags'?",
    ),
    "no input": (lambda: Case("a"), "missing-key", "'input_messages' (or 'input') is missing"),
    "an empty id": (lambda: Case("", "Hi"), "wrong-value", "'id': '' is empty"),
    "two spellings": (
        lambda: Case("a", "Hi", criteria="x", expected_outcome="y"),
        "ignored-alias",
        "'criteria' is ignored",
    ),
    "an object": (
        lambda: Case("a", "Hi", metadata={"when": object()}),
        "wrong-type",
        "'when' has an object, which is not JSON",
    ),
    "a key that is not text": (
        lambda: Case("a", "Hi", metadata={1: "x"}),  # type: ignore[dict-item]
        "wrong-type",
        "'metadata' has the key 1, which is not text",
    ),
    "no number": (
        lambda: Case("a", "Hi", expected_output=float("nan")),
        "bad-number",
        "'expected_output' is nan",
    ),
    "a NUL": (lambda: Case("a", "\0"), "bad-character", "'input' has a NUL"),
    "half a character": (lambda: Case("a", "\ud800"), "bad-character", "half of a surrogate"),
    "an evaluator without a list": (
        lambda: Case("a", "b", evaluators=contains("x")),  # type: ignore[arg-type]
        "wrong-type",
        "'evaluators' is the evaluator contains; it must be a list",
    ),
    "an evaluator": (lambda: contains(5), "wrong-type", "'value' is 5; it must be text"),  # type: ignore[arg-type]
    "an evaluator without its key": (
        lambda: contains(),
        "missing-key",
        "contains: 'value' is missing",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_an_error_at_its_line(what: str) -> None:
    make, code, words = WRONG[what]
    found = problem_of(make)
    assert found.code == code
    assert words in f"{found.message} {found.hint}"
    assert Path(found.file).name == HERE
    assert found.severity == "error"
    first = make.__code__.co_firstlineno
    assert first <= found.line <= first + 3


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(assay.EvalFileErrors) as caught:
        Case("a", "Hi", threshold=80, tags="x", evaluators=[{"type": "containz", "value": "x"}])
    assert len(caught.value.problems) == 3


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert problem_of(lambda: Case("a", "Hi", expected_output=loop)).code == "too-deep"


def test_a_case_keeps_a_copy() -> None:
    class Colour(StrEnum):
        RED = "red"

    metadata = {"colours": [Colour.RED]}
    made = Case("a", "Hi", expected_output="x", metadata=metadata)
    metadata["colours"].clear()
    assert made.metadata == {"colours": ["red"]}
    assert type(made.metadata["colours"][0]) is str


def test_an_evaluator_can_be_shared_by_cases() -> None:
    shared = contains("a")
    one = Case("a", "Hi", evaluators=[shared])
    two = Case("b", "Hi", evaluators=[contains("b"), shared])
    assert [spec.name for spec in one.evaluators] == ["contains"]
    assert [spec.name for spec in two.evaluators] == ["contains", "contains_2"]


def test_files_are_found_beside_the_python_file(project: Any) -> None:
    project.write("docs/terms.txt", "Be kind.")
    code = """
        from assay import Case
        parts = [{"type": "file", "value": "terms.txt"}]
        case = Case("a", [{"role": "user", "content": parts}], expected_output="x")
        """
    file = project.write("docs/cases.py", code)
    space: dict[str, Any] = {"__name__": "cases"}
    exec(compile(file.read_text(), "docs/cases.py", "exec"), space)
    assert space["case"].input_messages[0].content[0].path == project.root / "docs/terms.txt"
    assert space["case"].origin.place == "docs/cases.py:3"
