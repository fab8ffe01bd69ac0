"""Hints for mistakes that many authors make: a bare value, a percentage, another tool's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unit.conftest import Project

CASE = "id: a\ninput: x\nexpected_output: y\n"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("smoke", "write [smoke]"),
        ("smoke, slow", "write [smoke, slow]"),
        ("'a: b'", 'write ["a: b"]'),
        ("'true'", 'write ["true"]'),
        ("7", "write [7]"),
        ("{a: b}", "put it in a list, also if it is the only item"),
        ("x" * 100, "write [...]"),
    ],
)
def test_bare_value_is_shown_in_a_list(project: Project, value: str, hint: str) -> None:
    (problem,) = project.problems(f"{CASE}tags: {value}\n")
    assert (problem.code, problem.hint) == ("wrong-type", hint)


def test_list_in_json_has_quotes(project: Project) -> None:
    line = '{"id": "a", "input": "x", "expected_output": "y", "tags": "smoke"}\n'
    (problem,) = project.problems(line, "a.jsonl")
    assert problem.hint == 'write ["smoke"]'


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("80", "did you mean 0.8?"),
        ("99.5", "did you mean 0.995?"),
        ("2", ""),
        ("101", ""),
        ("-1", ""),
    ],
)
def test_percentage_is_shown_as_a_share(project: Project, value: str, hint: str) -> None:
    (problem,) = project.problems(f"{CASE}threshold: {value}\n")
    assert (problem.code, problem.hint) == ("wrong-value", hint)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("question", "input"), ("Prompt", "input"), ("answer", "expected_output"), ("labels", "tags")],
)
def test_names_of_other_tools(project: Project, name: str, meant: str) -> None:
    cells = {"input": "x", "expected_output": "y", "tags": "z"}
    cells[name] = cells.pop(meant)
    hint = f"did you mean {meant!r}?"

    header, row = ",".join(["id", *cells]), ",".join(["a", *cells.values()])
    assert [p.hint for p in project.problems(f"{header}\n{row}\n", "a.csv")] == [hint]
    keys = "".join(f"  {key}: {value}\n" for key, value in cells.items())
    assert hint in [p.hint for p in project.problems(f"cases:\n- id: a\n{keys}")]
