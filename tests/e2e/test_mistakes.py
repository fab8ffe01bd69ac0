"""Common mistakes through the real command: each answer says what to do."""

from __future__ import annotations

from e2e.projects import Project

CASES = [{"id": name, "input": name, "expected_output": name} for name in ("one", "two")]
AGENT = """
import dataclasses
@dataclasses.dataclass
class Answer:
    response: str
def answer(text): return text
def record(text): return Answer(text)
"""


def test_run_without_an_api_key_is_refused_before_the_first_question(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES})
    done = home.run("run", ".", "--target", "openai:gpt-4o", code=2, env={"OPENAI_API_KEY": ""})
    assert "the target 'openai:gpt-4o' has no API key" in done.stderr
    assert "set the environment variable OPENAI_API_KEY" in done.stderr
    assert "trials" not in done.stderr
    home.write("b.eval.yaml", {"cases": [{"id": "c", "input": "x", "expected_outcome": "kind"}]})
    judged = ("--target", "echo:", "--judge", "anthropic:claude")
    done = home.run("run", ".", *judged, code=2, env={"ANTHROPIC_API_KEY": ""})
    assert "set the environment variable ANTHROPIC_API_KEY" in done.stderr


def test_function_is_named_by_its_file(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES})
    home.write("desk_agent.py", AGENT)
    done = home.run("run", ".", "--target", "desk_agent.py:answer")
    assert "Target     python:desk_agent:answer" in done.stdout
    home.run("run", ".", "--target", "python:desk_agent.py:record")
