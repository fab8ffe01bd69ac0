"""Ctrl-C once lets trials in flight finish, twice leaves at once; both can be resumed."""

from __future__ import annotations

import json
import os
import signal
import uuid

import pytest

from e2e.one_suite_project import checked_result
from e2e.projects import Agent, Gate, Process, Project, ended, outcomes
from unit.process.test_child import all_die, all_live

IDS = "abcdefgh"
SUITE = {"cases": [{"id": i, "input": i, "expect": {"responseContains": [i]}} for i in IDS]}


def await_line(process: Process, words: str) -> None:
    """Wait until the command says something."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return
    raise AssertionError(f"never said {words!r}: {said}")


@pytest.fixture
def held(home: Project, agent: Agent, gate: Gate) -> Project:
    home.write("evals/one.eval.yaml", SUITE)
    target = {"name": "a", "provider": "http", "url": agent.url}
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 2}})
    return home


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_trials_in_flight_finish(
    held: Project, agent: Agent, gate: Gate, number: signal.Signals
) -> None:
    process = held.start_anew("run", "evals", "--json")
    gate.await_reached()
    process.send_signal(number)
    await_line(process, "stopping: trials in flight have 10 s to finish")
    in_flight = len(agent.seen)
    gate.open()
    done = ended(process, 130)
    assert 1 <= len(agent.seen) <= 2
    document = json.loads(done.stdout)
    assert document["exitCode"] == 130
    assert set(outcomes(done.stdout).values()) == {"passed"}
    assert len(held.finished()) == len(outcomes(done.stdout)) >= in_flight
    assert held.runs() == [(document["runId"], "interrupted")]
    [file] = (held.root / ".assay" / "runs" / document["runId"]).glob("*.json")
    summary = checked_result(file.read_bytes())["summary"]
    assert summary["coverage"] == len(agent.seen) / len(IDS)
    assert summary["selected"] == len(IDS)
    kept = {body["message"] for body in agent.seen}
    agent.seen.clear()
    whole = held.call("run", "evals", "--json", "--resume").stdout
    assert list(outcomes(whole)) == list(IDS)
    assert kept | {body["message"] for body in agent.seen} == set(IDS)
    assert len(agent.seen) == len(IDS) - len(kept)


STUBBORN = """
trap '' INT
sleep {marker} &
setsid sleep {marker} &
echo there > {fifo}
wait
"""


def test_the_second_signal_leaves_at_once_and_takes_the_children_along(home: Project) -> None:
    fifo = home.root / "pids"
    os.mkfifo(fifo)
    home.write("evals/one.eval.yaml", SUITE)
    marker = f"1000.{uuid.uuid4().int}"
    script = home.write("agent.sh", STUBBORN.format(fifo=fifo, marker=marker))
    target = {"name": "a", "provider": "command", "command": ["sh", str(script)]}
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 1}})
    process = home.start("run", "evals", "--json")
    assert fifo.read_text() == "there\n"
    assert all_live(marker, 2)
    process.send_signal(signal.SIGINT)
    await_line(process, "stopping")
    process.send_signal(signal.SIGINT)
    done = ended(process, 130)
    assert all_die(marker)
    assert json.loads(done.stdout)["suites"][0]["cases"] == []
    assert home.runs() == [(json.loads(done.stdout)["runId"], "interrupted")]
    target["command"] = ["echo", "{PROMPT}"]
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 1}})
    assert set(outcomes(home.call("run", "evals", "--json", "--resume").stdout).values()) == {
        "passed"
    }


HANGING = """
import asyncio, threading
async def blocks(text):
    with open("there", "w"):
        threading.Event().wait()
async def stubborn(text):
    with open("there", "w"):
        while True:
            try:
                await asyncio.Event().wait()
            except BaseException:
                pass
"""


@pytest.mark.parametrize("name", ["blocks", "stubborn"])
def test_the_second_signal_leaves_an_async_function_that_hangs(home: Project, name: str) -> None:
    fifo = home.root / "there"
    os.mkfifo(fifo)
    home.write("evals/one.eval.yaml", SUITE)
    home.write("hanging.py", HANGING)
    target = f"python:hanging:{name}"
    process = home.start("run", "evals", "--target", target, "--workers", "1", "--json")
    with fifo.open():
        process.send_signal(signal.SIGINT)
        await_line(process, "stopping")
        process.send_signal(signal.SIGINT)
        done = ended(process, 130)
    assert json.loads(done.stdout)["suites"][0]["cases"] == []
    assert home.runs() == [(json.loads(done.stdout)["runId"], "interrupted")]


SLOW = """
import threading
with open("there", "w"):
    threading.Event().wait()
def answer(text):
    return text
"""


JUDGING = """
import sys, time
def hang():
    print("judging", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.05)
def judge(response):
    hang()
async def judge_later(response):
    hang()
"""


@pytest.mark.parametrize("name", ["judge", "judge_later"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_leaves_an_evaluator_that_hangs(
    home: Project, name: str, number: signal.Signals
) -> None:
    home.write("judging.py", JUDGING)
    case = {"id": "a", "input": "x", "evaluators": [{"type": f"python:judging:{name}"}]}
    home.write("evals/one.eval.yaml", {"cases": [case]})
    process = home.start("run", "evals", "--target", "echo:", "--json")
    await_line(process, "judging")
    process.send_signal(number)
    await_line(process, "stopping")
    process.send_signal(number)
    done = ended(process, 130)
    assert home.runs() == [(json.loads(done.stdout)["runId"], "interrupted")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_question_ends_the_command(
    home: Project, number: signal.Signals
) -> None:
    fifo = home.root / "there"
    os.mkfifo(fifo)
    home.write("evals/one.eval.yaml", SUITE)
    home.write("slow.py", SLOW)
    process = home.start("run", "evals", "--target", "python:slow:answer")
    with fifo.open():
        process.send_signal(number)
        done = ended(process, 130)
    assert done.stdout == ""
    assert done.stderr == "assay: interrupted\n"
    assert home.runs() == []


#: Ctrl-C while the command itself is being imported.
EARLY = """
import sys
class Pressed:
    def find_spec(self, name, *more):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed())
"""


def test_a_signal_before_there_is_a_command_ends_without_a_traceback(home: Project) -> None:
    home.write("early/sitecustomize.py", EARLY)
    env = {"PYTHONPATH": str(home.root / "early")}
    done = ended(home.start_anew("run", "evals", env=env), 130)
    assert (done.stdout, done.stderr) == ("", "")
