"""A run of several targets ends with the preference that the configuration asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import assay
from e2e.projects import Project
from e2e.test_preference import AGENTS, CASES, python

TARGETS = ("--target", python("terse"), "--target", python("wordy"))
RUN = ("run", "evals/", *TARGETS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = Project(tmp_path)
    (tmp_path / ".git").mkdir()
    found.write("agents_to_compare.py", AGENTS)
    cases = [{"id": f"c{i}", "input": f"is it number {i}?"} for i in range(CASES)]
    found.write(
        "evals/a.eval.yaml",
        {"name": "a", "evaluators": [{"type": "contains", "value": "yes"}], "cases": cases},
    )
    configure(found, judge=python("longer"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def configure(project: Project, *, judge: str | None, **more: Any) -> None:
    preference = {"criteria": "Which is clearer?"} | ({"judge": judge} if judge else {})
    config = {"preference": preference, "defaults": {"workers": 1}} | more
    project.write("assay.yaml", config)


def test_a_run_of_several_targets_ends_with_the_preference(project: Project) -> None:
    done = project.call(*RUN, "-o", "report.md", "-o", "report.json")
    before, after = done.stderr.split("24 of 24 trials", 1)
    assert f"then the judge '{python('longer')}' compares the answers: at most 24 calls" in before
    assert "compares 12 pairs of answers in both orders: 24 calls" in after
    shown = re.sub(r"\s+", " ", done.stdout)
    assert "preference Which is clearer?" in shown
    assert "wordy is preferred" in shown
    assert "12 wins, 0 losses, 0 ties" in (project.root / "report.md").read_text()
    document = json.loads((project.root / "report.json").read_text())
    assert document["preference"]["pairs"][0]["wins"] == CASES
    assert document["exitCode"] == 0


def test_three_targets_are_ranked(project: Project) -> None:
    done = project.call(*RUN, "--target", python("middling"), "--json")
    found = json.loads(done.stdout)["preference"]
    assert "at most 72 calls" in done.stderr
    assert [ranked["target"] for ranked in found["ranking"]] == [
        *(python("wordy"), python("middling"), python("terse"))
    ]


@pytest.mark.parametrize("how", ["flag", "configuration"])
def test_the_step_can_be_left_out(project: Project, how: str) -> None:
    arguments: tuple[str, ...] = ("--no-preference",)
    if how == "configuration":
        defaults = {"workers": 1, "preference": False}
        configure(project, judge=python("longer"), defaults=defaults)
        arguments = ()
    done = project.call(*RUN, "--json", *arguments)
    assert "preference" not in json.loads(done.stdout)
    assert "judge" not in done.stderr


def test_one_target_has_no_preference(project: Project) -> None:
    done = project.call("run", "evals/", "--target", python("terse"))
    assert "preference" not in done.output


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        (None, "'judge: openai:MODEL' below 'preference' in assay.yaml"),
        ("luna", "no target is called 'luna'"),
    ],
)
def test_a_judge_that_is_missing_is_found_before_anything_is_asked(
    project: Project, judge: str | None, expected: str
) -> None:
    configure(project, judge=judge)
    done = project.call(*RUN, code=2)
    assert expected in re.sub(r"\s+", " ", done.stderr)
    assert project.runs() == []


def test_the_flag_needs_criteria(project: Project) -> None:
    project.write("assay.yaml", {})
    done = project.call(*RUN, "--preference", code=2)
    assert "no criteria say which answers are better" in done.stderr


def test_the_judge_has_what_is_left_of_the_budget(project: Project) -> None:
    project.write(
        "agents_to_compare.py",
        AGENTS.replace('return "yes"\n', 'return {"response": "yes", "cost_usd": 0.25}\n'),
    )
    done = project.run(*RUN, "--budget-usd", "4", "--json", code=3)
    document = json.loads(done.stdout)
    found = document["preference"]
    # 12 answers cost 3 dollars, so two pairs can be judged with the last one.
    assert (found["judge"]["costUsd"], found["unasked"]) == (1.0, CASES - 2)
    assert document["exitCode"] == 3


def test_nothing_is_compared_when_the_budget_is_spent(project: Project) -> None:
    project.write(
        "agents_to_compare.py",
        AGENTS.replace('return "yes"\n', 'return {"response": "yes", "cost_usd": 0.25}\n'),
    )
    done = project.run(*RUN, "--budget-usd", "3", "--json", code=3)
    found = json.loads(done.stdout)["preference"]
    assert (found["judge"]["calls"], found["unasked"]) == (0, CASES)
    assert "not all answers were compared: the budget of $3 is spent" in found["notes"]


def test_ctrl_c_ends_the_judging_and_the_report_is_written(project: Project) -> None:
    configure(project, judge=python("impatient"))
    done = project.run(*RUN, "--json", code=3)
    found = json.loads(done.stdout)["preference"]
    assert found["pairs"][0]["judged"] == CASES - found["unasked"] == 6
    assert "not all answers were compared: it was cancelled" in found["notes"]


def test_answers_that_cannot_be_compared_are_a_notice(project: Project) -> None:
    project.write("agents_to_compare.py", AGENTS.replace('return "yes"\n', "raise ValueError\n"))
    done = project.run(*RUN, "--json", code=3)
    assert "the answers are not compared: the runs have no case" in done.stderr
    assert "preference" not in json.loads(done.stdout)


def test_python_has_the_preference_of_the_group(project: Project) -> None:
    configure(project, judge=None)
    from agents_to_compare import longer, terse, wordy  # type: ignore[import-not-found]

    group = assay.run("evals/", target=[terse, wordy], judge=longer)
    assert group.preference is not None
    assert group.preference.pairs[0].wins == CASES
    without = assay.run("evals/", target=[terse, wordy], judge=longer, preference=False)
    assert without.preference is None
    assert without.exit_code == 0
