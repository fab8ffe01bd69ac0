"""kill -9 at any moment loses nothing that was finished, and --resume does only the rest."""

from __future__ import annotations

import json
import os
import re
import signal
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from random import Random
from typing import Any

import pytest

from assay.blocking import wait_for
from assay.engine.cancellation import Cancellation
from assay.service.runs import RunHooks, RunRequest, execute
from contract.postgres import Server
from e2e.projects import Agent, Gate, Project, ended, normal, outcomes
from unit.process.test_child import IDLE, all_die, all_live, living, python

CASES, REPEATS = 60, 2
RUN = ("evals", "--json")


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Right for most, wrong for some, and for a few only the second time."""
    number = int(body["message"].split()[1])
    wrong = number % 11 == 5 or (number % 7 == 3 and body["repeat"] == 1)
    calls = [{"name": "look_up", "params": {"number": number}, "success": True, "result": number}]
    said = f"it is {0 if wrong else number}"
    return {"response": said, "toolCalls": calls, "durationMs": number, "costUsd": number / 1000}


def case(number: int) -> dict[str, Any]:
    return {
        "id": f"case-{number}",
        "input": f"number {number} please",
        "evaluators": [{"type": "contains", "value": str(number)}],
        "expect": {"toolsCalled": ["look_up"], "responseContains": ["it is"]},
        "min_pass_rate": 0.5 if number % 2 else 1.0,
    }


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    agent.reply = answer
    target = {"name": "agent", "provider": "http", "url": f"{agent.url}/ask"}
    target["body"] = {"message": "{{message}}", "repeat": "{{repeat}}", "id": "{{id}}"}  # type: ignore[assignment]
    home.write("assay.yaml", {"targets": [target], "defaults": {"repeat": REPEATS}})
    half = CASES // 2
    home.write("evals/one.eval.yaml", {"cases": [case(n) for n in range(1, half + 1)]})
    home.write("evals/two.eval.yaml", {"cases": [case(n) for n in range(half + 1, CASES + 1)]})
    return home


def asked(agent: Agent) -> set[tuple[str, int]]:
    return {(body["id"], body["repeat"]) for body in agent.seen}


def killed_at(project: Project, agent: Agent, number: int, *arguments: str) -> None:
    """A command that is killed when the agent gets its so manieth request."""
    agent.seen.clear()
    process = project.start("run", *RUN, *arguments)
    # A request of the process that was killed before may arrive late, and be counted too.
    agent.arrived = lambda count: process.kill() if count >= number else None
    ended(process, -signal.SIGKILL)
    agent.arrived = lambda count: None


def hold_out(project: Project, agent: Agent, seed: int, kills: int) -> None:
    """Kill a run again and again, and compare it with one that nobody killed."""
    whole = project.run("run", *RUN, code=1)
    expected = normal(whole.stdout)
    assert len(agent.seen) == CASES * REPEATS
    random = Random(seed)
    resume: tuple[str, ...] = ()
    left = CASES * REPEATS
    for kill in range(kills):
        # The first is before any trial is over, and enough are left for all later kills.
        number = random.randint(1, max(left // (kills - kill) // 2, 1)) if kill else 1
        done = project.finished() if kill else set()
        killed_at(project, agent, number, *resume)
        kept = project.finished()
        assert done <= kept
        assert not done & asked(agent)
        resume, left = ("--resume",), CASES * REPEATS - len(kept)
    done = project.finished()
    agent.seen.clear()
    last = project.run("run", *RUN, "--resume", code=1)
    assert asked(agent).isdisjoint(done)
    assert len(agent.seen) == CASES * REPEATS - len(done)
    assert normal(last.stdout) == expected
    first, second = (json.loads(text)["runId"] for text in (whole.stdout, last.stdout))
    assert project.result_files(first) == project.result_files(second)
    assert [status for _, status in project.runs()] == ["finished", "finished"]


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(
    project: Project, agent: Agent
) -> None:
    hold_out(project, agent, seed=1, kills=5)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_more_kills(project: Project, agent: Agent, seed: int) -> None:
    hold_out(project, agent, seed, kills=10)


SUITE: dict[str, list[dict[str, Any]]] = {
    "cases": [{"id": i, "input": i, "expect": {"responseContains": [i]}} for i in "ab"]
}

#: Ends the process when it is about to put, or has put, the so manieth file in its place.
DEADLY = """
import os, signal

before, after = (int(os.environ.get(name, 0)) for name in ("KILL_BEFORE", "KILL_AFTER"))
put, count = os.replace, 0

def replace(*arguments):
    global count
    count += 1
    if count == before:
        os.kill(os.getpid(), signal.SIGKILL)
    put(*arguments)
    if count == after:
        os.kill(os.getpid(), signal.SIGKILL)

if before or after:
    os.replace = replace

def answer(text):
    with open("asked.txt", "a") as file:
        file.write(text)
    return text
"""


@pytest.fixture
def small(home: Project) -> Project:
    home.write(
        "assay.yaml",
        {"targets": [{"name": "a", "provider": "python", "callable": "deadly:answer"}]},
    )
    home.write("deadly.py", DEADLY)
    home.write("one.eval.yaml", SUITE)
    home.write("two.eval.yaml", SUITE)
    return home


@pytest.mark.parametrize("moment", [("KILL_BEFORE", 1), ("KILL_AFTER", 1), ("KILL_AFTER", 2)])
def test_a_run_that_is_killed_while_it_writes_its_results_can_be_resumed(
    small: Project, moment: tuple[str, int]
) -> None:
    variable, number = moment
    killed = small.start("run", ".", "--json", env={variable: str(number)})
    assert ended(killed, -signal.SIGKILL).stdout == ""
    assert (small.root / "asked.txt").read_text() != ""
    (small.root / "asked.txt").unlink()
    [(run_id, status)] = small.runs()
    assert status == "running"
    done = small.run("run", ".", "--json", "--resume")
    assert not (small.root / "asked.txt").exists(), "all had been asked before"
    assert json.loads(done.stdout)["runId"] == run_id
    files = [suite["file"] for suite in json.loads(done.stdout)["suites"]]
    assert files == ["one.eval.yaml", "two.eval.yaml"]
    assert list(small.result_files(run_id)) == ["one.eval.yaml.json", "two.eval.yaml.json"]
    assert small.runs() == [(run_id, "finished")]


def test_a_run_that_is_killed_before_it_is_recorded_leaves_nothing_to_resume(
    small: Project,
) -> None:
    small.write("deadly.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    ended(small.start("run", "."), -signal.SIGKILL)
    assert small.runs() == []
    small.write("deadly.py", DEADLY)
    assert "there is no unfinished run" in small.run("run", ".", "--resume", code=2).stderr


@pytest.fixture
def held(home: Project, agent: Agent, gate: Gate) -> Project:
    """A project whose agent answers when the gate is opened."""
    home.write("evals/one.eval.yaml", SUITE)
    home.write("assay.yaml", {"targets": [{"name": "a", "provider": "http", "url": agent.url}]})
    return home


@pytest.fixture
def unfinished(held: Project, gate: Gate) -> tuple[Project, str]:
    """With a run that was killed before its first trial was over, and nothing on its way."""
    process = held.start("run", "evals", "--workers", "1")
    gate.await_reached()
    process.kill()
    ended(process, -signal.SIGKILL)
    gate.reached.clear()
    [(run_id, status)] = held.runs()
    assert (status, held.finished()) == ("running", set())
    return held, run_id


@pytest.mark.parametrize(
    "arguments", ["evals --resume ID", "--resume ID", "evals --resume", "--resume evals/"]
)
def test_a_run_is_resumed_by_its_id_or_as_the_newest_that_fits(
    unfinished: tuple[Project, str], gate: Gate, arguments: str
) -> None:
    project, run_id = unfinished
    gate.open()
    document = json.loads(
        project.call("run", *arguments.replace("ID", run_id).split(), "--json").stdout
    )
    assert document["runId"] == run_id
    assert outcomes(json.dumps(document)) == {"a": "passed", "b": "passed"}
    assert "is finished" in project.call("run", "--resume", run_id, code=2).stderr
    assert "no unfinished run" in project.call("run", "evals", "--resume", code=2).stderr


def test_a_run_is_resumed_only_as_it_was_begun(
    unfinished: tuple[Project, str], gate: Gate, agent: Agent
) -> None:
    project, run_id = unfinished
    gate.open()
    agent.seen.clear()
    other = project.call("run", "evals", "--resume", run_id, "--repeat", "3", code=2)
    assert (
        f"the run {run_id} was started with different paths or options: use the same ones"
        in other.stderr
    )
    assert (
        "no unfinished run"
        in project.call("run", "evals", "--resume", "--seed", "7", code=2).stderr
    )
    assert "no-such-run" in project.call("run", "--resume", "no-such-run", code=2).stderr
    project.write(
        "evals/one.eval.yaml", {"cases": [*SUITE["cases"], {**SUITE["cases"][0], "id": "c"}]}
    )
    for arguments in (["--resume"], ["--resume", run_id]):
        changed = project.call("run", "evals", *arguments, code=2)
        assert f"evals/one.eval.yaml changed since the run {run_id} began" in changed.stderr
    assert agent.seen == []


def test_a_run_is_not_resumed_while_it_is_at_work(held: Project, gate: Gate) -> None:
    process = held.start("run", "evals", "--json")
    gate.await_reached()
    [(run_id, _)] = held.runs()
    by_id = held.call("run", "--resume", run_id, code=2)
    assert f"the run {run_id} is running in another process" in by_id.stderr
    assert "no unfinished run" in held.call("run", "evals", "--resume", code=2).stderr
    gate.open()
    assert json.loads(ended(process, 0).stdout)["runId"] == run_id


def test_of_two_that_resume_a_run_at_once_one_is_refused(
    unfinished: tuple[Project, str], gate: Gate, agent: Agent
) -> None:
    project, run_id = unfinished
    agent.seen.clear()
    both = [project.start("run", "evals", "--resume", "--json") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ended, process) for process in both]
        refused, others = wait(waiting, return_when=FIRST_COMPLETED)
        assert [done.result().returncode for done in refused] == [2]
        gate.open()
        [went_on] = [other.result() for other in others]
    assert went_on.returncode == 0
    assert json.loads(went_on.stdout)["runId"] == run_id
    assert len(agent.seen) == 2, "each case was asked by one of them"


def test_runs_at_the_same_time_in_one_project_do_not_disturb_each_other(
    held: Project, gate: Gate
) -> None:
    first = held.start("run", "evals", "--json")
    gate.await_reached()
    gate.reached.clear()
    second = held.start("run", "evals", "--json")
    gate.await_reached()
    gate.open()
    one, two = (ended(process, 0).stdout for process in (first, second))
    assert normal(one) == normal(two)
    assert {json.loads(text)["runId"] for text in (one, two)} == {i for i, _ in held.runs()}
    assert [status for _, status in held.runs()] == ["finished"] * 2


# Runs that go back to others


def killed_in_the_second_half(project: Project, agent: Agent, *arguments: str) -> str:
    """The id of a run that was killed when it had asked the second of its questions."""
    agent.seen.clear()
    process = project.start(*arguments)
    agent.arrived = lambda count: process.kill() if count == 2 else None
    ended(process, -signal.SIGKILL)
    agent.arrived = lambda count: None
    agent.seen.clear()
    return project.runs()[-1][0]


@pytest.fixture
def failing(home: Project, agent: Agent) -> Project:
    """With a run in which three of six cases failed."""
    cases = [{"id": i, "input": i, "expect": {"responseContains": ["yes"]}} for i in "abcdef"]
    home.write("evals/one.eval.yaml", {"cases": cases})
    target = {"name": "a", "provider": "http", "url": agent.url}
    home.write("assay.yaml", {"targets": [target], "defaults": {"workers": 1}})
    agent.reply = lambda body: {"response": "yes" if body["message"] in "abc" else "no"}
    home.call("run", "evals", code=1)
    home.call("baseline", "set", "main")
    agent.reply = lambda body: {"response": "yes"}
    return home


@pytest.mark.parametrize("by_id", [True, False])
def test_the_rerun_of_what_failed_is_resumed_as_such(
    failing: Project, agent: Agent, by_id: bool
) -> None:
    run_id = killed_in_the_second_half(failing, agent, "run", "--rerun-failed", "main")
    assert "no unfinished run" in failing.call("run", "evals", "--resume", code=2).stderr
    arguments = ["--resume", run_id] if by_id else ["--rerun-failed", "main", "--resume"]
    done = failing.call("run", *arguments, "--json")
    assert json.loads(done.stdout)["runId"] == run_id
    assert outcomes(done.stdout) == {"d": "passed", "e": "passed", "f": "passed"}
    assert len(agent.seen) == 2


def test_a_run_with_a_baseline_is_resumed_with_it(failing: Project, agent: Agent) -> None:
    run_id = killed_in_the_second_half(failing, agent, "run", "evals", "--baseline", "main")
    agent.reply = lambda body: {"response": "yes" if body["message"] in "abc" else "no"}
    done = failing.call("run", "--resume", run_id, "--json")
    assert json.loads(done.stdout)["comparison"]["regressions"] == []


def test_grading_again_is_never_resumed_with_a_target_that_is_asked(
    failing: Project, agent: Agent
) -> None:
    evaluators = [{"type": "python:deadly:judge"}]
    cases = [{"id": i, "input": i, "evaluators": evaluators} for i in "abcdef"]
    failing.write("evals/one.eval.yaml", {"cases": cases})
    kills = "import os, signal\ndef judge(context):\n    "
    failing.write("deadly.py", f"{kills}os.kill(os.getpid(), signal.SIGKILL)\n")
    ended(failing.start("regrade", "main", "evals"), -signal.SIGKILL)
    run_id, agent.seen[:] = failing.runs()[-1][0], []
    failing.write("deadly.py", f"{kills}return True\n")
    assert "no unfinished run" in failing.call("run", "evals", "--resume", code=2).stderr
    done = failing.run("run", "--resume", run_id, "--json")
    assert outcomes(done.stdout) == dict.fromkeys("abcdef", "passed")
    assert agent.seen == []


# Recorded suites, which are read as a stream

#: Kills the process that started the graders, when it has got to one of the later cases.
MURDEROUS = """
import os, signal

def fine(context):
    parent = str(os.getppid())
    if context.case.id == "c150" and os.environ.get("SPARED", parent) != parent:
        os.kill(int(parent), signal.SIGKILL)
    return context.observation.response.startswith("c")
"""


@pytest.fixture
def recorded(home: Project) -> Project:
    names = [f"c{number}" for number in range(200)]
    pad = {"pad": "x" * 22_000}
    evaluators = [{"type": "python:murderous:fine"}]
    cases = [{"id": n, "input": n, "evaluators": evaluators, "metadata": pad} for n in names]
    home.write("big.eval.jsonl", "".join(f"{json.dumps(case)}\n" for case in cases))
    home.write("seen.jsonl", "".join(f'{{"id": "{n}", "response": "{n}"}}\n' for n in names))
    home.write("murderous.py", MURDEROUS)
    return home


def test_a_stream_that_is_killed_ends_like_one_that_is_not(recorded: Project) -> None:
    marker = f"{uuid.uuid4().hex}.md"
    arguments = ("big.eval.jsonl", "--target", "replay:seen.jsonl", "--json", "-o", marker)
    spared = {"SPARED": str(os.getpid())}
    ended(recorded.start_anew("run", *arguments, env=spared), -signal.SIGKILL)
    assert all_die(marker), "nobody grades for nobody"
    resumed = recorded.call("run", *arguments, "--resume").stdout
    assert normal(resumed) == recorded.document(*arguments[:-1], "other.md")
    assert len(outcomes(resumed)) == 200
    assert [status for _, status in recorded.runs()] == ["finished"] * 2


def test_a_stream_that_is_stopped_does_not_claim_to_know_its_end(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.root)
    cancellation = Cancellation()
    cancellation.request()
    order = RunRequest(
        ["big.eval.jsonl"], "replay:seen.jsonl", hooks=RunHooks(cancellation=cancellation)
    )
    stopped = wait_for(lambda: execute(order, {}))
    assert (stopped.exit_code, stopped.summary.coverage) == (130, None)
    whole = recorded.call("run", "big.eval.jsonl", "--target", "replay:seen.jsonl", "--resume")
    assert "200 of 200 cases judged" in whole.stdout
    assert "from before" not in whole.stderr


def test_a_run_survives_a_restart_of_its_database(
    project: Project, agent: Agent, postgres: Server
) -> None:
    expected = project.document(*RUN, code=1)
    agent.seen.clear()
    starting: list[Future[None]] = []

    def restart(count: int) -> None:
        if count == CASES:
            postgres.stop()
            starting.append(pool.submit(postgres.start))

    url = postgres.new_database()
    with ThreadPoolExecutor(1) as pool:
        agent.arrived = restart
        done = project.run("run", *RUN, "--store", url, code=1)
        starting[0].result()
    assert normal(done.stdout) == expected
    assert len(agent.seen) == CASES * REPEATS
    assert "psycopg" not in done.stderr
    assert "connection" not in done.stderr
    postgres.give_back(url)


# Reports


def reports_of(project: Project) -> dict[str, str]:
    """The reports by their names, with times and ids taken out."""
    files = [project.root / name for name in ("report.json", "report.md")]
    return {file.name: without_ids(file.read_text()) for file in files if file.exists()}


def without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}|[.0-9]+ m?s\b", "-", normal(text))


@pytest.mark.parametrize("kill", [("KILL_BEFORE", 3), ("KILL_AFTER", 3), ("KILL_AFTER", 4)])
def test_a_run_that_is_killed_before_its_reports_are_written_is_reported_by_resume(
    small: Project, kill: tuple[str, int]
) -> None:
    wrong = {**SUITE["cases"][0], "id": "wrong", "expect": {"responseContains": ["no"]}}
    small.write("two.eval.yaml", {"cases": [*SUITE["cases"], wrong]})
    arguments = ("run", ".", "-o", "report.json", "-o", "report.md")
    whole = small.run(*arguments, code=1)
    expected = reports_of(small)
    for name in expected:
        (small.root / name).unlink()
    ended(small.start(*arguments, env={kill[0]: str(kill[1])}), -signal.SIGKILL)
    assert [status for _, status in small.runs()] == ["finished"] * 2
    (small.root / "asked.txt").unlink()
    resumed = small.run(*arguments, "--resume", code=1)
    assert not (small.root / "asked.txt").exists()
    assert without_ids(resumed.stdout) == without_ids(whole.stdout)
    assert reports_of(small) == expected
    assert "only its reports were missing" in resumed.stderr
    assert len(small.runs()) == 2
    assert "no unfinished run" in small.run(*arguments, "--resume", code=2).stderr


def test_missing_reports_are_written_by_the_id_of_the_run(small: Project) -> None:
    ended(small.start("run", ".", "-o", "r.md", env={"KILL_BEFORE": "3"}), -signal.SIGKILL)
    [(run_id, _)] = small.runs()
    assert "PASSED" in small.run("run", "--resume", run_id, "-o", "r.md").stdout
    assert (small.root / "r.md").exists()
    assert "is finished" in small.run("run", "--resume", run_id, code=2).stderr


def test_missing_reports_of_a_run_before_the_newest_are_not_written(small: Project) -> None:
    ended(small.start("run", ".", "-o", "r.md", env={"KILL_BEFORE": "3"}), -signal.SIGKILL)
    small.run("run", ".")
    assert "no unfinished run" in small.run("run", ".", "--resume", code=2).stderr


# Children


def idle(marker: str) -> list[str]:
    return python(IDLE, marker)


@pytest.mark.parametrize("part", ["target", "judge", "tools", "snapshot"])
def test_children_of_a_killed_run_end_with_it(home: Project, part: str) -> None:
    marker = uuid.uuid4().hex
    config: dict[str, Any] = {"targets": [{"name": "a", "provider": "echo"}]}
    suite: dict[str, Any] = {"cases": [{**SUITE["cases"][0], "id": str(i)} for i in range(8)]}
    if part == "target":
        config = {"targets": [{"name": "a", "provider": "command", "command": idle(marker)}]}
    elif part == "judge":
        for case in suite["cases"]:
            case["evaluators"] = [{"type": "code_judge", "script": idle(marker)}]
    else:
        config[part] = {"command": idle(marker)}
    home.write("assay.yaml", config)
    home.write("one.eval.yaml", suite)
    process = home.start("run", ".", "--target", "a")
    assert all_live(marker, 2 if part in ("target", "judge") else 1)
    process.kill()
    ended(process, -signal.SIGKILL)
    try:
        assert all_die(marker)
    finally:
        for pid in living(marker):
            os.kill(pid, signal.SIGKILL)


#: Notes that it has begun, leaves an idle child behind, and answers.
BRIEF = 'echo >> started; "$@" > /dev/null 2>&1 & echo a'


def leave_no_child(home: Project, seed: int, kills: int) -> None:
    """Kill runs at random moments, while programs of their target begin and end."""
    marker, started = uuid.uuid4().hex, home.root / "started"
    target = {"name": "a", "provider": "command"}
    target["command"] = ["sh", "-c", BRIEF, "sh", *idle(marker)]  # type: ignore[assignment]
    home.write("assay.yaml", {"targets": [target]})
    cases = [{**SUITE["cases"][0], "id": str(i)} for i in range(100)]
    home.write("one.eval.yaml", {"cases": cases})
    random = Random(seed)
    for _ in range(kills):
        started.write_text("")
        number = random.randint(1, 30)
        process = home.start("run", ".")
        while started.stat().st_size < number:
            assert process.returncode is None
        process.kill()
        ended(process, -signal.SIGKILL)
        assert all_die(marker)


def test_kills_at_any_moment_leave_no_child(home: Project) -> None:
    leave_no_child(home, seed=1, kills=3)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_more_kills_leave_no_child(home: Project, seed: int) -> None:
    leave_no_child(home, seed, kills=10)
