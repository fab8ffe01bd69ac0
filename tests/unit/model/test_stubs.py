"""Stubs in files: the same keys, checks and places in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import assay
from assay.model.case import EvalCase
from assay.service.schema import schema
from unit.conftest import Project

ENTRIES = [
    {"args": {"city": {"regex": "^O"}}, "result": [1], "delay_ms": 5},
    {"error": "offline", "times": 2},
    {"result": None},
]


def written(stubs: Any) -> dict[str, Any]:
    return {"id": "a", "input": "Hi", "expected_output": "Hi", "stubs": stubs}


def tier_file(stubs: Any) -> str:
    expect = {"toolsCalled": ["get_weather"], "noToolErrors": True, "responseNonEmpty": True}
    case = {"id": "gs-get_weather-001", "description": "x", "input": {"message": "Hi"}}
    return json.dumps([{**case, "expect": expect, "stubs": stubs}])


def in_every_format(project: Project, stubs: Any) -> list[EvalCase]:
    case = written(stubs)
    return [
        project.case(json.dumps({"cases": [case]})),
        project.case(json.dumps(case), "x.eval.jsonl"),
        project.case(tier_file(stubs), "get_weather.golden.json"),
        assay.Case(**case),
    ]


def test_every_format_has_stubs(project: Project) -> None:
    stubs = {"get_weather": ENTRIES, "get_time": "12:00", "list": [1, {"id": 2}], "none": None}
    for case in in_every_format(project, stubs):
        assert case.stubs == stubs


def test_a_list_of_mappings_without_keys_of_an_entry_is_the_result(project: Project) -> None:
    stubs = {"search": [{"id": 1, "title": "A"}], "empty": []}
    for case in in_every_format(project, stubs):
        assert case.stubs == stubs


def test_keys_may_be_in_camel_case_and_max_turns_too(project: Project) -> None:
    stubs = {"save": [{"input": {"id": 1}, "result": 1, "delayMs": 5}]}
    same = {"save": [{"args": {"id": 1}, "result": 1, "delay_ms": 5}]}
    for case in in_every_format(project, stubs):
        assert case.stubs == same
    assert assay.Case("a", "Hi", expected_output="x", max_turns=3).max_turns == 3
    assert project.case(json.dumps([{**written({}), "maxTurns": 2}])).max_turns == 2


def suite_with(stub: str) -> tuple[str, str]:
    """A suite with this stub, and the place of the `@` in it."""
    head = "cases:\n- id: a\n  input: Hi\n  expected_output: Hi\n  stubs:\n"
    line = f"    t: {stub}"
    return head + line.replace("@", "") + "\n", f"6:{line.find('@') + 1}"


WRONG = [
    ("[{@reslt: 1, times: 2}]", "unknown-key", "result"),
    ("[@{args: {a: 1}}]", "missing-key", "'result' or 'error'"),
    ("[{result: @1, error: x}]", "conflicting-keys", "exclude each other"),
    ("[{result: 1, times: @0}]", "wrong-value", "1"),
    ("[{result: 1, delay_ms: @-1}]", "wrong-value", "0"),
    ("[{result: 1, args: {a: {regex: @'('}}}]", "bad-regex", "("),
    ("[{error: @5}]", "wrong-type", "text"),
]


@pytest.mark.parametrize(("stub", "code", "words"), WRONG)
def test_a_mistake_is_reported_at_its_place(
    project: Project, stub: str, code: str, words: str
) -> None:
    text, place = suite_with(stub)
    problems = {f"{p.line}:{p.column} {p.code}": p for p in project.problems(text)}
    problem = problems[f"{place} {code}"]
    assert words in f"{problem.message} {problem.hint}"


@pytest.mark.parametrize("name", ["eval", "golden"])
def test_the_schema_accepts_what_loads_and_nothing_else(name: str) -> None:
    validator = Draft202012Validator(schema(name))

    def fits(stub: Any) -> bool:
        stubs = {"t": stub}
        data = [written(stubs)] if name == "eval" else json.loads(tier_file(stubs))
        return validator.is_valid(data)

    right: list[Any] = [ENTRIES, 5, None, [], [1], [{"id": 1}]]
    for stub in (*right, [{"args": {"type": "x"}, "result": 1}]):
        assert fits(stub), stub
    for stub in (
        [{"args": {}}],
        [{"result": 1, "error": "x"}],
        [{"result": 1, "tmes": 1}],
        [{"result": 1, "times": 0}],
        [{"result": 1, "args": {"a": {"type": "text"}}}],
    ):
        assert not fits(stub), stub


@pytest.mark.parametrize(
    "stub",
    [
        "[{result: 1}, @{result: 2}]",
        "[{result: 1, times: 1}, {result: 2}]",
        "[{args: {a: 1}, result: 1}, {result: 2}]",
        "[{args: {a: 1}, result: 1}, @{args: {a: 1}, result: 2}]",
        "[{args: {a: 1}, result: 1, times: 2}, {args: {a: 1}, result: 2}]",
        "[{args: any, error: x}, @{args: {a: 1}, result: 2}]",
    ],
)
def test_an_entry_that_is_never_used_is_a_warning(project: Project, stub: str) -> None:
    text, place = suite_with(stub)
    found = [f"{w.line}:{w.column} {w.code}" for w in project.suite(text).warnings]
    assert found == ([f"{place} unreachable-stub"] if "@" in stub else [])


def test_in_python_an_entry_that_is_never_used_is_an_error() -> None:
    stubs = {"t": [{"result": 1}, {"result": 2}]}
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.Case(**written(stubs))
    assert "entry 1 answers all of its calls" in refused.value.problems[0].message


def test_a_saved_suite_has_its_stubs(project: Project) -> None:
    case = assay.Case(**written({"t": ENTRIES, "u": [1]}), max_turns=3)
    assay.Suite("x", [case]).save("x.eval.yaml")
    (loaded,) = assay.load("x.eval.yaml")[0].cases
    assert loaded == case


SHARED = {"get_time": "12:00", "get_weather": {"temperature_c": 4}}
OWN = {"get_weather": [{"error": "offline"}], "get_news": "none"}
MERGED = {**SHARED, **OWN}


def in_every_suite(project: Project, stubs: Any, own: Any) -> list[EvalCase]:
    """A case with stubs of its own, in every kind of suite that has some."""
    case = written(own)
    line = json.dumps(case)
    project.write("cases.jsonl", line)
    project.write("b.eval.yaml", json.dumps({"stubs": stubs}))
    return [
        project.case(json.dumps({"stubs": stubs, "cases": [case]})),
        project.case(json.dumps({"stubs": stubs, "cases": "cases.jsonl"}), "names.eval.yaml"),
        project.case(line, "b.eval.jsonl"),
        assay.Suite("s", [assay.Case(**case)], stubs=stubs).cases[0],
    ]


def test_cases_inherit_the_stubs_of_their_suite_tool_by_tool(project: Project) -> None:
    for case in in_every_suite(project, SHARED, OWN):
        assert case.stubs == MERGED
    for case in in_every_suite(project, SHARED, {}):
        assert case.stubs == SHARED


def test_cases_of_a_csv_file_have_the_stubs_of_the_suite_that_names_it(project: Project) -> None:
    project.write("cases.csv", "id,input,expected_output\na,Hi,Hi\n")
    case = project.case(json.dumps({"stubs": SHARED, "cases": "cases.csv"}))
    assert case.stubs == SHARED


def test_a_suite_with_stubs_is_saved_with_them(project: Project) -> None:
    suite = assay.Suite("s", [assay.Case(**written(OWN))], stubs=SHARED)
    suite.save("saved.eval.yaml")
    (loaded,) = assay.load("saved.eval.yaml")
    assert loaded.cases[0].stubs == MERGED


def test_a_stub_of_a_suite_that_is_never_used_is_one_warning_at_its_place(
    project: Project,
) -> None:
    stubs = {"t": [{"result": 1}, {"args": {"a": 1}, "result": 2}]}
    cases = [written({}), {**written({}), "id": "b"}]
    text = yaml.safe_dump({"stubs": stubs, "cases": cases}, sort_keys=False)
    (warning,) = project.suite(text).warnings
    assert (warning.code, warning.line) == ("unreachable-stub", 4)
    assert warning.message.startswith("the suite: this stub of 't'")
    with pytest.raises(assay.EvalFileErrors) as raised:
        assay.Suite("s", [assay.Case(**written({}))], stubs=stubs)
    (problem,) = raised.value.problems
    assert problem.message == warning.message


def test_a_wrong_stub_of_a_suite_is_reported_at_its_place(project: Project) -> None:
    text = "stubs:\n  t:\n    - {result: 1, tims: 2}\ncases:\n"
    (problem,) = project.problems(text + "  - {id: a, input: Hi, expected_output: Hi}\n")
    assert "times" in problem.hint
    assert problem.line == 3


def test_names_are_not_replaced_in_the_stubs_of_a_suite(project: Project) -> None:
    suite = {
        "vars": [{"city": "Oslo"}],
        "stubs": {"t": "{{city}}"},
        "cases": [{**written({}), "input": "{{city}}"}],
    }
    (problem,) = project.problems(json.dumps(suite))
    assert "not replaced in the stubs of a suite" in problem.message
