"""A file that is wrong a million times: the first thousand problems, and that there are more."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from assay.problems import MAX_PROBLEMS, Problem, Problems
from assay.service import eval_files

if TYPE_CHECKING:
    from unit.conftest import Project

MANY = MAX_PROBLEMS + 500
CASE = '{"id": "a%d", "input": "x", "expected_output": "y"%s}'
TIER = {"description": "d", "input": {"message": "m"}, "critical": 3}

#: file name, content, and the slug of its many errors
WRONG: dict[str, tuple[str, str, str]] = {
    "lists in a tier file": ("a.golden.json", json.dumps([[]] * MANY), "wrong-type"),
    "tier cases": ("a.golden.json", json.dumps([TIER] * MANY), "wrong-type"),
    "equal ids in a tier file": ("a.rubric.json", json.dumps([{"id": "a"}] * MANY), "duplicate-id"),
    "lists in YAML": ("a.yaml", "cases:\n" + "- []\n" * MANY, "wrong-type"),
    "equal ids in YAML": (
        "a.yaml",
        "- {id: a, input: x, expected_output: y}\n" * MANY,
        "duplicate-id",
    ),
    "unknown keys in YAML": (
        "a.yaml",
        "id: a\ninput: x\n" + "".join(f"k{i}: 1\n" for i in range(MANY)),
        "unknown-key",
    ),
    "wrong items in YAML": ("a.yaml", "id: a\ninput: x\ntags:\n" + "- 1\n" * MANY, "wrong-type"),
    "numbers in YAML": ("a.yaml", "x-a:\n" + "- .nan\n" * MANY, "bad-number"),
    "numbers in JSON": ("a.golden.json", "[" + ",".join(["NaN"] * MANY) + "]", "bad-number"),
    "numbers on a line": (
        "a.jsonl",
        CASE % (1, ', "metadata": {"x": [' + ",".join(["NaN"] * MANY) + "]}"),
        "bad-number",
    ),
    "lines without syntax": ("a.jsonl", "{\n" * MANY, "json-syntax"),
    "lines without shape": ("a.jsonl", "[]\n" * MANY, "wrong-type"),
    "equal ids on lines": ("a.jsonl", f"{CASE % (1, '')}\n" * MANY, "duplicate-id"),
    "rows": ("a.csv", "id,input\n" + "a,b,c\n" * MANY, "csv-syntax"),
    "columns": ("a.csv", ",".join(f"k{i}" for i in range(MANY)) + "\n", "unknown-key"),
}


@pytest.mark.parametrize("name", WRONG)
def test_at_most_a_thousand_errors_are_reported(project: Project, name: str) -> None:
    file, content, slug = WRONG[name]
    problems = project.problems(content, file)
    assert len(problems) == MAX_PROBLEMS + 1
    assert slug in {problem.code for problem in problems}
    closing = problems[-1]
    assert (closing.file, closing.line, closing.severity) == (file, 0, "error")
    assert (closing.code, closing.hint) == ("too-many-problems", "fix these first")
    assert closing.message == "there are more than 1,000 errors; these were found first"
    assert "too-many-problems" not in {problem.code for problem in problems[:-1]}


def test_exactly_a_thousand_errors_are_all_reported(project: Project) -> None:
    problems = project.problems("[]\n" * MAX_PROBLEMS, "a.jsonl")
    assert [problem.line for problem in problems] == list(range(1, MAX_PROBLEMS + 1))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("a.jsonl", "".join(CASE % (i, ', "note": 1') + "\n" for i in range(MANY))),
        ("a.yaml", "".join(f"- {CASE % (i, ', note: 1')}\n" for i in range(MANY))),
    ],
)
def test_many_warnings_refuse_nothing(project: Project, file: str, content: str) -> None:
    suite = project.suite(content, file)
    assert len(suite) == MANY
    assert len(suite.warnings) == MAX_PROBLEMS + 1
    closing = suite.warnings[-1]
    assert (closing.severity, closing.code) == ("warning", "too-many-problems")


def test_an_error_after_many_warnings_is_reported(project: Project) -> None:
    lines = "".join(CASE % (i, ', "note": 1') + "\n" for i in range(MANY))
    problems = project.problems(f"{lines}[]\n", "a.jsonl")
    (error,) = (problem for problem in problems if problem.severity == "error")
    assert error.line == MANY + 1


def test_an_error_after_many_warnings_in_one_case_is_reported(project: Project) -> None:
    calls = ", ".join(["{tool: t, args: {}, input: {}}"] * MANY)
    text = (
        f"id: a\ninput: x\nevaluators: [{{type: tool_trajectory, expected: [{calls}]}}]\nbad: 1\n"
    )
    problems = project.problems(text)
    assert "4:1 unknown-key" in [project.place(problem) for problem in problems]


def test_reading_stops_when_no_more_errors_are_reported(project: Project) -> None:
    """What comes after them costs nothing, however much it is."""
    peaks = []
    for lines in (2 * MAX_PROBLEMS, 100 * MAX_PROBLEMS):
        project.write("a.jsonl", "[]\n" * lines)
        tracemalloc.start()
        eval_files.validate("a.jsonl")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_memory_for_problems_is_bounded() -> None:
    problems = Problems("a", (Problem("a", 1, 1, "warning", "x", str(i)) for i in range(10_000)))
    assert len(problems.sorted()) == MAX_PROBLEMS + 1


def test_lint_reports_a_thousand_warnings_per_file(project: Project) -> None:
    project.write("a.jsonl", "".join(CASE % (i, ', "threshold": 0') + "\n" for i in range(MANY)))
    problems = eval_files.lint("a.jsonl").problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].code == "too-many-problems"


def test_a_ledger_reports_a_thousand_unlocked_cases(project: Project) -> None:
    case = {
        "description": "regression — x",
        "difficulty": "regression",
        "createdAt": "2026-01-15",
        "bugRef": "#1",
        "input": {"message": "x"},
        "expect": {"toolsCalled": ["t"]},
    }
    cases = [{"id": f"rg-t-{number:04}", **case} for number in range(MANY)]
    project.write("t.regression.json", json.dumps(cases))
    assert len(eval_files.validate("t.regression.json").problems) == MAX_PROBLEMS + 1
