"""Nothing that a case expects goes unchecked: `reads`, added defaults, `unchecked-expectation`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay import registry
from assay.errors import EvalFileErrors, FunctionError
from assay.model.expectations import EVERYTHING, Expected
from assay.model.message import Message, ToolCall
from unit.conftest import invoke
from unit.evaluator_calls import spec_of

if TYPE_CHECKING:
    from unit.conftest import Project

OUTPUT, OUTCOME, CALLS = "expected_output", "expected_outcome", "tool_calls"


def suite(case: str, evaluators: str = "[{type: not_contains, value: sorry}]") -> str:
    return f"execution: {{evaluators: {evaluators}}}\ncases:\n  - {{id: a, input: Hi?, {case}}}\n"


def of(project: Project, case: str, *evaluators: str) -> list[tuple[str, Any]]:
    """The types of the evaluators of a case, and whether they are required."""
    found = project.suite(suite(case, *evaluators))
    assert found.warnings == ()
    return [(spec.type, spec.required) for spec in found.cases[0].evaluators]


CALL = "[{role: assistant, tool_calls: [{tool: search}]}]"
BOTH = "[{role: assistant, tool_calls: [{tool: search}], content: Paris}]"


# The added default


@pytest.mark.parametrize(
    ("case", "added"),
    [
        ("expected_output: Paris", ["equals"]),
        ("expected_output: {city: Paris}", ["equals"]),
        ("expected_output: Paris, criteria: Names it", ["llm_judge"]),
        (f"expected_output: {CALL}", ["tool_trajectory"]),
        (f"expected_output: {BOTH}", ["equals", "tool_trajectory"]),
    ],
)
def test_an_expectation_the_suite_does_not_read_adds_its_default(
    project: Project, case: str, added: list[str]
) -> None:
    wanted = [("contains", False), *((kind, True) for kind in added)]
    assert of(project, case) == wanted


@pytest.mark.parametrize(
    ("evaluators", "case"),
    [
        ("[{type: equals}]", "expected_output: Paris"),
        ("[{type: similarity}]", "expected_output: Paris"),
        ("[{type: field_accuracy, fields: [{path: a}]}]", "expected_output: {a: 1}"),
        ("[{type: llm_judge}]", "expected_output: Paris, criteria: Names it"),
        ("[{type: rubric, rubrics: [Is kind]}]", "expected_output: Paris, criteria: Names it"),
        ("[{type: code_judge, script: [grade]}]", f"expected_output: {BOTH}, criteria: Names it"),
        ("[{type: 'python:a:b'}]", f"expected_output: {BOTH}, criteria: Names it"),
        ("[{type: composite, evaluators: [{type: equals}]}]", "expected_output: Paris"),
        ("[{type: tool_trajectory, expected: [{tool: search}]}]", f"expected_output: {CALL}"),
    ],
)
def test_an_expectation_the_suite_reads_adds_nothing(
    project: Project, evaluators: str, case: str
) -> None:
    assert len(of(project, case, evaluators)) == 1


def test_an_echoing_agent_no_longer_passes(project: Project) -> None:
    project.write("suite.yaml", suite("expected_output: Paris"))
    result = assay.run("suite.yaml", target=lambda question: question)
    assert result.summary.failed == 1


def test_inline_blocks_of_a_case_without_a_list_do_not_hide_its_expectation(
    project: Project,
) -> None:
    kinds = of(project, "expected_output: Paris, expect: {responseNonEmpty: true}", "[]")
    assert kinds == [("expect", True), ("equals", True)]
    assert of(project, "expected_output: Paris, rubrics: [Is kind]", "[]") == [("rubric", False)]


def test_an_added_default_gets_a_free_name(project: Project) -> None:
    named = "[{name: equals, type: contains, value: a}]"
    text = suite("expected_output: Paris", named) + "  - {id: b, input: x, expected_output: y}\n"
    for case in project.suite(text).cases:
        assert [spec.name for spec in case.evaluators] == ["equals", "equals_2"]


def test_a_configured_default_replaces_an_added_one(project: Project) -> None:
    project.write(
        "suite.yaml", suite("expected_output: It is Paris.", "[{type: similarity, value: x}]")
    )
    evaluators = [{"type": "similarity"}]
    result = assay.run("suite.yaml", target=lambda _: "It is Paris", evaluators=evaluators)
    (case,) = result.suites[0].cases
    found = [(e.name, round(e.score or 0, 2)) for e in case.details.evaluators]
    assert found == [("similarity", 0.0), ("similarity_2", 0.92)]


# The warning


@pytest.mark.parametrize(
    ("case", "place", "what"),
    [
        ("criteria: Names it", "3:35", "outcome"),
        ("expected_output: Paris, evaluators: [{type: is_json}]", "3:42", "output"),
        ("expected_output: Paris, execution: {evaluators: [{type: is_json}]}", "3:42", "output"),
        (f"expected_output: {CALL}, evaluators: [{{type: is_json}}]", "3:73", "tool calls"),
        ("expected_output: Paris, evaluators: [{type: equals, value: x}]", "3:42", "output"),
    ],
)
def test_an_unchecked_expectation_is_a_warning_at_its_position(
    project: Project, case: str, place: str, what: str
) -> None:
    found = project.suite(suite(case)).warnings
    assert [project.place(each) for each in found] == [f"{place} unchecked-expectation"]
    assert found[0].message == f"a: no evaluator of the case reads its expected {what}"


@pytest.mark.parametrize("command", ["validate", "lint"])
def test_strict_commands_refuse_an_unchecked_expectation(project: Project, command: str) -> None:
    project.write("suite.yaml", suite("criteria: Names it"))
    loose = invoke(command, "suite.yaml")
    assert loose.exit_code == 0
    assert "suite.yaml:3:35: warning[unchecked-expectation]" in loose.stdout + loose.stderr
    assert invoke(command, "--strict", "suite.yaml").exit_code == 2


def test_a_run_reports_an_unchecked_expectation(project: Project) -> None:
    project.write("suite.yaml", suite("criteria: Names it"))
    project.write("agent.py", "def answer(question): return 'Paris'\n")
    loose = invoke("run", "suite.yaml", "--target", "python:agent:answer")
    assert loose.exit_code == 0
    assert "warning[unchecked-expectation]" in loose.stderr
    strict = invoke("run", "suite.yaml", "--target", "python:agent:answer", "--strict")
    assert strict.exit_code == 2
    assert "error[unchecked-expectation]" in strict.stderr


def test_a_skipped_case_is_not_warned_about(project: Project) -> None:
    assert project.suite(suite("criteria: Names it, skip: later")).warnings == ()


def test_a_suite_that_cannot_be_read_causes_no_warning(project: Project) -> None:
    found = project.problems(suite("criteria: Names it", "[{type: contians}]"))
    assert [problem.code for problem in found] == ["unknown-evaluator"]


def test_other_defaults_that_read_less_are_reported_once_a_suite(project: Project) -> None:
    cases = [{"id": f"c{n}", "input": "Hi?", "expected_output": "Paris"} for n in range(3)]
    project.write("suite.yaml", json.dumps({"cases": cases}))
    asked = ("run", "suite.yaml", "--evaluator", "is_json", "--target", "python:agent:answer")
    project.write("agent.py", "def answer(question): return '{}'\n")
    done = invoke(*asked)
    assert done.stderr.count("unchecked-expectation") == 1
    assert "c0: no evaluator of the case reads its expected output (and 2 more" in done.stderr
    assert invoke(*asked, "--strict").exit_code == 2


def test_a_suite_made_in_python_is_reported_too(project: Project) -> None:
    case = assay.EvalCase(
        "a",
        (Message("user", "Hi?"),),
        (spec_of("contains", name="contains", value="a"),),
        expected_messages=(Message("assistant", "Paris"),),
    )
    made = assay.Suite("cities", [case])
    with pytest.raises(EvalFileErrors) as refused:
        assay.run(made, target=lambda question: "Paris", strict=True)
    (problem,) = refused.value.problems
    assert (problem.code, problem.message[:2]) == ("unchecked-expectation", "a:")


# What evaluators read


def test_built_in_types_declare_what_they_read() -> None:
    found = {name: registry.evaluators.get(name).reads for name in registry.evaluators}
    everything = {name for name, reads in found.items() if reads == EVERYTHING}
    assert everything == {"code_judge", "composite", "llm_judge", "python"}
    assert {name for name, reads in found.items() if reads == {OUTPUT}} == {
        *("equals", "field_accuracy", "similarity")
    }
    assert found["rubric"] == {OUTPUT, OUTCOME}
    assert found["tool_trajectory"] == {CALLS}


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        (None, {OUTPUT, OUTCOME}),
        ("Be strict.", {OUTPUT, OUTCOME}),
        ("{{candidate_answer}}: is it kind?", set()),
        ("{{candidate_answer}} {{expected_outcome}}", {OUTCOME}),
        ("{{candidate_answer}} {{reference_answer}}", {OUTPUT}),
        ("{{candidate_answer}} {{expected_messages}}", {OUTPUT, CALLS}),
    ],
)
def test_a_judge_reads_what_its_prompt_shows(prompt: str | None, read: set[str]) -> None:
    keys = {} if prompt is None else {"prompt": prompt}
    assert spec_of("llm_judge", **keys).reads_of(Expected()) == read


def test_a_composite_reads_what_its_members_and_its_aggregator_read() -> None:
    members = [spec_of("equals"), spec_of("is_json")]

    def reads(aggregator: dict[str, Any]) -> frozenset[str]:
        spec = spec_of("composite", evaluators=members, aggregator=aggregator)
        return spec.reads_of(Expected())

    assert reads({"type": "min"}) == {OUTPUT}
    assert reads({"type": "code_judge", "script": ["grade"]}) == EVERYTHING
    assert reads({"type": "llm_judge", "prompt": "Combine them."}) == {OUTPUT, OUTCOME}
    prompt = "{{evaluator_results}}"
    assert reads({"type": "llm_judge", "prompt": prompt}) == {OUTPUT}


def test_a_trajectory_reads_expected_calls_if_it_names_all_their_tools() -> None:
    call = Expected(messages=(Message("assistant", None, (ToolCall("search"),)),))
    steps = [{"any_of": [{"tool": "find"}, {"tool": "search"}]}]
    assert spec_of("tool_trajectory", expected=steps).reads_of(call) == {CALLS}
    for keys in ({"expected": [{"tool": "login"}]}, {"forbidden": ["delete"]}):
        assert spec_of("tool_trajectory", **keys).reads_of(call) == set()


@pytest.fixture
def own_types() -> Iterator[None]:
    """Forgets the evaluators that a test registers."""
    known = registry.evaluators
    loaded, added = dict(known._loaded), dict(known._added)
    yield
    known._loaded, known._added = loaded, added


@pytest.mark.usefixtures("own_types")
def test_a_function_reads_everything_by_default(project: Project) -> None:
    @assay.evaluator(name="reads_all")
    def polite(response: str) -> bool:
        return True

    @assay.evaluator(name="reads_nothing", reads=())
    def kind(response: str) -> bool:
        return True

    case = "expected_output: Paris"
    assert of(project, case, "[{type: reads_all}]") == [("reads_all", False)]
    assert of(project, case, "[{type: reads_nothing}]")[1] == ("equals", True)


def test_an_unknown_name_in_reads_is_rejected() -> None:
    with pytest.raises(FunctionError, match="did you mean 'expected_output'"):

        @assay.evaluator(reads=["expected_ouput"])
        def odd(response: str) -> bool:
            return True


# input: null


@pytest.mark.parametrize("content", ["", ", content: Paris"])
def test_a_null_input_of_a_tool_call_is_kept(project: Project, content: str) -> None:
    calls = "tool_calls: [{tool: now, input: null}, {tool: now}]"
    text = f"[{{role: assistant, {calls}{content}}}]"
    case = project.case(f"- {{id: a, input: x, expected_output: {text}}}")
    assert case.expected_messages[0].to_dict()["tool_calls"] == [
        {"tool": "now", "input": None},
        {"tool": "now"},
    ]
    first, second = case.expected_tool_calls
    assert first != second


@pytest.mark.parametrize(
    ("seen", "passes"), [({}, True), ({"params": {}}, True), ({"params": {"zone": "UTC"}}, False)]
)
def test_a_null_input_expects_a_call_without_arguments(
    project: Project, seen: dict[str, Any], passes: bool
) -> None:
    text = "[{role: assistant, tool_calls: [{tool: now, input: null}]}]"
    case = project.case(f"- {{id: a, input: x, expected_output: {text}}}")
    result = assay.evaluate(case, {"response": "", "toolCalls": [{"name": "now"} | seen]})
    assert (result.outcome == "passed") is passes
