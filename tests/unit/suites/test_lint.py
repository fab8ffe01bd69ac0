"""`assay lint`: each rule on a case that breaks it and on one that does not."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from assay.loaders import jsonl
from assay.service import eval_files
from assay.suites.lint import find_weak_cases


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def golden(number: int = 1, *, message: str = "Weather in Paris?", **expect: Any) -> dict[str, Any]:
    block = {
        "toolsCalled": ["get_weather"],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["18", "sunny"],
    } | expect
    return {
        "id": f"gs-get_weather-{number:03}",
        "description": "d",
        "input": {"message": message},
        "expect": {key: value for key, value in block.items() if value is not None},
    }


def labeled(difficulty: str, **expect: Any) -> dict[str, Any]:
    return {
        "id": "ls-get_weather-001",
        "description": "d",
        "difficulty": difficulty,
        "input": {"message": "Weather or not?"},
        "expect": expect,
    }


def findings(name: str, *cases: dict[str, Any]) -> list[str]:
    Path(name).write_text(json.dumps(list(cases), indent=1))
    return [p.code for p in eval_files.lint(name).problems if p.code != "unlocked-regression"]


def yaml_findings(text: str) -> list[str]:
    Path("s.eval.yaml").write_text(text)
    return [p.code for p in eval_files.lint("s.eval.yaml").problems]


def test_a_good_golden_case_has_no_findings() -> None:
    assert findings("get_weather.golden.json", golden()) == []


@pytest.mark.parametrize("values", [None, ["18"]])
def test_golden_with_fewer_than_two_values(values: list[str] | None) -> None:
    case = golden(responseContains=values)
    assert findings("get_weather.golden.json", case) == ["few-golden-values"]
    (problem,) = eval_files.lint("get_weather.golden.json").problems
    assert problem.message.endswith("checks 1 exact value" if values else "checks 0 exact values")


def test_every_expected_text_echoed_from_the_prompt() -> None:
    case = golden(message="Is it SUNNY at 18?")
    assert findings("get_weather.golden.json", case) == ["echoed-prompt"]


def test_one_text_that_is_not_echoed_is_enough() -> None:
    case = golden(message="Is it sunny?")
    assert findings("get_weather.golden.json", case) == []


@pytest.mark.parametrize(
    ("evaluators", "found"),
    [
        ("{type: contains, value: Oslo}", ["echoed-prompt"]),
        ("{type: icontains, values: [OSLO, rain]}", ["echoed-prompt"]),
        ("{type: contains_any, values: [Oslo, rain]}", ["echoed-prompt"]),
        ("{type: contains_all, values: [Oslo, rain]}", ["echoed-prompt"]),
        ("{type: composite, evaluators: [{type: contains, value: Oslo}]}", ["echoed-prompt"]),
        ("{type: contains, value: Bergen}", []),
        ("{type: contains, value: Oslo}, {type: contains, value: Bergen}", []),
        ("{type: contains, value: Oslo}, {type: tool_trajectory, minimums: {sky: 1}}", []),
        ("{type: contains, value: Oslo, negate: true}", []),
        ("{type: not_contains_any, values: [Oslo]}", []),
    ],
)
def test_evaluators_of_text_echoed_from_the_prompt(evaluators: str, found: list[str]) -> None:
    case = f"- id: a\n  input: Is there rain in Oslo?\n  evaluators: [{evaluators}]\n"
    assert yaml_findings(case) == found


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("evaluators: [{type: contains, value: x, weight: 0}]", ["cannot-pass"]),
        ("evaluators: [{type: contains, value: x, weight: 0, required: true}]", ["cannot-pass"]),
        ("evaluators: [{type: contains, value: x, weight: 0}, {type: contains, value: y}]", []),
        ("evaluators: [{type: contains, value: x, weight: 0}]\n  skip: later", []),
        (
            "evaluators: [{type: contains, value: x, weight: 0, required: true}]\n  threshold: 0",
            [],
        ),
    ],
)
def test_cases_that_cannot_pass(settings: str, found: list[str]) -> None:
    assert yaml_findings(f"- id: a\n  input: q\n  {settings}\n") == found


def test_prompts_of_a_streamed_file_are_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "HELD_BYTES", 0)
    filler = "word " * 2_000
    case = {"id": "", "input": "", "expected_output": "x", "metadata": {"note": filler}}
    with Path("big.jsonl").open("w") as file:
        for number in range(400):
            prompt = f"{number % 399} {filler}"  # the last one asks what the first one asks
            file.write(json.dumps(case | {"id": str(number), "input": prompt}) + "\n")
    suites = eval_files.load("big.jsonl")
    tracemalloc.start()
    try:
        (problem,) = find_weak_cases(suites)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (problem.code, problem.line) == ("duplicate-prompt", 400)
    assert "has the same prompt as 0 (big.jsonl:1:1)" in problem.message
    assert peak < Path("big.jsonl").stat().st_size / 4


def test_ambiguous_without_acceptable_sets() -> None:
    case = labeled("ambiguous", toolsCalled=["get_weather"])
    assert findings("get_weather.labeled.json", case) == ["ambiguous-one-way"]
    case = labeled("ambiguous", toolsAcceptable=[["get_weather"], ["get_forecast"]])
    assert findings("get_weather.labeled.json", case) == []


def test_edge_without_a_negative_assertion() -> None:
    case = labeled("edge", responseNonEmpty=True)
    assert findings("get_weather.labeled.json", case) == ["edge-no-negative"]
    goods: tuple[dict[str, Any], ...] = (
        {"responseNotContains": ["API_KEY"]},
        {"toolsNotCalled": ["delete"]},
        {"toolsAcceptable": [["__none__"]]},
        {"toolsCalled": []},
    )
    for good in goods:
        assert findings("get_weather.labeled.json", labeled("edge", **good)) == []


def test_synonym_group_of_one() -> None:
    case = golden(responseContainsAny=[["mild", "warm"], ["bright"]])
    Path("get_weather.golden.json").write_text(json.dumps([case], indent=1))
    (problem,) = eval_files.lint("get_weather.golden.json").problems
    assert problem.code == "lonely-synonym"
    assert "'bright'" in problem.message
    text = Path("get_weather.golden.json").read_text().splitlines()
    assert text[problem.line].strip() == '"bright"'


def test_a_case_that_could_pass_without_any_tool() -> None:
    case = labeled("straightforward", responseContains=["18"])
    assert findings("get_weather.labeled.json", case) == ["passes-without-tool"]
    goods: tuple[dict[str, Any], ...] = (
        {"toolsCalled": ["get_weather"]},
        {"toolsCalled": [], "responseContains": ["17"]},
        {"minToolCalls": 1},
        {"toolsAcceptable": [["get_weather"], ["get_forecast"]]},
        {"toolsAcceptable": [["__none__"], []]},
        {"toolsAcceptable": [["get_weather"], []], "minToolCalls": 1},
    )
    for good in goods:
        assert findings("get_weather.labeled.json", labeled("straightforward", **good)) == []


@pytest.mark.parametrize("none", [[], ["__none__"]])
@pytest.mark.parametrize("difficulty", ["straightforward", "ambiguous"])
def test_a_set_without_a_tool_among_sets_of_tools(difficulty: str, none: list[str]) -> None:
    case = labeled(difficulty, toolsAcceptable=[["get_weather"], none])
    Path("get_weather.labeled.json").write_text(json.dumps([case]))
    (problem,) = eval_files.lint("get_weather.labeled.json").problems
    assert problem.code == "passes-without-tool"
    text = Path("get_weather.labeled.json").read_text()
    assert text[problem.column - 1 :].startswith(json.dumps(none))
    edge = case | {"difficulty": "edge"}
    assert findings("get_weather.labeled.json", edge) == []


def test_duplicate_prompts_across_files() -> None:
    Path("get_weather.golden.json").write_text(json.dumps([golden()]))
    suite = "- id: a\n  input: ' weather in PARIS?'\n  expected_output: x\n"
    Path("s.eval.yaml").write_text(suite)
    problems = eval_files.lint(["get_weather.golden.json", "s.eval.yaml"]).problems
    assert [(p.code, p.file, p.line) for p in problems] == [("duplicate-prompt", "s.eval.yaml", 2)]
    assert "gs-get_weather-001" in problems[0].message


def test_the_same_words_from_another_role_are_not_the_same_prompt() -> None:
    text = "- {id: a, input: hi, expected_output: x}\n"
    text += "- {id: b, input: [{role: system, content: hi}], expected_output: x}\n"
    assert yaml_findings(text) == []


def test_an_id_about_another_tool_and_a_bare_description() -> None:
    case = {
        "id": "rg-get_time-001",
        "description": "was wrong",
        "difficulty": "regression",
        "createdAt": "2026-01-15",
        "bugRef": "#1",
        "input": {"message": "x"},
        "expect": {"toolsCalled": ["get_weather"]},
    }
    expected = ["foreign-tool-id", "regression-description"]
    assert findings("get_weather.regression.json", case) == expected
    good = case | {"id": "rg-get-weather-001", "description": "regression — was wrong"}
    assert findings("get_weather.regression.json", good) == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("evaluators: [{type: regex, value: '.*'}]", ["cannot-fail"]),
        ("evaluators: [{type: regex, value: 'a*'}, {type: contains, value: x}]", []),
        ("evaluators: [{type: regex, value: '^$'}]", []),
        ("evaluators: [{type: regex, value: '.*', negate: true}]", []),
        ("evaluators: [{type: contains, value: x}]\n  threshold: 0", ["cannot-fail"]),
        ("evaluators: [{type: contains, value: x, required: true}]\n  threshold: 0", []),
        ("evaluators: [{type: contains, value: x}]\n  min_pass_rate: 0", ["cannot-fail"]),
        ("evaluators: [{type: tool_trajectory, minimums: {a: 0}}]", ["cannot-fail"]),
        ("evaluators: [{type: tool_trajectory, minimums: {a: 1}}]", []),
        (
            "evaluators: [{type: tool_trajectory, expected: [{tool: a, optional: true}]}]",
            ["cannot-fail"],
        ),
        (
            "evaluators: [{type: composite, evaluators: [{type: regex, value: '.*'}]}]",
            ["cannot-fail"],
        ),
        ("skip: later\n  threshold: 0", []),
    ],
)
def test_cases_that_cannot_fail(settings: str, found: list[str]) -> None:
    assert yaml_findings(f"- id: a\n  input: q\n  {settings}\n") == found


def test_lint_reports_errors_too() -> None:
    assert yaml_findings("- id: a\n  input: q\n") == ["asserts-nothing"]


def test_a_duplicate_prompt_of_a_tier_file_is_reported_at_the_message() -> None:
    case = {"description": "x", "difficulty": "edge", "expect": {"responseNotContains": ["y"]}}
    cases = [{"id": f"ls-t-00{n}", **case, "input": {"message": "Same?"}} for n in (1, 2)]
    file = Path("t.labeled.json")
    file.write_text(json.dumps(cases, indent=1))
    (found,) = [p for p in eval_files.lint(file).problems if p.code == "duplicate-prompt"]
    lines = file.read_text().splitlines()
    assert '"message": "Same?"' in lines[found.line - 1]
    assert found.line > len(lines) // 2
