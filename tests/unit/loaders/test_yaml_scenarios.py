"""Every scenario of the YAML schema; fragments are completed with an id, an input and an output."""

from __future__ import annotations

import os
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

import pytest

import assay

if TYPE_CHECKING:
    from unit.conftest import Project

INPUT = "input: Hello\n"
OUTPUT = "expected_output: Hi\n"


def completed(fragment: str, *others: str) -> str:
    """A suite whose one case has the seed's keys, from line 3 on, and then the others."""
    keys = dedent(fragment).lstrip("\n") + "".join(others)
    return "cases:\n  - id: seed\n" + indent(keys, "    ")


def config(spec: assay.EvaluatorSpec) -> dict[str, Any]:
    """An evaluator's configuration, as far as the file gives it."""
    return spec.model_dump(exclude_unset=True)


# Requirement: Expected Outcome Field


def test_parse_expected_outcome(project: Project) -> None:
    case = project.case(completed('expected_outcome: "Goal"\n', INPUT))
    assert case.expected_outcome == "Goal"


def test_parse_outcome_alias(project: Project) -> None:
    case = project.case(completed('outcome: "Goal"\n', INPUT))
    assert case.expected_outcome == "Goal"


# Requirement: Inline Rubrics


def test_inline_rubrics_definition(project: Project) -> None:
    case = project.case(
        completed(
            """
            rubrics:
              - "Must be polite"
            """,
            INPUT,
        )
    )
    (evaluator,) = case.evaluators
    assert isinstance(evaluator, assay.RubricEvaluator)
    assert evaluator.type == "rubric"
    (item,) = evaluator.rubrics
    assert (item.id, item.description, item.required) == ("rubric-1", "Must be polite", True)
    assert case.rubrics == evaluator.rubrics


# Requirement: Explicit Rubric Evaluator Configuration


def test_explicit_configuration(project: Project) -> None:
    case = project.case(
        completed(
            """
            evaluators:
              - type: rubric
                rubrics: ["Must be polite"]
                model: "gpt-4"
            """,
            INPUT,
        )
    )
    (evaluator,) = case.evaluators
    assert isinstance(evaluator, assay.RubricEvaluator)
    assert evaluator.model == "gpt-4"
    assert [item.description for item in evaluator.rubrics] == ["Must be polite"]


# Requirement: Tool Calls in Expected Messages

CONVERSATION = """
    expected_messages:
      - role: user
        content: "Research branch deactivation"
      - role: assistant
        tool_calls:
          - tool: knowledgeSearch
            input: { query: "branch deactivation process" }
            output: "Found documentation..."  # Optional
        content: "Let me search for that information..."
      - role: assistant
        content: "Based on the search results..."
    """


def test_assistant_message_with_tool_calls(project: Project) -> None:
    case = project.case(completed(CONVERSATION, INPUT))
    assert [message.to_dict() for message in case.expected_messages] == [
        {"role": "user", "content": "Research branch deactivation"},
        {
            "role": "assistant",
            "content": "Let me search for that information...",
            "tool_calls": [
                {
                    "tool": "knowledgeSearch",
                    "input": {"query": "branch deactivation process"},
                    "output": "Found documentation...",
                }
            ],
        },
        {"role": "assistant", "content": "Based on the search results..."},
    ]


def test_assistant_message_with_tool_calls_available_to_evaluators(project: Project) -> None:
    case = project.case(completed(CONVERSATION, INPUT))
    assert [call.to_dict() for call in case.expected_tool_calls] == [
        {
            "tool": "knowledgeSearch",
            "input": {"query": "branch deactivation process"},
            "output": "Found documentation...",
        }
    ]
    equals, trajectory = case.evaluators
    assert equals.type == "equals"
    assert config(trajectory) == {
        "type": "tool_trajectory",
        "mode": "in_order",
        "expected": [{"tool": "knowledgeSearch", "args": {"query": "branch deactivation process"}}],
    }


def test_assistant_message_with_tool_calls_not_args(project: Project) -> None:
    place, message = project.refused(
        completed(
            """
            expected_messages:
              - role: assistant
                tool_calls:
                  - tool: knowledgeSearch
                    args: { query: "branch deactivation process" }
            """,
            INPUT,
        )
    )
    assert place == "7:13 unknown-key"
    assert "'args'" in message
    assert "input" in message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("input: { key: value }", {"key": "value"}),
        ("input:\n  key: value\n  deep: [1, 2]", {"key": "value", "deep": [1, 2]}),
        ("input: [1, two, null]", [1, "two", None]),
        ("input: text", "text"),
        ("input: 3", 3),
        ("input: 0.5", 0.5),
        ("input: false", False),
        ("input: {}", {}),
    ],
)
def test_assistant_message_with_tool_calls_input_is_any_json(
    project: Project, written: str, value: object
) -> None:
    head = "expected_messages:\n  - role: assistant\n    tool_calls:\n      - tool: search\n"
    case = project.case(completed(head + indent(written, " " * 8) + "\n", INPUT))
    assert case.expected_messages[0].to_dict() == {
        "role": "assistant",
        "tool_calls": [{"tool": "search", "input": value}],
    }


@pytest.mark.parametrize(
    "value",
    [
        "{type: invoice}",
        "{regex: '('}",
        "{one_of: 1}",
        "{query: {gte: many}}",
    ],
)
def test_assistant_message_with_tool_calls_input_is_data_not_a_predicate(
    project: Project, value: str
) -> None:
    """Predicates are a language of tool_trajectory; the input of a call is what it is."""
    case = project.case(
        completed(
            f"""
            expected_messages:
              - role: assistant
                tool_calls:
                  - tool: search
                    input: {value}
            """,
            INPUT,
        )
    )
    assert [spec.type for spec in case.evaluators] == ["tool_trajectory"]


def test_tool_calls_without_input(project: Project) -> None:
    case = project.case(
        completed(
            """
            expected_messages:
              - role: assistant
                tool_calls:
                  - tool: knowledgeSearch
            """,
            INPUT,
        )
    )
    assert case.expected_messages[0].to_dict() == {
        "role": "assistant",
        "tool_calls": [{"tool": "knowledgeSearch"}],
    }


# Requirement: Trace-Based Evaluators


def test_configure_tool_trajectory_evaluator_with_minimums(project: Project) -> None:
    case = project.case(
        completed(
            """
            evaluators:
              - name: minimum_search_calls
                type: tool_trajectory
                mode: any_order
                minimums:
                  knowledgeSearch: 3
            """,
            INPUT,
        )
    )
    assert [config(spec) for spec in case.evaluators] == [
        {
            "name": "minimum_search_calls",
            "type": "tool_trajectory",
            "mode": "any_order",
            "minimums": {"knowledgeSearch": 3},
        }
    ]


def test_configure_tool_trajectory_evaluator_with_expected_sequence(project: Project) -> None:
    case = project.case(
        completed(
            """
            evaluators:
              - name: expected_search_pattern
                type: tool_trajectory
                mode: in_order
                expected:
                  - tool: knowledgeSearch
                  - tool: knowledgeSearch
                  - tool: knowledgeSearch
            """,
            INPUT,
        )
    )
    assert [config(spec) for spec in case.evaluators] == [
        {
            "name": "expected_search_pattern",
            "type": "tool_trajectory",
            "mode": "in_order",
            "expected": [{"tool": "knowledgeSearch"}] * 3,
        }
    ]


def test_reject_invalid_tool_trajectory_mode(project: Project) -> None:
    place, message = project.refused(
        completed(
            """
            evaluators:
              - type: tool_trajectory
                mode: sometimes
                expected: [{ tool: knowledgeSearch }]
            """,
            INPUT,
        )
    )
    assert place == "5:15 wrong-value"
    for word in ("'mode'", "'sometimes'", "any_order", "in_order", "exact"):
        assert word in message


# Requirement: Per-evaluator weight


def weighted(weight: str) -> str:
    return completed(
        f"""
        evaluators:
          - name: safety
            type: llm_judge
            weight: {weight}
        """,
        INPUT,
    )


def test_parse_evaluator_weight(project: Project) -> None:
    (spec,) = project.case(weighted("3")).evaluators
    assert config(spec) == {"name": "safety", "type": "llm_judge", "weight": 3}


def test_parse_evaluator_weight_default(project: Project) -> None:
    case = project.case(completed("evaluators: [{type: llm_judge}]\n", INPUT))
    assert case.evaluators[0].weight == 1.0


@pytest.mark.parametrize("weight", ["0", "0.25", "1e3"])
def test_parse_evaluator_weight_zero_and_above(project: Project, weight: str) -> None:
    assert project.case(weighted(weight)).evaluators[0].weight == float(weight)


def test_reject_negative_weight(project: Project) -> None:
    place, message = project.refused(weighted("-1"))
    assert place == "6:17 wrong-value"
    assert "'weight' is -1; it must be >= 0" in message


def test_reject_non_numeric_weight(project: Project) -> None:
    place, message = project.refused(weighted("high"))
    assert place == "6:17 wrong-type"
    assert "'weight' is 'high'; it must be a number" in message


@pytest.mark.parametrize("weight", [".inf", "-.inf", ".nan", "1e999"])
def test_reject_weight_that_is_not_finite(project: Project, weight: str) -> None:
    place, message = project.refused(weighted(weight))
    assert place == "6:17 bad-number"
    assert f"'weight' is {weight}; it must be a finite number" in message


# Requirement: Code judge scripts


def test_configure_code_judge_with_argv_script(project: Project) -> None:
    case = project.case(
        completed(
            """
            evaluators:
              - name: my_code_check
                type: code_judge
                script: ["bun", "run", "validate_risk_output.ts"]
            """,
            INPUT,
        )
    )
    assert config(case.evaluators[0]) == {
        "name": "my_code_check",
        "type": "code_judge",
        "script": ["bun", "run", "validate_risk_output.ts"],
    }


@pytest.mark.parametrize(
    ("platform", "shell"), [("posix", ["sh", "-c"]), ("nt", ["cmd.exe", "/c"])]
)
def test_convert_string_scripts_for_backward_compatibility(
    project: Project, monkeypatch: pytest.MonkeyPatch, platform: str, shell: list[str]
) -> None:
    text = completed(
        """
        evaluators:
          - name: my_code_check
            type: code_judge
            script: bun run validate_risk_output.ts
        """,
        INPUT,
    )
    project.write("suite.yaml", text)
    with monkeypatch.context() as patch:
        patch.setattr("assay.model.script.os", FakeOs(platform))
        (suite,) = assay.load("suite.yaml")
    assert config(suite.cases[0].evaluators[0])["script"] == [
        *shell,
        "bun run validate_risk_output.ts",
    ]


class FakeOs:
    """The operating system that a script would run on."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_convert_string_scripts_on_this_platform(project: Project) -> None:
    case = project.case(completed("evaluators: [{type: code_judge, script: a b}]\n", INPUT))
    shell = ["cmd.exe", "/c"] if os.name == "nt" else ["sh", "-c"]
    assert config(case.evaluators[0])["script"] == [*shell, "a b"]


# Requirement: Input alias with shorthand


def test_string_shorthand_for_single_user_query(project: Project) -> None:
    case = project.case(completed('input: "What is 2+2?"\n', OUTPUT))
    assert [message.to_dict() for message in case.input_messages] == [
        {"role": "user", "content": "What is 2+2?"}
    ]


def test_array_input_via_alias(project: Project) -> None:
    case = project.case(
        completed(
            """
            input:
              - role: system
                content: "You are a calculator"
              - role: user
                content: "What is 2+2?"
            """,
            OUTPUT,
        )
    )
    assert [message.to_dict() for message in case.input_messages] == [
        {"role": "system", "content": "You are a calculator"},
        {"role": "user", "content": "What is 2+2?"},
    ]


def test_input_canonical_name_takes_precedence(project: Project) -> None:
    suite = project.suite(
        completed(
            """
            input: "Alias query"
            input_messages:
              - role: user
                content: "Canonical query"
            """,
            OUTPUT,
        )
    )
    assert [message.to_dict() for message in suite.cases[0].input_messages] == [
        {"role": "user", "content": "Canonical query"}
    ]
    assert [project.place(warning) for warning in suite.warnings] == ["3:5 ignored-alias"]


# Requirement: Expected output alias with shorthand


def test_expected_output_string_shorthand(project: Project) -> None:
    case = project.case(completed('expected_output: "The answer is 4"\n', INPUT))
    assert [message.to_dict() for message in case.expected_messages] == [
        {"role": "assistant", "content": "The answer is 4"}
    ]


def test_object_shorthand_for_structured_output(project: Project) -> None:
    case = project.case(
        completed(
            """
            expected_output:
              riskLevel: High
              reasoning: "Explanation"
            """,
            INPUT,
        )
    )
    assert [message.to_dict() for message in case.expected_messages] == [
        {"role": "assistant", "content": {"riskLevel": "High", "reasoning": "Explanation"}}
    ]


def test_array_with_tool_calls_via_alias(project: Project) -> None:
    case = project.case(
        completed(
            """
            expected_output:
              - role: assistant
                tool_calls:
                  - tool: Read
                    input: { file_path: "config.json" }
              - role: assistant
                content: { status: "done" }
            """,
            INPUT,
        )
    )
    assert [message.to_dict() for message in case.expected_messages] == [
        {
            "role": "assistant",
            "tool_calls": [{"tool": "Read", "input": {"file_path": "config.json"}}],
        },
        {"role": "assistant", "content": {"status": "done"}},
    ]


def test_expected_output_canonical_name_takes_precedence(project: Project) -> None:
    suite = project.suite(
        completed(
            """
            expected_output: { riskLevel: High }
            expected_messages:
              - role: assistant
                content: "Canonical answer"
            """,
            INPUT,
        )
    )
    assert [message.to_dict() for message in suite.cases[0].expected_messages] == [
        {"role": "assistant", "content": "Canonical answer"}
    ]
    assert [project.place(warning) for warning in suite.warnings] == ["3:5 ignored-alias"]
