"""One command for several targets: runs, resuming, baselines, configuration and mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.projects import Agent, Gate, Project, ended

CASES = 24
IDS = [f"c{number}" for number in range(CASES)]
SUITE = {"cases": [{"id": i, "input": i, "expect": {"responseContains": [i]}} for i in IDS]}
RUN = ("run", "evals", "--target", "gpt", "--target", "claude")


def target(name: str, url: str) -> dict[str, Any]:
    body = {"message": "{{message}}", "id": "{{id}}", "target": name}
    return {"name": name, "provider": "http", "url": url, "body": body}


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    targets = [target(name, f"{agent.url}/{name}") for name in ("gpt", "claude", "mini")]
    home.write("assay.yaml", {"targets": targets, "defaults": {"workers": 3, "confirm": 0}})
    home.write("evals/one.eval.yaml", SUITE)
    agent.reply = lambda body: {"response": body["id"], "costUsd": 0.01}
    return home


def asked(agent: Agent) -> set[tuple[str, str]]:
    """The target and the case of every question; no question may be asked twice."""
    found = [(body["target"], body["id"]) for body in agent.seen]
    assert len(set(found)) == len(found)
    return set(found)


def saved(project: Project) -> set[tuple[str, str]]:
    joined = "run JOIN trial ON trial.run_id = run.id"
    return set(project.rows(f"SELECT target, case_id FROM {joined} WHERE final"))


def groups(project: Project) -> list[tuple[str, str, str]]:
    """The group, target and state of each run, oldest first."""
    return project.rows("SELECT group_id, target, status FROM run ORDER BY id")


def test_each_target_has_a_run_of_the_same_group(project: Project, agent: Agent) -> None:
    done = project.run(*RUN, "--json")
    document = json.loads(done.stdout)
    assert "asking 'gpt', 'claude': 48 calls\n" in done.stderr
    assert "48 of 48 trials, finished after" in done.stderr
    assert [run["exitCode"] for run in document["runs"]] == [0, 0]
    assert document["exitCode"] == 0
    assert document["comparison"]["groupId"] == document["groupId"]
    assert [t["target"] for t in document["comparison"]["targets"]] == ["gpt", "claude"]
    group = document["groupId"]
    assert groups(project) == [(group, "gpt", "finished"), (group, "claude", "finished")]
    assert asked(agent) == {(name, i) for name in ("gpt", "claude") for i in IDS}
    options = [json.loads(o) for (o,) in project.rows("SELECT options FROM run ORDER BY id")]
    assert [each["target"] for each in options] == ["gpt", "claude"], "one name each"
    for run in document["runs"]:
        assert project.result_files(run["runId"])
    again = project.run(*RUN)
    assert "asking 'gpt', 'claude': 48 calls, about $0.4800\n" in again.stderr, "by the runs before"
    assert again.stdout.startswith("CANNOT TELL") or "Best set" in again.stdout


def test_the_exit_code_is_that_of_the_worst_run(project: Project, agent: Agent) -> None:
    agent.reply = lambda body: {"response": "no" if body["target"] == "claude" else body["id"]}
    document = json.loads(project.run(*RUN, "--json", code=1).stdout)
    assert [run["exitCode"] for run in document["runs"]] == [0, 1]


def test_one_unreachable_target_does_not_stop_the_other(project: Project, agent: Agent) -> None:
    config = {"name": "down", "provider": "http", "url": "http://127.0.0.1:9/"}
    written = {"targets": [config, target("gpt", agent.url)], "defaults": {"max_retries": 0}}
    project.write("assay.yaml", written)
    done = project.run("run", "evals", "--target", "down", "--target", "gpt", "--json", code=3)
    assert "down: stopped asking: down could not be reached" in done.stderr
    document = json.loads(done.stdout)
    assert [run["exitCode"] for run in document["runs"]] == [3, 0]
    assert len(agent.seen) == CASES


def test_a_killed_group_is_resumed_and_nothing_saved_is_asked_again(
    project: Project, agent: Agent
) -> None:
    known: set[tuple[str, str]] = set()
    resume: tuple[str, ...] = ()
    for number in (1, 9, 17):
        agent.seen.clear()
        process = project.start(*RUN, "--json", *resume)
        agent.arrived = lambda count, p=process, n=number: p.kill() if count >= n else None  # type: ignore[misc]
        ended(process, -signal.SIGKILL)
        agent.arrived = lambda count: None
        assert not known & {(body["target"], body["id"]) for body in agent.seen}
        known, resume = saved(project), ("--resume",)
    agent.seen.clear()
    document = json.loads(project.run(*RUN, "--json", "--resume").stdout)
    assert not known & asked(agent)
    assert len(agent.seen) == 2 * CASES - len(known)
    counts = [run["suites"][0]["summary"]["passed"] for run in document["runs"]]
    assert counts == [CASES, CASES]
    assert {(g, s) for g, _, s in groups(project)} == {(document["groupId"], "finished")}
    assert len(groups(project)) == 2


def stopped(project: Project, agent: Agent, gate: Gate) -> str:
    """A group that was stopped by Ctrl-C; returns its id."""
    process = project.start_anew(*RUN, "--json")
    gate.await_reached()
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    for line in process.stderr:
        if "stopping: trials in flight" in line:
            assert line.startswith("stopping"), "it is about all runs"
            break
    gate.open()
    document = json.loads(ended(process, 130).stdout)
    assert [run["exitCode"] for run in document["runs"]] == [130, 130]
    assert len(agent.seen) <= 2 * 3
    agent.answer = None
    return str(document["groupId"])


def test_ctrl_c_stops_all_runs_and_the_group_can_be_resumed(
    project: Project, agent: Agent, gate: Gate
) -> None:
    group = stopped(project, agent, gate)
    done = project.run("run", "--resume", group, "--json")
    document = json.loads(done.stdout)
    assert document["groupId"] == group
    assert [run["exitCode"] for run in document["runs"]] == [0, 0]
    assert asked(agent) == {(name, i) for name in ("gpt", "claude") for i in IDS}
    again = project.call("run", "--resume", group, code=2)
    assert f"the group {group} is finished: there is nothing to resume" in again.stderr


def test_one_run_of_a_group_is_resumed_alone(project: Project, agent: Agent, gate: Gate) -> None:
    group = stopped(project, agent, gate)
    (first, _), (second, _) = project.runs()
    document = json.loads(project.run("run", "--resume", first, "--json").stdout)
    assert document["runId"] == first
    assert groups(project) == [(group, "gpt", "finished"), (group, "claude", "interrupted")]
    document = json.loads(project.run("run", "--resume", group, "--json").stdout)
    assert [run["runId"] for run in document["runs"]] == [first, second]
    assert asked(agent) == {(name, i) for name in ("gpt", "claude") for i in IDS}


def test_another_target_does_not_belong_to_the_unfinished_group(
    project: Project, agent: Agent, gate: Gate
) -> None:
    stopped(project, agent, gate)
    done = project.call(*RUN, "--target", "mini", "--resume", code=2)
    expected = "there is no unfinished group with these paths, targets and options to resume"
    assert expected in done.stderr
    for others in (["--target", "gpt"], ["--target", "gpt", "--target", "mini"]):
        named = project.call("run", "--resume", groups(project)[0][0], *others, code=2)
        assert "asks all targets of the group: leave out --target, name all of them" in named.stderr


def test_targets_with_a_secret_are_given_again_to_resume_their_group(
    project: Project, agent: Agent
) -> None:
    agent.reply = lambda body: {"response": str(body)}
    secret = f"{agent.url}/ask?api_key=sk-abcdefghijklmnopqrstuvwxyz0123456789"
    process = project.start("run", "evals", "--target", "gpt", "--target", secret)
    agent.arrived = lambda count: process.kill() if count > CASES else None
    ended(process, -signal.SIGKILL)
    agent.arrived = lambda count: None
    group = groups(project)[0][0]
    refused = project.call("run", "--resume", group, code=2)
    assert "held a secret, which is not recorded: give it again" in refused.stderr
    resume = ("run", "--resume", group, "--target", "gpt", "--target", secret)
    document = json.loads(project.call(*resume, "--json", code=0).stdout)
    assert document["groupId"] == group
    assert {status for _, _, status in groups(project)} == {"finished"}


OBJECTS = """
import os, signal, assay
def dies(question):
    os.kill(os.getpid(), signal.SIGKILL)
def other(question):
    return question
assay.run("evals", target=[dies, other])
"""


def test_a_group_of_python_functions_cannot_be_resumed(project: Project) -> None:
    script = project.write("script.py", OBJECTS)
    done = subprocess.run([sys.executable, script.name], cwd=project.root, check=False)
    assert done.returncode == -signal.SIGKILL
    refused = project.call("run", "--resume", groups(project)[0][0], code=2)
    assert "was given as a Python object, which is not recorded" in refused.stderr


def test_a_group_is_removed_with_all_its_runs(project: Project, agent: Agent) -> None:
    group = json.loads(project.call(*RUN, "--json").stdout)["groupId"]
    (first, _), (second, _) = project.runs()
    project.call("baseline", "set", "main", second)
    assert "is the baseline 'main'" in project.call("runs", "rm", group, code=2).stderr
    assert len(project.runs()) == 2, "all of them or none"
    project.call("baseline", "rm", "main")
    removed = project.call("runs", "rm", group).stdout
    assert removed == f"removed {first}\nremoved {second}\n"
    assert project.runs() == []
    assert group in project.call("runs", "rm", group, code=2).stderr


def test_commands_about_one_run_name_those_of_a_group(project: Project, agent: Agent) -> None:
    group = json.loads(project.call(*RUN, "--json").stdout)["groupId"]
    (first, _), _ = project.runs()
    refused = project.call("export", group, "-o", "seen.jsonl", code=2)
    assert f"'{group}' is a group, not a run: name one of its runs: {first} (gpt)" in (
        refused.stderr
    )


def test_a_rerun_takes_one_run(project: Project, agent: Agent) -> None:
    group = json.loads(project.run(*RUN, "--json").stdout)["groupId"]
    done = project.call("run", "--rerun-failed", group, code=2)
    (first, _), _ = project.runs()
    assert f"--rerun-failed takes one run, and {group} is a group" in done.stderr
    assert f"{first} (gpt)" in done.stderr


def test_the_budget_is_for_all_targets(project: Project, agent: Agent) -> None:
    done = project.run(*RUN, "--budget-usd", "0.1", "--workers", "1", "--json", code=3)
    assert 10 <= len(agent.seen) <= 12
    names = [body["target"] for body in agent.seen]
    assert abs(names.count("gpt") - names.count("claude")) <= 2
    assert done.stderr.count("stopped asking: the budget of $0.1 is spent") == 2


@pytest.mark.parametrize("name", ["group", "main", "run"])
def test_a_baseline_is_the_run_of_the_same_target(
    project: Project, agent: Agent, name: str
) -> None:
    base = json.loads(project.run(*RUN, "--json").stdout)
    first, second = (run["runId"] for run in base["runs"])
    project.call("baseline", "set", "main", first)
    reference = {"group": base["groupId"], "main": "main", "run": second}[name]
    agent.reply = lambda body: {"response": "no" if body["id"] == "c3" else body["id"]}
    document = json.loads(
        project.run(*RUN, "--baseline", reference, "--gate", "strict", "--json", code=1).stdout
    )
    assert [run["comparison"]["base"] for run in document["runs"]] == [first, second]
    alone = (
        "run",
        "evals",
        "--target",
        "claude",
        "--baseline",
        reference,
        "--json",
        "--gate=strict",
    )
    wanted = {"group": second, "main": second, "run": second}[name]
    assert json.loads(project.run(*alone, code=1).stdout)["comparison"]["base"] == wanted


def test_a_baseline_moves_to_a_group_if_no_target_objects(project: Project, agent: Agent) -> None:
    first = json.loads(project.run(*RUN, "--json").stdout)
    project.call("baseline", "set", "main", first["groupId"])
    second = json.loads(project.run(*RUN, "--baseline", "main", "--json").stdout)
    project.call("baseline", "update", "main", second["groupId"])
    shown = json.loads(project.call("baseline", "show", "main", "--json").stdout)
    assert shown["runId"] == second["runs"][0]["runId"]
    agent.reply = lambda body: {
        "response": "no" if (body["target"], body["id"]) == ("claude", "c3") else body["id"]
    }
    worse = json.loads(project.run(*RUN, "--json", code=1).stdout)["groupId"]
    for verb, code in (("set", 1), ("update", 0)):
        refusal = project.call("baseline", verb, "main", worse, code=code)
        assert "claude: evals/one.eval.yaml: c3" in refusal.output
        assert "gpt: " not in refusal.output
    shown = json.loads(project.call("baseline", "show", "main", "--json").stdout)
    assert shown["runId"] == second["runs"][0]["runId"]


def test_a_target_without_a_run_in_the_baseline_has_none(project: Project, agent: Agent) -> None:
    base = json.loads(project.run("run", "evals", "--target", "gpt", "--json").stdout)["runId"]
    done = project.run(*RUN, "--baseline", base, "--json")
    found = json.loads(done.stdout)["runs"]
    assert [run.get("comparison", {}).get("base") for run in found] == [base, None]
    shown = project.call("runs", "show", found[1]["runId"]).stdout
    assert f"it has no baseline: {base} has no run of this target" in shown
    options = [json.loads(o) for (o,) in project.rows("SELECT options FROM run ORDER BY id")]
    assert [each.get("baseline") for each in options[1:]] == [base, None]


def test_a_baseline_of_other_targets_is_a_mistake(project: Project, agent: Agent) -> None:
    base = json.loads(project.run("run", "evals", "--target", "mini", "--json").stdout)["runId"]
    agent.seen.clear()
    done = project.call(*RUN, "--baseline", base, code=2)
    assert f"the baseline {base!r} has no run of gpt or claude: it is of mini" in done.stderr
    assert agent.seen == []


def test_defaults_and_the_environment_may_name_several_targets(
    project: Project, agent: Agent
) -> None:
    config = Path(project.root, "assay.yaml").read_text()
    project.write("assay.yaml", config.replace("workers: 3", "workers: 3\n  target: [gpt, mini]"))
    project.run("run", "evals")
    assert [name for _, name, _ in groups(project)] == ["gpt", "mini"]
    project.run("run", "evals", env={"ASSAY_TARGET": "claude,mini"})
    assert [name for _, name, _ in groups(project)][2:] == ["claude", "mini"]
    project.run("run", "evals", "--target", "claude")
    assert groups(project)[4][0] is None, "one target is no group"


def test_a_target_with_several_models_is_one_target_for_each(
    project: Project, agent: Agent
) -> None:
    model = {"name": "gpt", "provider": "openai", "base_url": agent.url, "api_key": "k"}
    model |= {"model": ["gpt-6", "gpt-5"]}  # type: ignore[dict-item]
    project.write("assay.yaml", {"targets": [model]})
    agent.reply = lambda body: {
        "choices": [{"message": {"role": "assistant", "content": body["messages"][-1]["content"]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    for options in ((), ("--target", "gpt")):
        agent.seen.clear()
        project.run("run", "evals", *options)
        assert {body["model"] for body in agent.seen} == {"gpt-6", "gpt-5"}
    assert [name for _, name, _ in groups(project)] == ["gpt[gpt-6]", "gpt[gpt-5]"] * 2
    agent.seen.clear()
    project.run("run", "evals", "--target", "gpt[gpt-5]")
    assert {body["model"] for body in agent.seen} == {"gpt-5"}
    judged = project.call("run", "evals", "--target", "gpt[gpt-5]", "--judge", "gpt", code=2)
    assert "the target 'gpt' has several models: name one of 'gpt[gpt-6]'" in judged.stderr


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (("gpt", "gpt"), "two targets are called 'gpt': name each once"),
        (("gpt", "clade"), "no target is called 'clade' (did you mean 'claude'?)"),
    ],
)
def test_mistakes_in_targets(
    project: Project, agent: Agent, targets: tuple[str, ...], message: str
) -> None:
    options = [word for name in targets for word in ("--target", name)]
    assert message in project.call("run", "evals", *options, code=2).stderr
    assert (agent.seen, groups(project)) == ([], [])


@pytest.mark.parametrize("stream", [True, False])
def test_recorded_answers_of_several_targets(project: Project, agent: Agent, stream: bool) -> None:
    lines = [json.dumps({"id": i, "input": i, "expected_output": i}) for i in IDS]
    project.write("evals/two.eval.jsonl", "\n".join(lines * 1))
    Path(project.root, "evals/one.eval.yaml").unlink()
    for name, wrong in (("a", "c1"), ("b", "c2")):
        answers = [json.dumps({"id": i, "response": "no" if i == wrong else i}) for i in IDS]
        project.write(f"{name}.jsonl", "\n".join(answers))
    names = ("--target", "replay:a.jsonl", "--target", "replay:b.jsonl")
    narrowed = () if stream else ("--limit", "10")
    done = project.run("run", "evals", *names, *narrowed, "--json", code=1)
    assert "asking" not in done.stderr, "nobody is asked"
    document = json.loads(done.stdout)
    differing = [case["id"] for case in document["comparison"]["differing"]]
    assert sorted(differing) == ["c1", "c2"]
    assert document["comparison"]["compared"] == (CASES if stream else 10)


def test_pytest_runs_one_target(project: Project, agent: Agent) -> None:
    config = Path(project.root, "assay.yaml").read_text()
    project.write("assay.yaml", config.replace("workers: 3", "workers: 3\n  target: [gpt, mini]"))
    command = [sys.executable, "-m", "pytest", "--assay", "evals", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    expected = "one target is asked here, and 'gpt', 'mini' are configured: name one of them"
    assert expected in done.stdout
    command.append("--assay-target=mini")
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {body["target"] for body in agent.seen} == {"mini"}


def test_watching_several_targets_names_the_trials_of_each(project: Project, agent: Agent) -> None:
    process = project.start_anew(*RUN, "--watch")
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "waiting for changes" in line:
            break
    process.send_signal(signal.SIGINT)
    ended(process, 130)
    assert lines[0] == f"running {CASES} trials of each target\n"
    assert [name for _, name, _ in groups(project)] == ["gpt", "claude"]


def test_costs_are_announced_by_prices_as_far_as_they_are_known(
    project: Project, agent: Agent
) -> None:
    model = {"name": "gpt", "provider": "openai", "base_url": agent.url, "api_key": "k"}
    model |= {"model": ["m-1", "m-2"]}  # type: ignore[dict-item]
    prices = {"m-1": {"input": 0, "output": 1000}}
    project.write("assay.yaml", {"targets": [model], "prices": prices})
    agent.reply = lambda body: {"choices": [{"message": {"role": "assistant", "content": "c1"}}]}
    done = project.run("run", "evals", code=1)
    known = "asking 'gpt[m-1]', 'gpt[m-2]': 48 calls, about $2.4"
    assert done.stderr.startswith(known)
    assert "(without 'gpt[m-2]', whose price is not known)\n" in done.stderr
