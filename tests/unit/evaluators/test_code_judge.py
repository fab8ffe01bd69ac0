"""code_judge: the payload of the program, its replies, and the ways in which it can break."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from assay.evaluators.code_judge import CodeJudgeEvaluator, ask_program
from assay.model.case import EvalCase, Origin
from assay.model.context import Context
from assay.model.message import ContentPart, Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.model.score import EvaluationScore
from assay.process.child import Limits
from assay.process.cpu_slots import core_count, cpu_slot
from assay.redaction import cut
from assay.settings import HARMLESS
from timeouts import WAIT_SECONDS
from unit.conftest import Project

T = TypeVar("T")
PYTHON = sys.executable
CASE = EvalCase("one", (Message("user", "What is 2+2?"),), ())
CONTEXT = Context(CASE, Observation("4"))


def guarded(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that must not hang."""
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


def judged(code: str, context: Context = CONTEXT, **keys: Any) -> EvaluationScore:
    """The score of a judge with this Python code."""
    script = [PYTHON, "-I", "-S", "-c", dedent(code)]
    spec = CodeJudgeEvaluator.model_validate({"type": "code_judge", "script": script, **keys})
    return guarded(spec.evaluate(context))


def replied(text: str) -> EvaluationScore:
    """The score of a program that prints this."""
    return judged(f"print({text!r})")


REPEAT = """
import json, sys
payload = json.load(sys.stdin)
print(json.dumps({"score": 1, "details": payload}))
"""


def payload(context: Context = CONTEXT, **keys: Any) -> dict[str, Any]:
    """The payload that the program reads from stdin."""
    return dict(judged(REPEAT, context, **keys).details)


# The payload


def test_the_payload_has_all_keys_of_the_contract(tmp_path: Path) -> None:
    part = ContentPart("file", "data.csv", tmp_path / "data.csv")
    case = EvalCase(
        "one",
        (Message("system", "Be kind"), Message("user", (ContentPart("text", "Sum it"), part))),
        (),
        expected_outcome="The sum",
        expected_messages=(Message("assistant", {"riskLevel": "High"}),),
        metadata={"camelCase": {"snake_case": [1, None]}},
    )
    calls = (
        ToolCall("webSearch", {"maxResults": 3}, id="1"),
        ToolCall("add", success=False),
        ToolCall("webSearch", error="no network"),
    )
    messages = (Message("assistant", None, calls), Message("assistant", "It is 5"))
    observation = Observation("It is 5", calls, messages, Usage(7, 9), 0.25, 12.5)
    assert payload(Context(case, observation), strictMode=True) == {
        "question": "Sum it\ndata.csv",
        "expected_outcome": "The sum",
        "input_messages": [
            {"role": "system", "content": "Be kind"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "value": "Sum it"},
                    {"type": "file", "value": "data.csv"},
                ],
            },
        ],
        "expected_messages": [{"role": "assistant", "content": {"riskLevel": "High"}}],
        "reference_answer": '{"riskLevel": "High"}',
        "candidate_answer": "It is 5",
        "output_messages": [
            {
                "role": "assistant",
                "tool_calls": [
                    {"tool": "webSearch", "input": {"maxResults": 3}, "id": "1"},
                    {"tool": "add"},
                    {"tool": "webSearch"},
                ],
            },
            {"role": "assistant", "content": "It is 5"},
        ],
        "trace_summary": {
            "event_count": 3,
            "tool_names": ["add", "webSearch"],
            "tool_calls_by_name": {"webSearch": 2, "add": 1},
            "error_count": 2,
            "token_usage": {"input": 7, "output": 9},
            "cost_usd": 0.25,
            "duration_ms": 12.5,
        },
        "input_files": [str(tmp_path / "data.csv")],
        "metadata": {"camelCase": {"snake_case": [1, None]}},
        "config": {"strictMode": True},
    }


def test_unknown_values_are_null_in_the_payload() -> None:
    assert payload() == {
        "question": "What is 2+2?",
        "expected_outcome": "",
        "input_messages": [{"role": "user", "content": "What is 2+2?"}],
        "expected_messages": [],
        "reference_answer": "",
        "candidate_answer": "4",
        "output_messages": [{"role": "assistant", "content": "4"}],
        "trace_summary": {
            "event_count": None,
            "tool_names": None,
            "tool_calls_by_name": None,
            "error_count": None,
            "token_usage": None,
            "cost_usd": None,
            "duration_ms": None,
        },
        "input_files": [],
        "metadata": {},
        "config": {},
    }


def test_no_calls_and_unknown_calls_differ() -> None:
    summary = payload(Context(CASE, Observation("4", ())))["trace_summary"]
    assert {key: value for key, value in summary.items() if value is not None} == {
        "event_count": 0,
        "tool_names": [],
        "tool_calls_by_name": {},
        "error_count": 0,
    }


def test_partly_reported_tokens_are_passed_on_in_part() -> None:
    observation = Observation("4", usage=Usage(output_tokens=3))
    assert payload(Context(CASE, observation))["trace_summary"]["token_usage"] == {"output": 3}


def test_without_messages_the_answer_and_its_calls_become_one_message() -> None:
    observation = Observation("4", (ToolCall("add", [2, 2]),))
    assert payload(Context(CASE, observation))["output_messages"] == [
        {"role": "assistant", "content": "4", "tool_calls": [{"tool": "add", "input": [2, 2]}]}
    ]


def test_any_text_arrives_unchanged() -> None:
    code = """
    import json, sys
    text = json.load(sys.stdin)["candidate_answer"]
    print(json.dumps({"score": 1, "reasoning": ascii(text)}))
    """
    odd = 'é\u2028"\\\0\ud800 $(id) {{question}}'
    assert judged(code, Context(CASE, Observation(odd))).reasoning == ascii(odd)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_data_that_is_not_json_is_errored(value: Any) -> None:
    case = EvalCase("one", CASE.input_messages, (), metadata={"x": value})
    score = judged(REPEAT, Context(case, Observation("4")))
    assert "the program was not run: its input is not JSON" in score.error


# Where and with what it runs


def located(file: str) -> Context:
    case = EvalCase("one", CASE.input_messages, (), locate=lambda _: Origin(file, 1, 1))
    return Context(case, Observation("4"))


WHERE = """
import json, os
print(json.dumps({"score": 1, "reasoning": os.getcwd()}))
"""


def test_it_runs_in_the_folder_of_the_eval_file(project: Project) -> None:
    project.write("evals/deep/suite.yaml")
    assert judged(WHERE, located("evals/deep/suite.yaml")).reasoning == str(
        (project.root / "evals/deep").resolve()
    )


def test_without_a_file_it_runs_in_the_working_directory(project: Project) -> None:
    assert judged(WHERE).reasoning == str(project.root.resolve())


def test_it_runs_in_its_cwd(project: Project) -> None:
    project.write("checks/x")
    score = judged(WHERE, located("evals/suite.yaml"), cwd=str(project.root / "checks"))
    assert score.reasoning == str((project.root / "checks").resolve())


SEEN = """
import json, os
print(json.dumps({"score": 1, "details": dict(os.environ)}))
"""


def test_the_program_does_not_see_secrets_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "PYTHONPATH", "MINE", *HARMLESS):
        monkeypatch.setenv(name, os.environ.get(name, "value"))
    seen = set(judged(SEEN).details) - {"LC_CTYPE"}  # Python sets that one
    known = {"PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT"}
    assert seen == known | {"ASSAY_CHILD"}


def test_the_program_sees_allowed_variables_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("NOT_SET", raising=False)
    seen = judged(SEEN, env=["OPENAI_API_KEY", "NOT_SET"]).details
    assert seen["OPENAI_API_KEY"] == "k"
    assert "NOT_SET" not in seen


def test_a_core_is_reserved_while_it_runs(tmp_path: Path) -> None:
    for name in ("ready", "go"):
        os.mkfifo(tmp_path / name)
    code = """
    import sys
    open("ready", "w").close()
    open("go").close()
    print('{"score": 1}')
    """

    async def watch() -> tuple[int, int]:
        script = [PYTHON, "-c", dedent(code)]
        asking = asyncio.create_task(ask_program(script, {}, cwd=str(tmp_path)))
        await asyncio.to_thread((tmp_path / "ready").read_bytes)
        during = cpu_slot().free
        await asyncio.to_thread((tmp_path / "go").write_bytes, b"")
        assert (await asking).score == 1
        return during, cpu_slot().free

    assert guarded(watch()) == (core_count() - 1, core_count())


# Replies


def test_a_full_reply_becomes_a_score() -> None:
    reply = {
        "score": 0.75,
        "hits": ["adds"],
        "misses": ["no units"],
        "reasoning": "close",
        "details": {"deep": [1]},
        "verdict": "pass",
        "extra": 1,
    }
    assert replied(json.dumps(reply)) == EvaluationScore(
        0.75, hits=("adds",), misses=("no units",), reasoning="close", details={"deep": [1]}
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1}',
        '  \n {"score": 1.0}\n\n',
        '\ufeff{"score": 1}',
        '{"score": 1.0000000000000002}',
        '{"score": 1, "hits": null, "misses": null, "reasoning": null, "details": null}',
    ],
)
def test_a_score_alone_is_enough(text: str) -> None:
    assert judged(f"import os; os.write(1, {text.encode()!r})") == EvaluationScore(1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" ", "printed nothing"),
        ("score: 1", "printed invalid JSON: stdout:1:1: expecting value"),
        ('{"score": 1} {"score": 1}', "printed invalid JSON: stdout:1:14"),
        ('{"score": NaN}', "printed invalid JSON: stdout:1:11"),
        ('{"score": 1, "details": {"x": 1e999}}', "printed invalid JSON: stdout:1:"),
        ('{"score": 1, "score": 0}', "printed invalid JSON: stdout:1:14"),
        ("[" * 100_000, "printed invalid JSON"),
        ("1", "printed 1, not an object with a 'score'"),
        ("[1]", "printed a list, not an object with a 'score'"),
        ("null", "printed null, not an object with a 'score'"),
        ("{}", "printed an object without 'score'; its keys: none"),
        (
            '{"Score": 1, "hits": []}',
            "printed an object without 'score'; its keys: 'Score', 'hits'",
        ),
        ('{"score": null}', "printed null as 'score', not a number from 0 to 1"),
        ('{"score": true}', "printed true as 'score', not a number from 0 to 1"),
        ('{"score": "1"}', "printed '1' as 'score', not a number from 0 to 1"),
        ('{"score": 1.1}', "printed 1.1 as 'score', not a number from 0 to 1"),
        ('{"score": -0.1}', "printed -0.1 as 'score', not a number from 0 to 1"),
        ('{"score": 100}', "printed 100 as 'score', not a number from 0 to 1"),
        ('{"score": 1, "hits": "x"}', "printed 'x' as 'hits', not a list of texts"),
        ('{"score": 1, "misses": [1]}', "printed a list as 'misses', not a list of texts"),
        ('{"score": 1, "reasoning": 0}', "printed 0 as 'reasoning', not a text"),
        ('{"score": 1, "details": []}', "printed an empty list as 'details', not an object"),
    ],
)
def test_a_reply_outside_the_contract_is_errored(text: str, words: str) -> None:
    score = replied(text)
    assert score.score is None
    assert f"the program {words}" in score.error
    assert score.details["exit_code"] == 0
    assert score.details["stdout"] == cut(text + "\n", 1000)


def test_a_reply_that_is_not_utf8_is_errored() -> None:
    assert "not UTF-8" in judged(r"import os; os.write(1, b'\xff')").error


# How it can break


def test_an_exit_code_is_reported_with_the_end_of_stderr() -> None:
    code = """
    import sys
    print('{"score": 1}')
    sys.exit("x" * 9000 + "\\n\\x1b[31mno units\\n  in the answer\\n")
    """
    score = judged(code)
    assert score.score is None
    assert score.error.startswith(
        "the program ended with exit code 1; its stderr ends with: ...xxx"
    )
    assert score.error.endswith(r"xx \x1b[31mno units in the answer")
    assert len(score.error) < 400
    assert score.details["exit_code"] == 1
    assert score.details["stderr"].endswith("no units\n  in the answer")
    assert len(score.details["stderr"]) <= 4096


def test_a_signal_is_reported() -> None:
    score = judged("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert score.error == "the program was killed by SIGKILL"
    assert score.details == {"state": "exited", "signal": "SIGKILL"}


def test_taking_too_long_is_errored() -> None:
    score = judged("import signal; signal.pause()", timeout_seconds=0.05)
    assert score.error.startswith("the program took longer than 0.05 s ")
    assert score.details["state"] == "timed_out"


def test_too_much_output_is_errored_even_after_a_valid_start() -> None:
    code = """print('{"score": 1}' + " " * 11_000_000)"""
    score = judged(code)
    assert score.error.startswith("the program wrote more than 10,485,760 bytes")
    assert score.details["state"] == "too_much_output"
    assert len(score.details["stdout"]) == 1000


def test_a_missing_program_is_errored() -> None:
    score = guarded(ask_program(["no-such-judge"], {}, cwd="."))
    assert score == EvaluationScore.errored(
        "the program 'no-such-judge' was not found on PATH", state="not_started"
    )


def test_configured_limits_are_enforced() -> None:
    score = judged("bytearray(400 * 1024 * 1024)", max_memory_mb=200)
    assert score.error.endswith("MemoryError")
    score = judged("while True: pass", max_cpu_seconds=1)
    assert score.error.startswith("the program used more than 1 s of processor time")


def test_the_payload_may_be_any_json() -> None:
    script = [PYTHON, "-c", "import json, sys; print(json.dumps(json.load(sys.stdin)['results']))"]
    payload = {"results": {"score": 0.5, "hits": ["a"]}}
    score = guarded(ask_program(script, payload, cwd=".", limits=Limits()))
    assert score == EvaluationScore(0.5, hits=("a",))


# From an eval file


def test_an_argv_script_judges_the_case_of_a_file(project: Project) -> None:
    project.write(
        "evals/validate.py", REPEAT.replace('"score": 1', '"score": payload["config"]["to"]')
    )
    case = project.case(
        f"""
        cases:
          - id: sum
            input: What is 2+2?
            expected_output: "4"
            evaluators:
              - name: my_code_check
                type: code_judge
                script: [{json.dumps(PYTHON)}, validate.py]
                to: 0.5
        """,
        "evals/suite.yaml",
    )
    (spec,) = case.evaluators
    assert isinstance(spec, CodeJudgeEvaluator)
    score = guarded(spec.evaluate(Context(case, Observation("4"))))
    assert (score.score, score.details["reference_answer"]) == (0.5, "4")


def test_a_script_in_one_text_goes_to_the_shell(project: Project) -> None:
    case = project.case(
        """
        cases:
          - id: sum
            input: What is 2+2?
            evaluators:
              - name: my_code_check
                type: code_judge
                script: cat > payload.json && echo '{"score":' 1 '}'
        """
    )
    (spec,) = case.evaluators
    assert isinstance(spec, CodeJudgeEvaluator)
    assert guarded(spec.evaluate(Context(case, Observation("4")))).score == 1
    assert json.loads((project.root / "payload.json").read_text())["question"] == "What is 2+2?"


def test_a_long_reasoning_is_shortened_before_it_is_kept() -> None:
    score = judged("import json; print(json.dumps({'score': 1, 'reasoning': 'x' * 9_000_000}))")
    assert score.reasoning == "x" * 3997 + "..."
