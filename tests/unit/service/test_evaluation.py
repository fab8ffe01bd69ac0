"""`assay.evaluate`: the shortest way to a grade."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ObservationError, UsageError
from assay.model.score import full_marks
from assay.ports import Request
from unit.evaluator_calls import spec_of
from unit.observations.test_reading_one_conversation import SAMPLES

SUITE = """\
cases:
  - id: lisbon
    description: knows the weather
    input: How warm is it in Lisbon?
    expect:
      tools_called: [get_weather]
      response_contains: ["23.5"]
    evaluators:
      - type: tool_trajectory
        expected: [{tool: get_weather, args: {city: Lisbon}}]
  - id: seeded
    input: What is my balance?
    expect: {response_contains: ["{{seed:account.balance}}"]}
  - id: judged
    input: Say hello
    expected_outcome: It is a greeting
  - id: skipped
    input: Later
    skip: the tool is being rebuilt
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assay.yaml").write_text("{}\n")
    (tmp_path / "a.eval.yaml").write_text(SUITE)
    return tmp_path


def case(identity: str) -> assay.EvalCase:
    return {case.id: case for case in assay.load("a.eval.yaml")[0].cases}[identity]


ARGUMENTS = {"city": "Lisbon"}
ANSWER = "It is 23.5 degrees."
FORMATS: dict[str, Any] = {
    "Assay": {"response": ANSWER, "toolCalls": [{"name": "get_weather", "params": ARGUMENTS}]},
    "AgentV": {
        "output_messages": [
            {"role": "assistant", "tool_calls": [{"tool": "get_weather", "input": ARGUMENTS}]},
            {"role": "assistant", "content": ANSWER},
        ]
    },
    "OpenAI chat": [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "23.5"},
        {"role": "assistant", "content": ANSWER},
    ],
    "OpenAI Responses": {
        "output": [
            {
                "type": "function_call",
                "call_id": "1",
                "name": "get_weather",
                "arguments": json.dumps(ARGUMENTS),
            },
            {"type": "function_call_output", "call_id": "1", "output": "23.5"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": ANSWER}],
            },
        ]
    },
    "Anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "get_weather", "input": ARGUMENTS}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "23.5"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ],
    "our own record": assay.Observation(ANSWER, (assay.ToolCall("get_weather", ARGUMENTS),)),
}


@pytest.mark.parametrize("shape", FORMATS)
def test_every_shape_of_observation_is_graded(project: Path, shape: str) -> None:
    result = assay.evaluate(case("lisbon"), FORMATS[shape])
    assert (result.outcome, result.score) == ("passed", 1.0), result.failures
    assert result.to_dict()["details"]["source"] == "a.eval.yaml:2"


def test_a_wrong_answer_fails_with_every_reason(project: Path) -> None:
    wrong = {"response": "I do not know", "toolCalls": [{"name": "search"}]}
    result = assay.evaluate(case("lisbon"), wrong)
    assert result.outcome == "failed"
    assert any(reason.startswith("toolsCalled: ") for reason in result.failures)
    assert any(reason.startswith("responseContains: ") for reason in result.failures)
    assert any(reason.startswith("tool_trajectory: ") for reason in result.failures)


def test_tools_cannot_be_judged_if_the_observation_is_text(project: Path) -> None:
    result = assay.evaluate(case("lisbon"), ANSWER)
    assert result.outcome == "errored"
    assert "target reports no tool calls" in str(result.error)


def test_seed_data_comes_from_the_manifest(project: Path) -> None:
    assert assay.evaluate(case("seeded"), "125000").outcome == "skipped"
    (project / "evals").mkdir()
    manifest = project / "evals" / "seed-manifest.json"
    manifest.write_text('{"account": {"balance": 125000}}')
    assert assay.evaluate(case("seeded"), "It is 125000.").outcome == "passed"
    assert assay.evaluate(case("seeded"), "It is 12.").outcome == "failed"


def test_a_skipped_case_is_not_judged(project: Path) -> None:
    result = assay.evaluate(case("skipped"), "anything")
    assert (result.outcome, result.error) == ("skipped", "the tool is being rebuilt")


def test_a_failed_target_is_errored(project: Path) -> None:
    result = assay.evaluate(case("lisbon"), {"error": "connection refused"})
    assert (result.outcome, result.error) == ("errored", "connection refused")


def test_an_invalid_observation_is_refused(project: Path) -> None:
    with pytest.raises(ObservationError):
        assay.evaluate(case("lisbon"), 5)


@pytest.mark.parametrize("wrong", [None, "lisbon", {"id": "lisbon", "input": "?"}, []])
def test_an_invalid_case_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"not an EvalCase; `assay\.load` gives"):
        assay.evaluate(wrong, ANSWER)


# Judges


class Judge:
    name = "mine"

    def __init__(self) -> None:
        self.closed = False

    async def ask(self, request: Request) -> assay.Observation:
        return assay.Observation('{"score": 0.9}')

    async def close(self) -> None:
        self.closed = True


def test_no_judge_says_how_to_set_one(project: Path) -> None:
    with pytest.raises(UsageError, match="write 'judge: openai:MODEL'"):
        assay.evaluate(case("judged"), "hello")


def test_the_judge_may_be_given(project: Path) -> None:
    judge = Judge()
    assert assay.evaluate(case("judged"), "hello", judge=judge).score == 0.9
    assert not judge.closed  # it belongs to its creator


def test_the_judge_of_the_project_is_asked(project: Path) -> None:
    reply = json.dumps(json.dumps({"score": 0.7}))
    (project / "assay.yaml").write_text(f"judge: {{provider: scripted, replies: [{reply}]}}\n")
    assert assay.evaluate(case("judged"), "hello").score == 0.7
    assert "echo" in str(assay.evaluate(case("judged"), "hello", judge="echo:").error)


# Loops


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_of_every_shape_can_be_awaited_and_gives_the_same(
    project: Path, name: str
) -> None:
    result = asyncio.run(assay.aevaluate(case("lisbon"), SAMPLES[name]))
    assert result == assay.evaluate(case("lisbon"), SAMPLES[name])
    assert result.outcome in ("passed", "failed", "errored")


def test_evaluate_works_while_an_event_loop_runs(project: Path) -> None:
    async def notebook() -> assay.EvalCaseResult:
        return assay.evaluate(case("judged"), "hello", judge=Judge())

    assert asyncio.run(notebook()).score == 0.9


def test_errors_come_out_of_the_other_thread(project: Path) -> None:
    async def notebook() -> None:
        assay.evaluate(case("judged"), "hello")

    with pytest.raises(UsageError):
        asyncio.run(notebook())


def test_a_case_of_another_project_uses_its_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there" / "evals").mkdir(parents=True)
    (tmp_path / "there" / "assay.yaml").write_text("{}\n")
    (tmp_path / "there" / "a.eval.yaml").write_text(SUITE)
    manifest = tmp_path / "there" / "evals" / "seed-manifest.json"
    manifest.write_text('{"account": {"balance": 7}}')
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "assay.yaml").write_text("{}\n")
    monkeypatch.chdir(tmp_path / "here")
    found = assay.load("../there/a.eval.yaml")[0].cases
    assert assay.evaluate(found[1], "It is 7.").outcome == "passed"


def test_details_belong_to_one_result(project: Path) -> None:
    case = assay.EvalCase("a", (), (spec_of("contains", value="yes"),))
    first, second = assay.evaluate(case, "yes"), assay.evaluate(case, "yes")
    first.scores[0].details["seen"] = True
    assert second.scores[0].details == {}
    assert assay.evaluate(case, "yes").scores[0].details == {}


def test_shared_full_marks_cannot_be_written_into() -> None:
    score = full_marks(("contains 'yes'",))
    with pytest.raises(TypeError, match="shared and cannot be changed"):
        score.details["seen"] = True
    with pytest.raises(TypeError, match="shared and cannot be changed"):
        score.details.update(seen=True)
    assert full_marks(()).details == {}
    assert score.to_dict() == {
        "score": 1.0,
        "verdict": "pass",
        "hits": ["contains 'yes'"],
        "misses": [],
    }
    assert copy.deepcopy(score) == pickle.loads(pickle.dumps(score)) == score


def test_an_observation_made_in_python_is_validated(project: Path) -> None:
    yes = assay.EvalCase("a", (), (spec_of("contains", value="yes"),))
    calls: Any = [{"name": "wave"}]
    with pytest.raises(ObservationError, match=r"'tool_calls\[0\]' is a dict, not ToolCall"):
        assay.evaluate(yes, assay.Observation("yes", calls))
    listed: Any = [assay.ToolCall("wave")]
    result = assay.evaluate(yes, assay.Observation("yes", listed))
    assert result.observation.tool_calls == (assay.ToolCall("wave"),)
