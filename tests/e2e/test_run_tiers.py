"""Tier files in a run: their order, gated rubrics, stale tools, tokens and the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from aiohttp import web

from e2e.projects import Agent, Project, cases_of, outcomes
from unit import provider_server as provider

PREFIX = {"golden": "gs", "labeled": "ls", "regression": "rg", "rubric": "rb"}


def case(tier: str, number: int = 1, tool: str = "t", **expect: Any) -> dict[str, Any]:
    """A case of a tier; the agent is asked its id."""
    name = f"{PREFIX[tier]}-{tool}-{number:03}"
    known: dict[str, Any] = {
        "id": name,
        "description": "regression — x",
        "input": {"message": name},
    }
    if tier == "rubric":
        criteria = {"dimension": "accuracy", "maxScore": 1, "criteria": "1 when right"}
        return known | {"rubric": [criteria]}
    if tier == "golden":
        expect = {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True} | expect
    if tier == "labeled":
        known["difficulty"] = "straightforward"
    if tier == "regression":
        known |= {"difficulty": "regression", "createdAt": "2026-01-15", "bugRef": "#1"}
    return known | {"expect": {"responseContains": ["fine"]} | expect}


def judge(body: dict[str, Any]) -> dict[str, Any]:
    """Finds everything right; it is asked with the prompt of a rubric."""
    checks = [{"id": "accuracy", "satisfied": True, "reasoning": "it is"}]
    return {"response": json.dumps({"checks": checks}), "toolCalls": []}


@pytest.fixture
def bad() -> set[str]:
    """The questions that are answered wrongly."""
    return set()


@pytest.fixture
def project(home: Project, agent: Agent, bad: set[str]) -> Project:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        if body.get("role") == "judge":
            return judge(body)
        return {"response": "wrong" if body["message"] in bad else "fine", "toolCalls": []}

    agent.reply = reply
    target = {"name": "a", "provider": "http", "url": agent.url}
    judging = {**target, "name": "j", "body": {"role": "judge", "message": "{{message}}"}}
    home.write(
        "assay.yaml", {"targets": [target, judging], "judge": "j", "defaults": {"target": "a"}}
    )
    for tier in PREFIX:
        home.write(f"t.{tier}.json", [case(tier, 1), case(tier, 2)])
    return home


def asked(agent: Agent) -> list[str]:
    """The tiers of the cases that the agent was asked, in order and each once in a row."""
    tiers = {prefix: tier for tier, prefix in PREFIX.items()}
    order = [tiers[b["message"][:2]] for b in agent.seen if b.get("role") != "judge"]
    return [tier for n, tier in enumerate(order) if n == 0 or order[n - 1] != tier]


def test_tiers_are_asked_in_their_order_and_results_are_in_the_order_of_files(
    project: Project, agent: Agent
) -> None:
    done = project.call("run", ".", "--json", "--workers", "1")
    assert asked(agent) == ["golden", "labeled", "regression", "rubric"]
    assert list(outcomes(done.stdout).values()) == ["passed"] * 8
    suites = json.loads(done.stdout)["suites"]
    assert [suite["tier"] for suite in suites] == list(PREFIX)
    assert [suite["toolName"] for suite in suites] == ["t"] * 4


def test_rubric_cases_wait_for_the_deterministic_cases_of_their_tool(
    project: Project, bad: set[str]
) -> None:
    bad.add("ls-t-002")
    project.write("other.golden.json", [case("golden", tool="other")])
    project.write("other.rubric.json", [case("rubric", tool="other")])
    done = project.call("run", ".", "--json", code=1)
    found = outcomes(done.stdout)
    assert {found["rb-t-001"], found["rb-t-002"]} == {"skipped"}
    assert found["rb-other-001"] == "passed"
    assert "1 deterministic case of t did not pass" in json.dumps(cases_of(done.stdout)["rb-t-001"])


def test_rubric_cases_go_by_cases_and_not_by_trials(project: Project, agent: Agent) -> None:
    """A case of which one trial could not be judged has passed with the others."""
    project.write("t.rubric.json", [case("rubric")])
    project.write("t.golden.json", [case("golden")])
    unlucky = provider.status(404)

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(agent.seen) == 1:
            return await unlucky(request)
        return web.json_response(agent.reply(await request.json()))

    agent.answer = answer
    files = ("t.golden.json", "t.rubric.json")
    done = project.call("run", *files, "--json", "--repeat", "2", "--workers", "1")
    assert outcomes(done.stdout) == {"gs-t-001": "passed", "rb-t-001": "passed"}
    trials = cases_of(done.stdout)["gs-t-001"]["details"]["trials"]
    assert {trial["outcome"] for trial in trials} == {"errored", "passed"}


@pytest.mark.parametrize("arguments", [["t.rubric.json"], [".", "--tier", "rubric"]])
def test_a_rubric_file_alone_is_run_with_a_note(project: Project, arguments: list[str]) -> None:
    done = project.call("run", *arguments)
    assert "run without the deterministic cases of its tool" in done.stdout
    assert "without the deterministic" not in project.call("run", ".").stdout


def test_stale_tools_are_warned_about_and_count_when_strict(project: Project) -> None:
    metadata = {"toolName": "t", "toolVersion": "1.0.0", "descriptionHash": "0" * 12}
    project.write(
        "t.golden.json", {"metadata": {**metadata, "registrySize": 1}, "cases": [case("golden")]}
    )
    tools = [{"name": "t", "version": "2.0.0", "description": "x"}, {"name": "u"}]
    project.write("tools.json", tools)
    config = (project.root / "assay.yaml").read_text()
    project.write("assay.yaml", f"{config}\ntools: tools.json\n")
    done = project.call("run", "t.golden.json", "--json")
    [suite] = json.loads(done.stdout)["suites"]
    assert len(suite["stalenessWarnings"]) == 3
    assert suite["metadata"]["toolVersion"] == "2.0.0"
    assert suite["metadata"]["registrySize"] == 2
    strict = project.call("run", "t.golden.json", "--strict", code=4)
    assert suite["stalenessWarnings"][0] in strict.stdout


def test_nothing_is_told_of_suites_that_are_not_asked(project: Project) -> None:
    project.write("tools.json", [])
    config = yaml.safe_load((project.root / "assay.yaml").read_text())
    project.write("assay.yaml", config | {"tools": "tools.json"})
    done = project.call("run", ".", "--tier", "golden")
    told = done.stdout + done.stderr
    assert told.count("is not in the registry") == 1
    assert "without the deterministic cases" not in told
    assert "unlocked-regression" not in told
    done = project.call("run", ".", "--filter", "gs-*")
    assert done.stdout.count("is not in the registry") == 1
    assert "without the deterministic cases" not in done.stdout
    assert "unlocked-regression" in project.call("run", ".").stderr


def test_tokens_are_resolved_when_the_run_begins(project: Project) -> None:
    values = ["{{seed:word}}", "{{seed:gone}}", "{{snapshot:word}}", "{{snapshot:gone}}"]
    golden = case("golden", responseContains=values)
    nothing = case("labeled")
    nothing["expect"] = {"responseContains": ["{{snapshot:gone}}"]}
    project.write("t.golden.json", [golden])
    project.write("t.labeled.json", [nothing])
    project.write("evals/seed-manifest.json", {"word": "fi"})
    config = (project.root / "assay.yaml").read_text()
    project.write("assay.yaml", f"{config}\nsnapshot: 'command:cat now.json'\n")
    project.write("now.json", {"word": "ne"})
    done = project.call("run", "t.golden.json", "t.labeled.json", "--json")
    first, second = json.loads(done.stdout)["suites"]
    assert first["summary"]["skippedAssertions"] == 2
    assert outcomes(done.stdout) == {"gs-t-001": "passed", "ls-t-001": "skipped"}
    assert "nothing verified" in json.dumps(second["cases"])
    project.write("now.json", {"word": "other"})
    project.call("run", "t.golden.json", code=1)
    (project.root / "now.json").unlink()
    assert "now.json" in project.call("run", "t.golden.json", code=3).stderr


def test_a_locked_regression_case_that_changed_ends_the_run(project: Project, agent: Agent) -> None:
    project.call("regression", "lock")
    project.call("run", "t.regression.json")
    agent.seen.clear()
    project.write("t.regression.json", [case("regression", 1, responseContains=["x"])])
    done = project.call("run", ".", code=2)
    assert "rg-t-001" in done.stderr
    assert "rg-t-002" in done.stderr
    assert "archive" in done.stderr
    assert agent.seen == []
