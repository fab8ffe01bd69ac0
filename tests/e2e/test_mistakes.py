"""Common mistakes through the real command: each answer says what to do."""

from __future__ import annotations

import sys

from aiohttp import web

from e2e.projects import Agent, Project, cases_of

CASES = [{"id": name, "input": name, "expected_output": name} for name in ("one", "two")]
AGENT = """
import dataclasses
@dataclasses.dataclass
class Answer:
    response: str
def answer(text): return text
def record(text): return Answer(text)
def misspelt(text): return {"respnse": text, "toolCalls": []}
"""
FAILING = """
def outer(): inner()
def inner(): raise KeyError("the-last-line")
try: outer()
except KeyError as error: raise RuntimeError("a longer message " * 20) from error
"""


def test_run_without_an_api_key_is_refused_before_the_first_question(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES})
    done = home.run("run", ".", "--target", "openai:gpt-6-sol", code=2, env={"OPENAI_API_KEY": ""})
    assert "the target 'openai:gpt-6-sol' has no API key" in done.stderr
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


def test_report_shows_the_hint_for_a_misspelt_key(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES[:1]})
    home.write("desk_agent.py", AGENT)
    files = [item for name in ("r.md", "r.xml") for item in ("-o", name)]
    done = home.run("run", ".", "--target", "desk_agent.py:misspelt", *files, code=3)
    hint = "note: the key 'respnse' is not known (did you mean 'response'?)"
    assert hint in done.stdout
    for name in ("r.md", "r.xml"):
        assert "note: the key" in (home.root / name).read_text()


def test_rerun_says_that_nothing_failed(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES})
    home.run("run", ".", "--target", "echo:", "--filter", "o*")
    done = home.run("run", "--rerun-failed", "latest", code=5)
    assert "no case failed in the run" in done.stdout
    assert "--filter" not in done.stdout


def test_rerun_says_that_failed_cases_are_elsewhere(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": [CASES[0] | {"expected_output": "other"}]})
    home.write("b.eval.yaml", {"cases": CASES[1:]})
    home.run("run", ".", "--target", "echo:", code=1)
    done = home.run("run", "b.eval.yaml", "--rerun-failed", "latest", code=5)
    assert "none of the cases that failed in the run" in done.stdout


def test_report_says_how_many_answers_came_from_the_cache(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES})
    home.write("desk_agent.py", AGENT)
    command = ("run", ".", "--target", "desk_agent.py:answer", "--cache")
    assert "cache" not in home.run(*command, "--filter", "one").stdout
    assert "Note       1 of 2 answers came from the cache, given 20" in home.run(*command).stdout
    done = home.run(*command, "--json")
    trials = [case["details"]["trials"][0] for case in cases_of(done.stdout).values()]
    assert all(trial["cached"] and trial["answeredAt"].endswith("Z") for trial in trials)
    home.run("report", "latest", "-o", "r.md")
    assert "2 of 2 answers came from the cache" in (home.root / "r.md").read_text()


def test_report_says_how_often_the_target_was_retried(home: Project, agent: Agent) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text="Traceback " * 100 + "KeyError: 'city'")

    agent.answer = fail
    home.write("a.eval.yaml", {"cases": CASES[:1]})
    command = ("run", ".", "--target", agent.url, "--max-retries", "1", "--seed", "1")
    done = home.run(*command, code=3)
    assert "KeyError: 'city' (gave up after 2 attempts)" in " ".join(done.stdout.split())
    assert "Note       1 retry after errors of the target, in 1 of 1 trial" in done.stdout
    (case,) = cases_of(home.run(*command, "--json", code=3).stdout).values()
    assert case["details"]["trials"][0]["retries"] == 1


def test_last_line_of_a_traceback_is_shown(home: Project) -> None:
    home.write("a.eval.yaml", {"cases": CASES[:1]})
    home.write("agent.py", FAILING)
    done = home.run("run", ".", "--target", f"command:{sys.executable} agent.py", code=3)
    shown = " ".join(done.stdout.split())
    assert "RuntimeError: a longer message" in shown
    assert "a longer message a longer message\n" in done.stdout
