"""Every exit code through the real command, and which one counts when several apply."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from assay.model.options import RunOptions
from assay.model.run import RunRecord, RunStatus
from assay.model.run_result import RunResult
from assay.model.suite_result import Summary
from assay.results.run import conclude
from e2e.projects import Agent, Gate, Project, ended
from unit import sample_runs

STALE = {"toolName": "t", "toolVersion": "1", "descriptionHash": "0" * 12, "registrySize": 1}


def case(name: str) -> dict[str, Any]:
    return {"id": name, "input": name, "expect": {"responseContains": ["yes"]}}


def project_of(home: Project, *names: str) -> Project:
    replies = {"good": "yes", "bad": "no", "broken": {"error": "broken"}}
    target = {"name": "a", "provider": "scripted", "replies": replies}
    home.write("assay.yaml", {"targets": [target], "tools": "tools.json"})
    home.write("tools.json", [])
    home.write("one.eval.yaml", {"cases": [case(name) for name in names]})
    return home


@pytest.mark.parametrize(
    ("names", "arguments", "code", "words"),
    [
        (["good"], [], 0, "PASSED (exit code 0)"),
        (["good", "bad", "broken"], [], 1, "1 case failed"),
        (["good", "broken"], [], 3, "1 of 2 cases were judged; 100 % required"),
        (
            ["good"],
            ["--filter", "gd"],
            5,
            "no case was selected: none matches --filter gd; a filter must match the whole id",
        ),
    ],
)
def test_a_run_ends_with_its_code(
    home: Project, names: list[str], arguments: list[str], code: int, words: str
) -> None:
    done = project_of(home, *names).run("run", ".", *arguments, code=code)
    assert words in done.stdout
    assert f"(exit code {code})" in done.stdout


@pytest.mark.parametrize(
    ("tag", "hint"),
    [("wether", " (did you mean 'weather'?)"), ("billing", "")],
)
def test_a_tag_that_selects_nothing_gets_the_nearest_tag(
    home: Project, tag: str, hint: str
) -> None:
    project_of(home, "good")
    home.write("one.eval.yaml", {"cases": [case("good") | {"tags": ["weather", "cold"]}]})
    done = home.call("run", ".", "--target", "a", "--tag", tag, code=5)
    assert f"no case was selected: none matches --tag {tag}{hint}\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "b"], "'b'"),
        (["--baseline", "nope"], "nope"),
        (["--shard", "3/2"], "3/2"),
        (["--target", "a", "--target", "a"], "two targets are called 'a'"),
        (["--judge", "nope"], "no target is called 'nope'"),
        (["--judge", "openai:"], "'model'"),
        (["--resume", "x", "--rerun-failed", "y"], "--rerun-failed y name two earlier runs"),
        (["--tier", "gold"], "gold"),
        (["nope"], "nope"),
        (
            ["-o", "report.xyz"],
            "the name of a report ends in one of .csv, .html, .json, .jsonl, .md, .xml",
        ),
        (["-o", "report.text"], "the name of a report ends in one of"),
        (["-o", "gone/report.md"], "gone/report.md: the folder gone does not exist"),
    ],
)
def test_what_a_user_wrote_wrong_is_told_before_anybody_is_asked(
    home: Project, arguments: list[str], words: str
) -> None:
    done = project_of(home, "good").call("run", ".", *arguments, code=2)
    assert words in done.stderr
    assert not (home.root / ".assay" / "runs").exists()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"plugins": ["nowhere_to_be_found"]}, "assay.yaml:2:3: error[plugin-failed]"),
        ({"snapshot": "python:nowhere_to_be_found:f"}, "there is no module"),
        ({"snapshot": {"command": ["no-such-program"]}}, "was not found on PATH"),
        ({"snapshot": "nowhere.json"}, "is neither a function nor a program"),
        ({"tools": "python:nowhere_to_be_found:f"}, "there is no module"),
        ({"tools": "nowhere.json"}, "nowhere.json: error[not-found]"),
        ({"store": "nosuch:file"}, "no store is called 'nosuch' (known: "),
        ({"defaults": {"workers": 0}}, "'workers' is 0"),
        ({"targets": [{"name": "a", "provider": "nosuch"}]}, "error[unknown-name]"),
        ({"prices": {"x": 1}}, "error[wrong-type]"),
    ],
)
def test_a_wrong_configuration_is_2(home: Project, config: dict[str, Any], words: str) -> None:
    project_of(home, "good").write("assay.yaml", config)
    target = "a" if "targets" in config else "echo:"
    assert words in home.call("run", ".", "--target", target, code=2).stderr


def test_a_path_that_leads_nowhere_in_any_reply_is_2(home: Project, agent: Agent) -> None:
    agent.reply = lambda body: {"response": "yes", "steps": []}
    target = {"name": "a", "provider": "http", "url": agent.url, "paths": {"usage": "tokens"}}
    skipped = case("later") | {"skip": "not yet"}
    home.write("assay.yaml", {"targets": [target]})
    home.write("one.eval.yaml", {"cases": [case("good"), skipped]})
    done = home.run("run", ".", "--cache", code=2)
    assert "a: 'paths.usage': nothing was found at 'tokens' in any of 1 replies" in done.stdout
    target["paths"] = {"tool_calls": "steps"}
    home.write("assay.yaml", {"targets": [target]})
    home.run("run", ".", "--cache")
    home.run("run", ".", "--cache")
    assert len(agent.seen) == 2, "what came from the cache shows where the path led"
    home.run("run", ".", "--filter", "later")


def test_an_evaluator_that_names_no_function_is_2(home: Project) -> None:
    wrong = case("good") | {"evaluators": [{"type": "python:nowhere_to_be_found:f"}]}
    project_of(home).write("one.eval.yaml", {"cases": [wrong]})
    assert "there is no module" in home.call("run", ".", code=2).stderr


def test_a_wrong_file_is_told_by_the_real_command(home: Project) -> None:
    project = project_of(home, "good")
    project.write("two.eval.yaml", "cases:\n  - id: a\n    inptu: x\n")
    assert "two.eval.yaml:3:5: error[unknown-key]" in project.run("run", ".", code=2).stderr


def test_stale_tools_are_4_when_strict_and_less_than_all_else(home: Project) -> None:
    project = project_of(home, "broken")
    golden = {
        "id": "gs-t-001",
        "description": "",
        "input": {"message": "good"},
        "expect": {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True},
    }
    project.write("t.golden.json", {"metadata": STALE, "cases": [golden]})
    assert "not in the registry" in project.run("run", "t.golden.json", "--strict", code=4).stdout
    project.call("run", "t.golden.json")
    project.call("run", ".", "--strict", code=3)
    project.write("one.eval.yaml", {"cases": [case("broken"), case("bad")]})
    project.call("run", ".", "--strict", code=1)


def test_a_run_that_is_stopped_is_130_although_cases_failed(
    home: Project, agent: Agent, gate: Gate
) -> None:
    home.write("one.eval.yaml", {"cases": [case(f"bad{n}") for n in range(3)]})
    process = home.start("run", ".", "--target", agent.url, "--workers", "1")
    gate.await_reached()
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "stopping" in process.stderr.readline()
    gate.open()
    done = ended(process, 130)
    assert "1 case failed" in done.stdout
    hint = re.search("the run was interrupted; `assay ([^`]+)`", done.stdout)
    assert hint is not None
    assert "3 cases failed" in home.run(*hint[1].split(), code=1).stdout


def code_of(
    *,
    total: int = 1,
    failed: int = 0,
    errored: int = 0,
    stale: bool = False,
    status: RunStatus = "finished",
    gave_up: str = "",
    baseline: str | None = None,
) -> int:
    judged = total - errored
    coverage = judged / total if total else None
    summary = Summary(total, judged - failed, failed, errored, 0, 0, 0.0, coverage)
    suite = sample_runs.suite(summary=summary, staleness_warnings=["it changed"] if stale else [])
    result = RunResult(RunRecord("r", "", status, "a"), (suite,), summary)
    return conclude(result, RunOptions(strict=True, baseline=baseline), gave_up=gave_up).exit_code


def test_when_several_codes_apply_the_first_of_the_contract_counts() -> None:
    """130, 2, 5, 1, 3, 4; what is 2 never becomes a run."""
    every: dict[str, Any] = {"total": 3, "failed": 1, "errored": 1, "stale": True}
    assert code_of(**every, status="interrupted") == 130
    assert code_of(total=0, stale=True) == 5
    assert code_of(total=0, status="interrupted") == 130
    assert code_of(**every) == 1
    assert code_of(**every, status="interrupted", gave_up="nobody there") == 1
    assert code_of(total=2, errored=1, stale=True) == 3
    assert code_of(gave_up="the budget is spent", status="interrupted") == 3
    assert code_of(failed=1, gave_up="spent", status="interrupted", baseline="main") == 3
    assert code_of(stale=True) == 4
    assert code_of() == 0


@pytest.mark.parametrize("where", ["-o", "step summary"])
def test_no_verdict_is_printed_when_a_report_cannot_be_written(home: Project, where: str) -> None:
    project = project_of(home, "good")
    (home.root / "full.md").symlink_to("/dev/full")
    options, env = ["-o", "full.md"], dict[str, str]()
    if where == "step summary":
        options, env = [], {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "full.md"}
    done = project.run("run", ".", "--target", "a", *options, code=3, env=env)
    assert done.stdout == ""
    [(run_id, status)] = project.runs()
    assert status == "finished"
    assert "full.md cannot be written: No space left on device" in done.stderr
    assert f"the run is recorded: `assay report {run_id} -o FILE` writes a report" in done.stderr
    project.run("report", run_id, "-o", "whole.md")
