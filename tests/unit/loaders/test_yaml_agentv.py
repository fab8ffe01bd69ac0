"""Eval files in the spellings of AgentV: of January 2026, and of later versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from assay.service.schema import schema
from assay.wire.yaml import parse
from unit.conftest import Project
from unit.evaluator_calls import judged

JANUARY = """
$schema: agentv-eval-v2
description: An order desk
dataset: orders
target: desk
evaluator: llm_judge
execution:
  evaluators:
    - name: tone
      type: llm_judge
      prompt: Is the answer polite?
evalcases:
  - id: status
    conversation_id: talk-1
    outcome: Says that the order is on its way
    note: reported by a customer
    evaluator: llm_judge
    input_messages:
      - role: system
        content: You help customers.
      - role: user
        content:
          - {type: text, value: Where is order 17?}
          - {type: file, value: policy.md}
    expected_messages:
      - role: assistant
        tool_calls: [{tool: find_order, input: {id: 17}}]
      - role: assistant
        content: It has shipped.
    rubrics:
      - Names the carrier
      - {id: date, description: Gives a date, weight: 2, required: false}
  - id: extract
    expected_outcome: Reads the invoice
    input: Read this invoice.
    expected_output: {total: 12.5, due: 15-JAN-2025}
    execution:
      target: reader
      evaluators:
        - name: fields
          type: field_accuracy
          aggregation: weighted_average
          fields:
            - {path: total, match: numeric_tolerance, tolerance: 0.01, weight: 2}
            - {path: due, match: date, formats: [DD-MMM-YYYY, YYYY-MM-DD], required: false}
        - name: program
          type: code_judge
          script: [python3, check.py]
          strict: true
        - name: gate
          type: composite
          evaluators:
            - {name: path, type: tool_trajectory, mode: any_order, minimums: {find_order: 1}}
            - {name: quick, type: latency, threshold: 2000}
            - {name: cheap, type: cost, budget: 0.1}
            - {name: short, type: token_usage, max_total: 500}
          aggregator: {type: weighted_average, weights: {path: 2}}
"""


def test_a_file_of_january_2026_loads(project: Project) -> None:
    project.write("policy.md", "We ship daily.")
    suite = project.suite(JANUARY, "orders.yaml")
    assert (suite.name, suite.target) == ("orders", "desk")
    status, extract = suite
    assert (status.target, extract.target) == ("desk", "reader")
    assert [spec.name for spec in status.evaluators][:2] == ["tone", "rubric"]
    assert [spec.name for spec in extract.evaluators] == ["fields", "program", "gate"]
    assert {(w.code, w.line) for w in suite.warnings} >= {
        ("deprecated-key", 5),
        ("deprecated-key", 15),
        ("deprecated-key", 16),
    }


def test_execution_wins_over_the_keys_of_the_root(project: Project) -> None:
    suite = project.suite(
        """
        target: old
        assert: [{type: is_json}]
        execution: {target: new, evaluators: [{type: contains, value: x}]}
        cases: [{id: a, input: b}]
        """
    )
    (case,) = suite
    assert (suite.target, case.target) == ("new", "new")
    assert [spec.type for spec in case.evaluators] == ["contains"]
    assert [(w.code, w.line) for w in suite.warnings] == [
        ("ignored-alias", 1),
        ("ignored-alias", 2),
    ]


LATER = """
name: desk
version: 1.2
tags: [smoke]
target: agent
assert:
  - {type: icontains-any, value: [order, parcel]}
tests:
  - id: inherits
    input: Where is it?
  - id: own
    criteria: Says where it is
    tags: [eu, smoke]
    input: Where is it?
    assert:
      - Names the carrier
      - {type: contains, value: shipped}
      - Is polite and short
"""


def test_the_later_keys_of_the_root(project: Project) -> None:
    suite = project.suite(LATER)
    inherits, own = suite
    assert (suite.name, suite.target, suite.warnings) == ("desk", "agent", ())
    assert [spec.type for spec in inherits.evaluators] == ["icontains_any"]
    assert (inherits.tags, own.tags) == (("smoke",), ("smoke", "eu"))
    assert own.expected_outcome == "Says where it is"


@pytest.mark.parametrize("text", [JANUARY, LATER])
def test_the_schema_accepts_these_files(text: str) -> None:
    assert Draft202012Validator(schema("eval")).is_valid(parse(text, "a.yaml").data)


def test_texts_in_a_list_of_evaluators_are_items_of_one_rubric(project: Project) -> None:
    spec: Any = list(project.suite(LATER))[1].evaluators
    assert [one.type for one in spec] == ["rubric", "contains"]
    items = [(item.id, item.description, item.required) for item in spec[0].rubrics]
    assert items == [
        ("rubric-1", "Names the carrier", True),
        ("rubric-2", "Is polite and short", True),
    ]


def test_an_error_after_texts_has_its_own_position(project: Project) -> None:
    case = "cases: [{id: a, input: b, assert: [Is polite, Is short, {type: latency}]}]"
    ((line, column),) = {(p.line, p.column) for p in project.problems(case)}
    assert case[column - 1 :].startswith("{type: latency}")
    assert line == 1


@pytest.mark.parametrize("name", ["contains", "contians", "is-json", "python:a:b"])
def test_the_name_of_a_type_is_not_a_criterion(project: Project, name: str) -> None:
    place, _ = project.refused(f"cases: [{{id: a, input: b, assert: ['{name}']}}]")
    assert place.endswith("wrong-type")


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"type": "code-grader", "command": ["check"]}, "code_judge"),
        ({"type": "code_grader", "script": ["check"]}, "code_judge"),
        ({"type": "script", "command": "check"}, "code_judge"),
        ({"type": "code_judge", "command": ["check"], "extra": 1}, "code_judge"),
        ({"type": "llm-grader", "prompt": "Is it polite?"}, "llm_judge"),
        ({"type": "llm-rubric", "value": "Is it polite?"}, "llm_judge"),
        ({"type": "llm_rubric"}, "llm_judge"),
        ({"type": "rubrics", "criteria": ["Is polite"]}, "rubric"),
        ({"type": "rubrics", "rubrics": ["Is polite"]}, "rubric"),
        ({"type": "icontains-any", "value": ["a", "b"]}, "icontains_any"),
        ({"type": "not-icontains-any", "values": ["a"]}, "icontains_any"),
        ({"type": "tool-trajectory", "minimums": {"a": 1}}, "tool_trajectory"),
        ({"type": "execution-metrics", "max_tokens": 5}, "execution_metrics"),
    ],
)
def test_later_names_of_types_and_keys(project: Project, entry: Any, kind: str) -> None:
    data = {"cases": [{"id": "a", "input": "b", "assert": [entry]}]}
    case = project.case(json.dumps(data))
    (spec,) = case.evaluators
    assert spec.type == kind
    assert Draft202012Validator(schema("eval")).is_valid(data)


def test_command_is_the_script_and_not_its_configuration(project: Project) -> None:
    case = project.case(
        "cases: [{id: a, input: b, assert: [{type: script, command: [x, y], depth: 2}]}]"
    )
    spec: Any = case.evaluators[0]
    assert (spec.script, spec.config) == (["x", "y"], {"depth": 2})


def test_the_value_of_an_llm_rubric_is_its_prompt(project: Project) -> None:
    case = project.case(
        "cases: [{id: a, input: b, assert: [{type: llm-rubric, value: Is it kind?}]}]"
    )
    spec: Any = case.evaluators[0]
    assert spec.prompt == "Is it kind?"


@pytest.mark.parametrize(
    ("answer", "negate", "score"),
    [("Your PARCEL left.", False, 1), ("Nothing.", False, 0), ("STRASSE", True, 0), ("", True, 1)],
)
def test_icontains_any(answer: str, negate: bool, score: float) -> None:
    found = judged("icontains_any", answer, values=["parcel", "straße"], negate=negate)
    assert found.score == score
    if not score and not negate:
        assert found.misses == (
            "expected the answer to contain one of 'parcel', 'straße' (ignoring case), "
            "found 'Nothing.'",
        )


def test_tags_of_a_sidecar_apply_to_every_line(project: Project) -> None:
    project.write("a.eval.yaml", "tags: [smoke]\nevaluator: llm_judge\ntarget: desk\n")
    line = {"id": "a", "input": "b", "evaluators": [{"type": "contains", "value": "c"}]}
    more = line | {"id": "b", "tags": ["eu"]}
    suite = project.suite(f"{json.dumps(line)}\n{json.dumps(more)}\n", "a.eval.jsonl")
    assert [case.tags for case in suite] == [("smoke",), ("smoke", "eu")]
    assert suite.target == "desk"
    assert [w.code for w in suite.warnings] == ["deprecated-key"]


@pytest.mark.parametrize("version", ["'1.0'", "1.0", "3"])
def test_a_version_may_be_a_number(project: Project, version: str) -> None:
    project.suite(f"version: {version}\ncases: [{{id: a, input: b, expected_output: c}}]")


def test_a_version_is_not_a_list(project: Project) -> None:
    case = "cases: [{id: a, input: b, expected_output: c}]"
    place, message = project.refused(f"version: [1]\n{case}")
    assert place == "1:10 wrong-type"
    assert "neither text nor a number" in message
