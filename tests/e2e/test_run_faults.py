"""What an agent, a program or a disk may do to a run, in the real command."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from typing import Any

import pytest
from aiohttp import web

from e2e.projects import (
    ASSAY,
    Agent,
    Gate,
    Project,
    cases_of,
    ended,
    environment,
    outcomes,
)
from timeouts import WAIT_SECONDS
from unit import provider_server as provider
from unit.process.test_child import all_die


def case(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "input": name, "expect": {"responseContains": ["fine"]}, **more}


def suite(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"cases": list(cases)}


FINE = provider.sends({"response": "fine", "toolCalls": []})
#: What the agent does at the first request about a case, and from then on.
HTTP_FAULTS: dict[str, tuple[provider.Answer, provider.Answer]] = {
    "fine": (FINE, FINE),
    "500 then fine": (provider.status(500), FINE),
    "429 then fine": (provider.status(429, Retry_After="1"), FINE),
    "closed then fine": (provider.close, FINE),
    "keep-alive broken": (provider.then_closes({"response": "fine", "toolCalls": []}), FINE),
    "401": (provider.status(401), FINE),
    "half JSON": (provider.raw(b'{"response": "fi'), FINE),
    "invalid UTF-8": (provider.raw(b'{"response": "\xff\xfe"}'), FINE),
    "100 MB": (provider.huge(announced=False), FINE),
    "hangs": (provider.hang, provider.hang),
}
HTTP_WORDS = {
    "401": "answered 401 Unauthorized",
    "half JSON": "is not JSON",
    "invalid UTF-8": "is not UTF-8",
    "100 MB": "is larger than 20 MB",
    "hangs": "no answer within 0.5 s",
}


def test_every_fault_of_a_server_is_an_errored_case_of_a_run_that_ends(
    home: Project, agent: Agent
) -> None:
    met: set[str] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        name = (await request.json())["message"]
        first, then = HTTP_FAULTS[name]
        again = name in met
        met.add(name)
        return await (then if again else first)(request)

    agent.answer = answer
    limits = {"hangs": {"execution": {"timeout_seconds": 0.5}}}
    home.write("one.eval.yaml", suite(*(case(n, **limits.get(n, {})) for n in HTTP_FAULTS)))
    done = home.run("run", ".", "--target", f"{agent.url}/ask", "--json", code=3)
    found = cases_of(done.stdout)
    expected = {name: "errored" if name in HTTP_WORDS else "passed" for name in HTTP_FAULTS}
    assert outcomes(done.stdout) == expected
    for name, words in HTTP_WORDS.items():
        assert words in found[name]["error"]
    assert found["hangs"]["passed"] is False
    summary = json.loads(done.stdout)["suites"][0]["summary"]
    assert (summary["failed"], summary["errored"]) == (0, len(HTTP_WORDS))
    assert summary["coverage"] == 1 - len(HTTP_WORDS) / len(HTTP_FAULTS)


def test_an_agent_that_is_not_there_is_not_asked_for_ever_and_the_run_can_be_resumed(
    home: Project, agent: Agent
) -> None:
    def point_at(url: str) -> None:
        target = {"name": "a", "provider": "http", "url": url}
        home.write("assay.yaml", {"targets": [target], "defaults": {"max_retries": 0}})

    point_at(provider.gone())
    home.write("one.eval.yaml", suite(*(case(f"fine {n}") for n in range(40))))
    done = home.run("run", ".", "--json", "--workers", "4", code=3)
    assert "could not be reached 20 times in a row" in done.stderr
    assert set(outcomes(done.stdout).values()) == {"errored"}
    errors = [found["error"] for found in cases_of(done.stdout).values()]
    asked = [error for error in errors if "not asked: a could not be reached" not in error]
    assert 20 <= len(asked) <= 23, "those in flight may be over, too"
    assert home.runs()[0][1] == "interrupted"
    point_at(f"{agent.url}/ask")
    agent.answer = FINE
    whole = home.call("run", ".", "--json", "--resume").stdout
    assert set(outcomes(whole).values()) == {"passed"}
    assert len(agent.seen) == 40
    assert json.loads(whole)["runId"] == json.loads(done.stdout)["runId"]


def test_an_agent_that_never_answers_ends_the_run_by_itself(home: Project, agent: Agent) -> None:
    agent.answer = provider.hang
    home.write("one.eval.yaml", suite(*(case(f"{n}") for n in range(30))))
    target = f"{agent.url}/ask"
    done = home.call(
        "run", ".", "--json", "--target", target, "--timeout", "0.2", "--workers", "20", code=3
    )
    assert set(outcomes(done.stdout).values()) == {"errored"}
    assert "no answer within 0.2 s" in done.stdout


#: A program that does what it is asked to.
PROGRAM = """
import os, signal, subprocess, sys, time
marker, wish = sys.argv[1:]
if wish == "ignores SIGTERM":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
elif wish == "forks":
    subprocess.Popen(["sleep", marker], start_new_session=True)
    subprocess.Popen(["sleep", marker])
elif wish == "writes for ever":
    while True:
        os.write(1, b"x" * 65536)
elif wish == "fails":
    sys.exit("out of tokens")
elif wish == "invalid UTF-8":
    os.write(1, bytes([255]))
print("fine")
"""
PROGRAM_WORDS = {
    "ignores SIGTERM": "no answer within 1 s",
    "writes for ever": "wrote more than 1,048,576 bytes",
    "fails": "ended with exit code 1; its stderr ends with: out of tokens",
    "invalid UTF-8": "not UTF-8",
}


def test_every_fault_of_a_program_is_an_errored_case_and_none_of_it_is_left(home: Project) -> None:
    marker = f"1000.{uuid.uuid4().int}"
    script = home.write("agent.py", PROGRAM)
    command = [sys.executable, str(script), marker, "{PROMPT}"]
    target = {"name": "a", "provider": "command", "command": command, "max_output_mb": 1}
    home.write("assay.yaml", {"targets": [target]})
    limit = {"execution": {"timeout_seconds": 1}}
    names = ["fine", "forks", *PROGRAM_WORDS]
    cases = [case(n, **(limit if n == "ignores SIGTERM" else {})) for n in names]
    home.write("one.eval.yaml", suite(*cases))
    done = home.run("run", ".", "--json", code=3)
    found = cases_of(done.stdout)
    assert outcomes(done.stdout) == {
        n: "errored" if n in PROGRAM_WORDS else "passed" for n in names
    }
    for name, words in PROGRAM_WORDS.items():
        assert words in found[name]["error"]
    assert all_die(marker)


# Disks and databases


@pytest.fixture
def talkative(home: Project, agent: Agent) -> Project:
    """An agent whose answers take room."""
    agent.reply = lambda body: {"response": "fine " * 8000, "toolCalls": []}
    target = {"name": "a", "provider": "http", "url": f"{agent.url}/ask"}
    home.write("assay.yaml", {"targets": [target]})
    home.write("one.eval.yaml", suite(*(case(f"fine {n}") for n in range(40))))
    return home


def test_a_disk_that_is_full_ends_the_run_in_words_and_nothing_is_broken(
    talkative: Project, agent: Agent
) -> None:
    """A limit on the size of files stands for the disk."""
    script = f"ulimit -f 1500; exec {shlex.quote(ASSAY)} run . --json --workers 1"
    process = subprocess.Popen(
        ["sh", "-c", script],
        cwd=talkative.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    done = ended(process, 3)
    assert done.stdout == ""
    assert "assay: .assay/assay.db: the disk failed, or a limit on the size" in done.stderr
    assert talkative.rows("PRAGMA integrity_check") == [("ok",)]
    kept = talkative.finished()
    assert 0 < len(kept) < 40
    agent.seen.clear()
    whole = talkative.call("run", ".", "--json", "--workers", "1", "--resume").stdout
    assert set(outcomes(whole).values()) == {"passed"}
    assert len(agent.seen) == 40 - len(kept)


def test_result_files_that_cannot_be_written_are_written_by_the_resumed_run(
    talkative: Project, agent: Agent
) -> None:
    def obstruct(number: int) -> None:
        [(run_id, _)] = talkative.runs()
        obstacle = talkative.root / ".assay" / "runs" / run_id / "one.eval.yaml.json"
        obstacle.mkdir(parents=True, exist_ok=True)

    agent.arrived = obstruct
    done = talkative.run("run", ".", code=3)
    assert ".json cannot be written: Is a directory" in done.stderr
    [(run_id, status)] = talkative.runs()
    assert status == "running"
    (talkative.root / ".assay" / "runs" / run_id / "one.eval.yaml.json").rmdir()
    agent.seen.clear()
    talkative.call("run", ".", "--resume")
    assert agent.seen == []
    assert list(talkative.result_files(run_id)) == ["one.eval.yaml.json"]


def test_a_project_that_cannot_be_written_to_is_told_before_anybody_is_asked(
    talkative: Project, agent: Agent
) -> None:
    talkative.write(".assay", "not a folder")
    done = talkative.run("run", ".", code=3)
    assert "assay: .assay/assay.db: the store cannot be created: " in done.stderr
    assert agent.seen == []


def test_a_report_that_nobody_can_write_is_told_and_the_run_is_kept(talkative: Project) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [ASSAY, "run", ".", "--json"],
            cwd=talkative.root,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
    assert "Traceback" not in done.stderr
    assert "assay: stdout cannot be written: No space left on device" in done.stderr
    assert done.returncode == 3
    assert talkative.runs()[0][1] == "finished"


def test_a_reader_that_has_seen_enough_changes_no_exit_code(talkative: Project) -> None:
    process = talkative.start("run", ".", "--json")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert ended(process, 0).stderr.count("\n") == 1


def test_a_database_that_another_process_locks_is_waited_for(
    home: Project, agent: Agent, gate: Gate
) -> None:
    home.write("one.eval.yaml", suite(case("fine")))
    process = home.start("run", ".", "--target", f"{agent.url}/ask")
    gate.await_reached()
    with closing(sqlite3.connect(home.root / ".assay" / "assay.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        gate.open()
        agent.await_idle()
        assert home.finished() == set()
        other.rollback()
    ended(process, 0)
    assert home.finished() == {("fine", 0)}


IMPATIENT = """
from assay.stores.sqlite import SqliteStore
SqliteStore.__init__.__defaults__ = (0.1,)
from assay.cli.main import main
main()
"""


def test_a_database_that_stays_locked_ends_the_run_in_words(
    home: Project, agent: Agent, gate: Gate
) -> None:
    home.write("one.eval.yaml", suite(case("fine")))
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, "run", ".", "--target", f"{agent.url}/ask"],
        cwd=home.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    gate.await_reached()
    with closing(sqlite3.connect(home.root / ".assay" / "assay.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        gate.open()
        done = ended(process, 3)
        other.rollback()
    assert "it is locked by another process" in done.stderr
    assert home.call("run", ".", "--target", f"{agent.url}/ask", "--resume").exit_code == 0


HANGING = """
import asyncio, threading
async def blocks(text):
    threading.Event().wait()
async def stubborn(text):
    while True:
        try:
            await asyncio.Event().wait()
        except BaseException:
            pass
async def thread(text):
    await asyncio.to_thread(threading.Event().wait)
def promised(text):
    return blocks(text)
def plain(text):
    threading.Event().wait()
"""


@pytest.mark.parametrize("name", ["blocks", "stubborn", "thread", "promised", "plain"])
def test_a_function_that_hangs_does_not_hang_the_run(home: Project, name: str) -> None:
    home.write("evals/one.eval.yaml", suite(case("a"), case("b")))
    home.write("hanging.py", HANGING)
    target = f"python:hanging:{name}"
    done = home.run("run", "evals", "--target", target, "--timeout", "0.2", "--json", code=3)
    assert outcomes(done.stdout) == {"a": "errored", "b": "errored"}
    assert "no answer within 0.2 s" in done.stdout
    assert "never awaited" not in done.stderr
    assert "Traceback" not in done.stderr


PRINTING = """
import os, subprocess, sys

def ask(text):
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "told"])
    sys.stdout.close()
    return "fine"
"""


def test_what_an_agent_prints_is_no_part_of_the_report(home: Project) -> None:
    home.write("printing.py", PRINTING)
    home.write("one.eval.yaml", suite(case("one")))
    done = home.run("run", ".", "--json", "--target", "python:printing:ask")
    assert json.loads(done.stdout)["exitCode"] == 0
    assert done.stderr.splitlines()[:3] == ["printed", "written", "told"]
