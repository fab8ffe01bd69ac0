"""`assay run --watch` reruns what changed, in a real process on real files."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.projects import Agent, Gate, Process, Project, ended

AGENT = """
def answer(question):
    return "v1 " + question
"""
WAITING = "waiting for changes; Ctrl-C ends"


def suite(word: str, *ids: str) -> dict[str, object]:
    return {"cases": [{"id": i, "input": i, "expect": {"responseContains": [word]}} for i in ids]}


def until(process: Process, words: str) -> str:
    """What the command says on stderr until it says these words."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(f"never said {words!r}: {said}")


@pytest.fixture
def watched(home: Project) -> Project:
    home.write("agent.py", AGENT)
    home.write("evals/one.eval.yaml", suite("v1", "a", "b"))
    home.write("evals/two.eval.yaml", suite("v1", "c"))
    target = {"name": "mine", "provider": "python", "callable": "agent:answer"}
    home.write("assay.yaml", {"targets": [target], "defaults": {"target": "mine"}})
    return home


@contextmanager
def watching(project: Project, *more: str) -> Iterator[Process]:
    """The command at work; in the end Ctrl-C ends it."""
    process = project.start_anew("run", "evals", "--watch", "-q", *more)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    finally:
        process.kill()
        process.communicate()


def test_it_reruns_what_changed(watched: Project) -> None:
    with watching(watched) as process:
        assert "running 3 trials\n" in until(process, WAITING)
        watched.write("evals/two.eval.yaml", suite("v1", "c", "d"))
        said = until(process, WAITING)
        assert f"{os.path.join('evals', 'two.eval.yaml')} changed: running 2 trials\n" in said
        watched.write("agent.py", AGENT.replace("v1", "version 2"))
        assert "agent.py changed: running 4 trials\n" in until(process, WAITING)
        watched.write("evals/three.eval.yaml", suite("v1", "e"))
        watched.write("notes.txt", "no source")
        assert "running 1 trial\n" in until(process, WAITING)
    assert [status for _, status in watched.runs()] == ["finished"] * 4


def test_a_change_cancels_the_run(home: Project, agent: Agent, gate: Gate) -> None:
    home.write("evals/one.eval.yaml", suite("a", "a"))
    home.write("assay.yaml", {"targets": [{"name": "t", "provider": "http", "url": agent.url}]})
    with watching(home) as process:
        gate.await_reached()
        home.write("evals/one.eval.yaml", suite("b", "a", "b"))
        said = until(process, "running 2 trials")
        assert "one.eval.yaml changed: the run is cancelled\n" in said
        gate.open()
        until(process, WAITING)
    assert sorted(status for _, status in home.runs()) == ["finished", "interrupted"]


@pytest.mark.full
def test_a_broken_file_is_reported_and_can_be_repaired(watched: Project) -> None:
    with watching(watched) as process:
        until(process, WAITING)
        watched.write("evals/two.eval.yaml", "cases: [")
        assert "error[yaml-syntax]" in until(process, WAITING)
        watched.write("evals/two.eval.yaml", suite("v1", "c"))
        assert "running 1 trial\n" in until(process, WAITING)


def test_it_says_what_a_rerun_will_cost(watched: Project) -> None:
    answer = 'return {"response": "v1", "toolCalls": [], "costUsd": 0.25}'
    watched.write("agent.py", AGENT.replace('return "v1 " + question', answer))
    with watching(watched) as process:
        until(process, WAITING)
        watched.write("agent.py", AGENT)
        assert "agent.py changed: running 3 trials, about $0.7500\n" in until(process, WAITING)


@pytest.mark.parametrize(("more", "judged"), [([], False), (["--preference"], True)])
def test_answers_are_compared_only_if_the_command_says_so(
    watched: Project, more: list[str], judged: bool
) -> None:
    judge = 'def judge(messages):\n    return \'{"reasoning": "", "better": "tie"}\'\n'
    watched.write("agent.py", AGENT + judge)
    watched.write("assay.yaml", {"preference": {"criteria": "x", "judge": "python:agent:judge"}})
    targets = ("--target", "python:agent:answer", "--target", "echo:")
    with watching(watched, *targets, *more) as process:
        assert ("the judge 'python:agent:judge' compares" in until(process, WAITING)) is judged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evals", "--resume"], "--watch starts new runs: leave out --resume"),
        ([], "--watch needs the paths of eval files"),
    ],
)
def test_what_cannot_be_watched(watched: Project, arguments: list[str], message: str) -> None:
    done = watched.call("run", "--watch", *arguments, code=2)
    assert message in done.stderr
