"""Commands on groups of runs: compare, report, runs, show, view."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

import assay
from assay.errors import UsageError
from assay.stores.sqlite import SqliteStore
from e2e.projects import Project
from unit.sample_groups import GROUP, TARGETS, fill_group, run_id

OTHER = "01938c4f-0000-7000-8000-0000000000aa"
ALONE = "01938c4d-0000-7000-8000-000000000001"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two groups, the newer of which lost `claude` and whose `gpt` is worse."""
    project = Project(tmp_path)
    with closing(SqliteStore(tmp_path / ".assay" / "assay.db")) as store:
        fill_group(store)
        fill_group(store, {"gpt": "F" * 12, "mini": TARGETS["mini"]}, group=OTHER)
    return project


@pytest.mark.parametrize("name", [GROUP, GROUP.upper(), GROUP[:13], run_id(1)])
def test_a_group_is_compared_by_its_id_the_start_of_it_or_a_run(
    project: Project, name: str
) -> None:
    shown = project.call("compare", name).stdout
    assert shown.startswith("BEST: gpt and claude, which cannot be told apart\n")
    assert f"run {run_id(2)} is of mini\n" in shown
    assert shown.count("against") == 2
    assert project.call("compare", name, "--pairs").stdout.count("against") == 3


def test_latest_is_the_group_of_the_latest_run(project: Project) -> None:
    document = json.loads(project.call("compare", "latest", "--json").stdout)
    assert document["groupId"] == OTHER
    assert [target["target"] for target in document["targets"]] == ["gpt", "mini"]


def test_the_same_targets_of_two_groups_are_compared(project: Project) -> None:
    shown = project.call("compare", GROUP, OTHER, code=1).stdout
    assert shown.index("--- gpt\nFAILED: 12 lost") < shown.index("--- mini\nPASSED: none lost")
    assert shown.endswith("only in the base: claude\ngpt: failed; mini: passed\n")
    project.call("compare", OTHER, GROUP)
    found = json.loads(project.call("compare", GROUP, OTHER, "--json", code=1).stdout)
    assert [each["target"] for each in found["targets"]] == ["gpt", "mini"]
    assert [each["verdict"] for each in found["targets"]] == ["failed", "passed"]
    assert (found["baseGroup"], found["candidateGroup"]) == (GROUP, OTHER)
    assert (found["onlyBase"], found["onlyCandidate"]) == (["claude"], [])
    assert found["exitCode"] == 1


def test_reports_of_a_group(project: Project) -> None:
    files = [f"r.{suffix}" for suffix in ("md", "xml", "json", "csv", "jsonl")]
    project.call("report", GROUP, *(f"-o{file}" for file in files))
    project.call("compare", GROUP, "-oc.md")
    project.call("compare", GROUP, OTHER, "-od.md", code=1)
    texts = {file: (project.root / file).read_text() for file in (*files, "c.md", "d.md")}
    assert json.loads(texts["r.json"])["groupId"] == GROUP
    assert texts["c.md"] == texts["r.md"]
    assert "12 lost" in texts["d.md"] or "fails now" in texts["d.md"]
    assert "weather [mini]" in texts["r.xml"]


def test_a_group_is_shown_as_it_was_reported(project: Project) -> None:
    shown = project.call("runs", "show", GROUP).stdout
    assert "claude: failed: 1 case failed" in shown
    assert shown.endswith("failed (exit code 1), the worst of 3 runs\n")
    document = json.loads(project.call("runs", "show", GROUP, "--json").stdout)
    assert document["groupId"] == GROUP
    listed = project.call("runs", "list").stdout.splitlines()
    assert len(listed) == 5
    assert f"  group {GROUP}" in listed[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", GROUP, run_id(0, OTHER)], "is a run, and"),
        (["compare", GROUP, "--gate", "strict"], "--gate is about two runs"),
        (["compare", GROUP, "--answers"], "--answers is about two runs"),
        (["compare", GROUP, OTHER, "--answers"], "--answers is about two runs or one group"),
        (["compare", GROUP, OTHER, "--preference", "x"], "--preference is about two runs or one"),
        (["compare", "0193"], "the store has no run or baseline '0193'"),
        (["compare", "01938c4e-0000-7"[:6]], "more than one group starts with"),
        (["show", GROUP], f"its runs are {run_id(0)} (gpt), {run_id(1)} (claude)"),
        (["show", GROUP, "case-1"], "is a group of runs: `assay compare"),
        (["runs", "show", GROUP, "--failed"], "--failed is about one run"),
    ],
)
def test_what_does_not_fit_a_group_is_explained(
    project: Project, arguments: list[str], said: str
) -> None:
    assert said in project.call(*arguments, code=2).stderr


def test_a_run_without_a_group_cannot_be_compared_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "a.eval.yaml").write_text("cases: [{id: a, input: x, expected_output: x}]")
    project.call("run", "a.eval.yaml", "--target", "echo:")
    refused = project.call("compare", "latest", code=2).stderr
    assert "does not belong to a group of several targets: name a second run" in refused


def test_the_answers_of_a_group_are_compared_by_a_judge(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)

    def broken(prompt: str) -> str:
        raise RuntimeError("no judge today")

    found = assay.prefer(GROUP, criteria="It is short.", judge=broken)
    assert found.targets == ("gpt", "claude", "mini")
    assert len(found.cases) + found.unasked == 3 * 12
    with pytest.raises(UsageError, match="a run is given twice"):
        assay.prefer(GROUP, run_id(0), criteria="It is short.", judge=broken)


def test_a_report_that_cannot_show_several_targets_is_refused_before_they_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    (tmp_path / "a.eval.yaml").write_text("cases: [{id: a, input: x, expected_output: x}]")
    (tmp_path / "agent.py").write_text("def answer(prompt): open('asked', 'w').close()")
    monkeypatch.delattr("assay.reporters.csv.write_group")
    targets = ("--target", "python:agent:answer", "--target", "python:agent:answer2")
    done = project.call("run", "a.eval.yaml", *targets, "-o", "x.csv", code=2)
    assert "its reporter has no write_group" in done.stderr
    assert not (tmp_path / "asked").exists()
    assert not project.runs()
