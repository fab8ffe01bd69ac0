"""Cases with several values, in every format: what they become, and what is refused where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.loaders import jsonl
from assay.loaders import yaml as yaml_loader
from assay.model import parameters
from assay.model.case import EvalSuite
from assay.service.project import find_settings

WARM = """
    - id: warm
      description: At {{city}}
      input: How warm is {{city}}?
      expected_output: {t: "{{t}}"}
      expect: {responseContains: ["{{seed:a.b}} {{city}}", "{{{{city}}"]}
      rubrics: ["names {{city}}"]
      evaluators: [{type: latency, threshold: "{{ms}}"}]
      stubs: {weather: [{args: {city: "{{city}}"}, result: "{{t}}"}]}
      vars:
        - {city: Oslo, t: [1, null], ms: 5}
        - {id: south, city: Rome, t: warm, ms: 6, tags: [hot], metadata: {k: v}}
"""


def test_a_row_is_a_case(project: Any) -> None:
    first, second = project.suite(WARM)
    assert (first.id, second.id) == ("warm[1]", "warm[south]")
    assert first.question == "How warm is Oslo?"
    assert first.description == "At Oslo (city = Oslo, t = [1,null], ms = 5)"
    assert first.expected_output == {"t": [1, None]}
    assert second.expected_output == {"t": "warm"}
    latency, rubric, expect = second.evaluators
    assert latency.threshold == 6
    assert rubric.rubrics[0].description == "names Rome"
    assert expect.responseContains == ["{{seed:a.b}} Rome", "{{city}}"]
    assert first.stubs == {"weather": [{"args": {"city": "Oslo"}, "result": [1, None]}]}
    assert (second.tags, second.metadata) == (("hot",), {"k": "v"})
    assert first.origin.line == second.origin.line == 1
    assert second.origin_of("evaluators.0.threshold").line == 7


def ids(suite: EvalSuite) -> list[str]:
    return [case.id for case in suite]


CASE = {"id": "a", "input": "{{x}}?", "expected_output": "y"}


def test_every_format_and_place_makes_the_same_cases(project: Any) -> None:
    rows = [{"x": "1"}, {"x": "2"}]
    line = json.dumps({**CASE, "vars": rows})
    suite = json.dumps({"vars": {"x": ["1", "2"]}, "cases": [CASE]})
    project.write("rows.csv", "x\n1\n2\n")
    project.write("rows.jsonl", '{"x": "1"}\n\n{"x": "2"}\n')
    from_csv = json.dumps([{**CASE, "vars_from": "rows.csv"}])
    from_lines = json.dumps([{**CASE, "vars_from": "/rows.jsonl"}])
    table = "id,input,expected_output,vars.x\na,{{x}}?,y,1\na,{{x}}?,y,2\n"
    made = [
        list(project.suite(f"[{line}]")),
        list(project.suite(suite)),
        list(project.suite(from_csv)),
        list(project.suite(from_lines)),
        list(project.suite(line + "\n", "s.jsonl")),
        list(project.suite(table, "s.eval.csv")),
        list(project.suite(json.dumps({**CASE, "vars": rows}), "one.eval.yaml")),
        assay.Cases("a", "{{x}}?", expected_output="y", vars=rows),
    ]
    assert [case.id for case in made[0]] == ["a[1]", "a[2]"]
    assert [case.question for case in made[0]] == ["1?", "2?"]
    for cases in made:
        assert cases == made[0]


def test_the_values_of_a_suite_are_for_cases_that_use_them(project: Any) -> None:
    project.write("s.yaml", "vars: {x: [1, 2]}\n")
    own = {**CASE, "id": "own", "vars": {"x": ["q"]}}
    plain = {**CASE, "id": "plain", "input": "{{{{x}}"}
    lines = "".join(json.dumps(each) + "\n" for each in (CASE, own, {**CASE, "id": "b"}, plain))
    suite = project.suite(lines, "s.jsonl")
    assert ids(suite) == ["a[1]", "a[2]", "own[q]", "b[1]", "b[2]", "plain"]
    assert suite.cases[-1].question == "{{{{x}}"  # nothing is declared for it


def test_a_large_file_is_read_again_row_by_row(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {**CASE, "id": "own", "vars": {"x": ["p", "q", "r"]}}
    plain = {**CASE, "id": "plain", "input": "hi"}
    lines = "".join(json.dumps(each) + "\n" for each in (plain, own, {**plain, "id": "z"}))
    held = project.suite(lines, "s.jsonl")
    monkeypatch.setattr(jsonl, "HELD_BYTES", 1)
    large = project.suite(lines, "s.jsonl")
    assert isinstance(large.cases, jsonl.StreamedCases)
    assert list(large) == list(held)
    assert [large.cases[i] for i in (4, 2, 0, 3, 1)] == [held.cases[i] for i in (4, 2, 0, 3, 1)]
    large = project.suite(lines, "s.jsonl")
    project.write("s.jsonl", lines.replace('"p", "q", "r"', '"p"'))
    with pytest.raises(assay.EvalFileErrors) as caught:
        _ = large.cases[3]
    assert "fewer cases" in str(caught.value)


def test_a_stream_with_values_is_loaded(project: Any) -> None:
    settings = find_settings()
    file = project.write("s.jsonl", json.dumps({**CASE, "vars": {"x": [1, 2]}}) + "\n")
    assert ids(jsonl.stream(file, settings)) == ["a[1]", "a[2]"]
    project.write("s.jsonl", json.dumps({**CASE, "note": "x" * 40}).replace("note", "x-n") + "\n")
    assert jsonl.stream(file, settings).streamed
    escaped = json.dumps({**CASE, "vars": {"x": [1]}}).replace('"vars"', '"v\\u0061rs"')
    project.write("s.jsonl", escaped + "\n")
    with pytest.raises(assay.EvalFileErrors):
        assay.load("s.jsonl")


REFUSED: dict[str, tuple[str, str, str]] = {
    "a name that is not declared": (
        "input: '{{cty}}', expected_output: '{{city}}', vars: {city: [a]}",
        "bad-token",
        "{{cty}} is not declared in 'vars' did you mean 'city'?",
    ),
    "a name in an evaluator": (
        "input: '{{a}}', evaluators: [{type: contains, value: '{{b}}'}], vars: {a: [a]}",
        "bad-token",
        "{{b}} is not declared in 'vars' declared: a",
    ),
    "a name that nothing uses": (
        "input: '{{a}}', expected_output: x, vars: [{a: x, b: y}]",
        "unused-name",
        "'vars' declares 'b', which nothing uses",
    ),
    "a row without a value": (
        "input: '{{a}} {{b}}', expected_output: x, vars: [{a: x, b: y}, {a: z}]",
        "missing-key",
        "the row 'z' has no value for 'b'",
    ),
    "the same label": (
        "input: '{{a}}', expected_output: x, vars: {a: [x, x]}",
        "duplicate-id",
        "the label 'x' is that of row 1, too",
    ),
    "both": (
        "input: '{{a}}', expected_output: x, vars: {a: [x]}, vars_from: r.csv",
        "conflicting-keys",
        "'vars' and 'vars_from' exclude each other",
    ),
    "no row": ("input: x, expected_output: x, vars: []", "wrong-value", "'vars' is empty"),
    "a text": ("input: x, expected_output: x, vars: y", "wrong-type", "'vars' is 'y', not a list"),
    "two lists": (
        "input: '{{a}}', expected_output: x, vars: {a: [1], b: [2]}",
        "wrong-type",
        "for several names write rows",
    ),
    "values without a name": (
        "input: '{{a}}', expected_output: x, vars: [x]",
        "wrong-type",
        "'vars[0]' is 'x', not a mapping of names to values",
    ),
    "a name with a dash": (
        "input: '{{a}}', expected_output: x, vars: [{a-b: x}]",
        "wrong-value",
        "'a-b' is not a name: letters, digits and underscores",
    ),
    "a variable of judges": (
        "input: '{{question}}', expected_output: x, vars: {question: [x]}",
        "wrong-value",
        "'question' is a variable of judges",
    ),
    "tags that are a text": (
        "input: '{{a}}', expected_output: x, vars: [{a: x, tags: y}]",
        "wrong-type",
        "'tags' is 'y'; it must be a list of texts",
    ),
    "an id of two lines": (
        'input: "{{a}}", expected_output: x, vars: [{a: x, id: "p\\nq"}]',
        "wrong-type",
        "it must be text on one line, or a number",
    ),
    "a value of the wrong type": (
        "input: '{{a}}', expected_output: x, vars: {a: [5]}",
        "wrong-type",
        "'input' is 5",
    ),
    "a missing file": (
        "input: '{{a}}', expected_output: x, vars_from: r.csv",
        "file-not-found",
        "there is no file 'r.csv'",
    ),
    "a file outside": (
        "input: '{{a}}', expected_output: x, vars_from: ../../r.csv",
        "outside-root",
        "is outside the project root",
    ),
    "another format": (
        "input: '{{a}}', expected_output: x, vars_from: suite.yaml",
        "unknown-format",
        "'suite.yaml' is not a file of rows",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_mistake_is_an_error_at_its_place(project: Any, what: str) -> None:
    text, slug, words = REFUSED[what]
    with pytest.raises(assay.EvalFileErrors) as caught:
        project.suite(f"\n- {{id: a, {text}}}\n")
    (problem,) = caught.value.problems
    assert problem.code == slug
    assert words in f"{problem.message} {problem.hint}"
    assert problem.line == 1
    assert problem.column > 1


FILES = {
    "x.csv": [
        ("a,b\n1\n", 2, "csv-syntax", "the row has 1 cells; the header has 2"),
        ("a\n", 1, "no-cases", "the file has no row"),
        ("a b\n1\n", 1, "wrong-value", "'a b' is not a name"),
        ('a\n"1\n', 2, "csv-syntax", "unexpected end of data"),
    ],
    "x.jsonl": [
        ('{"a": 1}\n{"a":\n', 2, "json-syntax", ""),
        ('{"a": 1}\n[1]\n', 2, "wrong-type", "the row is a list, not a mapping"),
        ('{"a": 1}\n{"a": 1}\n', 2, "duplicate-id", "the label '1' is that of row 1, too"),
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "line", "slug", "words"),
    [(name, *rest) for name, some in FILES.items() for rest in some],
)
def test_a_mistake_in_a_file_of_rows_is_reported_there(
    project: Any, name: str, text: str, line: int, slug: str, words: str
) -> None:
    project.write(name, text)
    with pytest.raises(assay.EvalFileErrors) as caught:
        project.suite(f"- {{id: a, input: 'x{{{{a}}}}', expected_output: x, vars_from: {name}}}")
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.code) == (name, line, slug)
    assert words in problem.message


def test_names_of_a_suite_must_be_used_and_not_in_its_evaluators(project: Any) -> None:
    with pytest.raises(assay.EvalFileErrors) as caught:
        project.suite("vars: [{a: 1, b: 2}]\ncases: [{id: x, input: 'q{{a}}', expected_output: y}]")
    (problem,) = caught.value.problems
    assert (problem.line, problem.code) == (1, "unused-name")
    text = """
        vars: {a: [x]}
        evaluators: [{type: contains, value: "{{a}}"}]
        cases: [{id: x, input: "q{{a}}"}]
        """
    with pytest.raises(assay.EvalFileErrors) as caught:
        project.suite(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.code) == (2, "bad-token")
    assert "is not replaced in the evaluators of a suite" in problem.message


def test_ids_that_values_make_are_unique(project: Any) -> None:
    row = {**CASE, "vars": {"x": ["1"]}}
    twin = {**CASE, "id": "a[1]", "input": "hi"}
    for text, name in (
        (json.dumps([row, twin]), "s.yaml"),
        (f"{json.dumps(row)}\n{json.dumps(twin)}\n", "t.jsonl"),
    ):
        with pytest.raises(assay.EvalFileErrors) as caught:
            project.suite(text, name)
        (problem,) = caught.value.problems
        assert problem.code == "duplicate-id"
        assert "the id 'a[1]' is taken by" in problem.message


def test_too_many_rows_are_refused(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "MAX_ROWS", 2)
    monkeypatch.setattr("assay.loaders.parameters.MAX_ROWS", 2)
    project.write("x.csv", "x\n1\n2\n3\n")
    for keys, line in (({"vars": {"x": [1, 2, 3]}}, 1), ({"vars_from": "x.csv"}, 4)):
        with pytest.raises(assay.EvalFileErrors) as caught:
            project.suite(json.dumps([{**CASE, **keys}]))
        (problem,) = caught.value.problems
        assert (problem.code, problem.line) == ("too-large", line)
    monkeypatch.setattr(yaml_loader, "MAX_CASES", 3)
    some = [{**CASE, "id": name, "vars": {"x": [1, 2]}} for name in "ab"]
    with pytest.raises(assay.EvalFileErrors) as caught:
        project.suite(json.dumps(some))
    assert "makes more than 3 cases" in caught.value.problems[0].message


def test_a_case_in_python_has_one_row(project: Any) -> None:
    with pytest.raises(assay.EvalFileErrors) as caught:
        assay.Case("a", "{{x}}", expected_output="y", vars={"x": ["1"]})
    assert "assay.Cases(...) makes them" in caught.value.problems[0].hint
    with pytest.raises(assay.EvalFileErrors) as caught:
        assay.Cases("a", "{{x}} {{y}}", expected_output="y", vars={"x": ["1"]})
    (problem,) = caught.value.problems
    assert Path(problem.file).name == "test_parameters.py"


def test_names_are_replaced_in_evaluators_that_functions_made() -> None:
    def polite(response: str) -> bool:
        return True

    (case,) = assay.Cases(
        "a",
        "Hi",
        evaluators=[assay.composite([assay.contains("{{x}}", name="n")]), polite],
        vars={"x": ["1"]},
    )
    (_, composite), (_, member), (_, function) = case.walk_evaluators()
    assert (member.name, member.wanted) == ("n", ["1"])  # type: ignore[attr-defined]
    assert composite.type == "composite"
    assert function.type.endswith("polite")


def test_a_saved_row_is_a_case_of_its_own(project: Any) -> None:
    cases = assay.Cases("a", "{{x}} {{{{y}}", expected_output="y", vars={"x": ["1", "2"]})
    assay.Suite("s", cases).save("s.eval.yaml")
    assert list(assay.load("s.eval.yaml")[0]) == cases


def test_a_failing_case_names_its_values(project: Any) -> None:
    project.write("s.eval.yaml", WARM.replace('      rubrics: ["names {{city}}"]\n', ""))
    run = assay.run("s.eval.yaml", target=lambda question: "?")
    assert not run.passed
    assert "(city = Oslo, t = [1,null], ms = 5)" in " ".join(run.report().split())
