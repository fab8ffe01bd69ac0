"""The page of runs is complete, and its recipe for CI works."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from pages import Block, Page, Story, code_words

from assay.engine.runner import GRACE_SECONDS, MAX_UNREACHABLE
from assay.model.result import CaseDetails, CaseResult, TrialEntry
from assay.model.run_result import PRECEDENCE
from assay.model.score import EvaluatorEntry
from assay.model.suite_result import ResultFile, Summary
from assay.registry import targets
from assay.reporters.words import VERDICTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = Page.read(ROOT / "docs/runs.md", ROOT)
CACHED, POSTGRES, SHARDS = (b for b in PAGE.blocks if b.option("file").startswith(".github/"))


def keys(title: str) -> list[str]:
    return [code_words(row["Key"])[0] for row in PAGE.table(title)]


def written(shape: type[Any]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(shape)]


def test_keys_of_a_result_file_are_documented() -> None:
    assert sorted(keys("Result files")) == sorted(written(ResultFile))
    assert keys("Cases") == written(CaseResult)
    assert keys("Summary") == written(Summary)


def test_keys_of_details_are_documented() -> None:
    assert sorted(keys("Details")) == sorted(written(CaseDetails))
    told = {code_words(row["Key"])[0]: code_words(row["Meaning"]) for row in PAGE.table("Details")}
    assert told["trials"] == written(TrialEntry)
    assert told["evaluators"] == written(EvaluatorEntry)


def test_exit_codes_are_documented_in_their_order() -> None:
    assert [int(code_words(row["Code"])[0]) for row in PAGE.table("Exit codes")] == list(VERDICTS)
    assert f"the first of {', '.join(map(str, PRECEDENCE))} counts" in PAGE.text


def test_numbers_are_those_of_the_runner() -> None:
    assert f"{MAX_UNREACHABLE} times in a row" in PAGE.text
    assert f"gives those in flight {GRACE_SECONDS:g} seconds" in PAGE.text


def test_every_provider_is_shown_as_a_target() -> None:
    """Two are other names of one that is shown, and a script has no inline form."""
    shown = {
        w.partition(":")[0]
        for r in PAGE.table("Choosing the target")
        for w in code_words(r["Target"])
    }
    assert {*targets} - shown == {"cli", "mock", "scripted"}


#: Answers each question of the suite, but for those in the file `broken`.
AGENT = """
import pathlib


def answer(question):
    broken = pathlib.Path("broken").read_text().split()
    return "no idea" if question in broken else f"The answer to {question}."
"""
QUESTIONS = [f"q{n}" for n in range(6)]
PUSHES = 10 if os.environ.get("ASSAY_TEST_PROFILE") == "full" else 3


class Repository:
    """A project with the steps of a workflow, as GitHub would run them."""

    def __init__(self, folder: Path, workflow: str) -> None:
        self.folder, self.story = folder, Story(folder)
        steps = yaml.safe_load(workflow)["jobs"]["evals"]["steps"]
        scripts = [step["run"] for step in steps if "assay " in step.get("run", "")]
        self.validate, self.run, self.update = scripts[-3:]
        (folder / ".git").mkdir()
        (folder / "agent.py").write_text(AGENT)
        self.configure()
        cases = [
            {"id": q, "input": q, "evaluators": [{"type": "contains", "value": "answer"}]}
            for q in QUESTIONS
        ]
        (folder / "evals").mkdir()
        (folder / "evals/all.eval.yaml").write_text(yaml.safe_dump({"cases": cases}))
        self.break_questions()

    def configure(self, **more: Any) -> None:
        target = {"name": "agent", "provider": "python", "callable": "agent:answer"}
        (self.folder / "assay.yaml").write_text(yaml.safe_dump({"targets": [target]} | more))

    def break_questions(self, *questions: str) -> None:
        (self.folder / "broken").write_text(" ".join(questions))

    def call(self, script: str) -> tuple[int, str]:
        return self.story.shell(f"set -e\n{script}")  # as the shell of GitHub does

    def push(self) -> tuple[int, str]:
        """The exit code and the output of the run, and what `baseline update` printed."""
        code, output = self.call(self.run)
        updated, printed = self.call(self.update)
        assert updated == 0
        return code, output + printed


@pytest.mark.parametrize("workflow", [CACHED, POSTGRES], ids=["cached", "postgres"])
def test_the_recipe_for_ci_works(
    workflow: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    """Some pushes, a decline, an accepted loss, a fix."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    if workflow is POSTGRES:
        monkeypatch.setenv("ASSAY_STORE", request.getfixturevalue("postgres").new_database())
    repository = Repository(tmp_path, workflow.text)
    assert repository.call(repository.validate)[0] == 0
    for _ in range(PUSHES):
        code, output = repository.push()
        assert code == 0
        assert "main is now " in output
    history = json.loads(repository.call("assay baseline show main --json")[1])["history"]
    assert len(history) == PUSHES

    repository.break_questions("q2")
    for _ in range(2):  # it stays caught: the baseline does not follow the agent down
        code, output = repository.push()
        assert code == 1
        assert "main stays " in output
        assert "::error file=evals/all.eval.yaml,line=" in output
        assert "1 lost case failed every re-ask" in output
    assert "q2" in (tmp_path / "summary.md").read_text("utf-8")
    assert 'name="q2"' in (tmp_path / "junit.xml").read_text("utf-8")
    repository.break_questions("q2", "q3", "q4")
    code, output = repository.push()
    assert code == 1
    assert "3 lost cases failed every re-ask" in output

    accepted = [{"case": "q2", "reason": "the tool behind it is gone"}]
    repository.configure(accepted=accepted)
    repository.break_questions("q2")
    code, output = repository.push()
    assert code == 0
    assert "accepted: the tool behind it is gone" in output
    assert "main is now " in output

    repository.break_questions()
    code, output = repository.push()
    assert code == 0
    assert "accepted case 'q2' in the configuration: the case passes; remove the entry" in output
    assert "main is now " in output


def test_the_recipe_with_shards_works(tmp_path: Path) -> None:
    """First a push, then a pull request that breaks a case: the last job of each decides."""
    (tmp_path / ".git").mkdir()
    jobs = yaml.safe_load(SHARDS.text)["jobs"]
    commands = {
        name: [s["run"] for s in job["steps"] if "assay " in s.get("run", "")]
        for name, job in jobs.items()
    }
    (run,), (merge, compare, baseline) = commands["shard"], commands["verdict"]
    story = Story(tmp_path)
    assert story.shell("assay init .")[0] == 0
    (tmp_path / "shards").mkdir()

    def call(script: str) -> tuple[int, str]:
        return story.shell(f"set -e\n{script}")

    def ask() -> None:
        for part in jobs["shard"]["strategy"]["matrix"]["part"]:
            assert call(run.replace("${{ matrix.part }}", str(part)))[0] == 0
            (tmp_path / f"shard-{part}.json").replace(tmp_path / f"shards/shard-{part}.json")

    ask()
    for script in (merge, compare, baseline):
        assert call(script)[0] == 0
    suite = tmp_path / "evals/first.eval.yaml"
    suite.write_text(
        suite.read_text("utf-8").replace("id: capital\n", "id: capital\n    critical: true\n"),
        "utf-8",
    )
    agent = tmp_path / "example_agent.py"
    agent.write_text(
        agent.read_text("utf-8").replace('"Paris", "toolCalls"', '"Lyon", "toolCalls"'), "utf-8"
    )
    ask()
    assert call(merge)[0] == 0
    code, output = call(compare)
    assert code == 1
    assert "capital" in output
