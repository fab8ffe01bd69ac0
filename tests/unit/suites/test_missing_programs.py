"""Programs that evaluators run: what does not exist is found before a run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import assay
from assay.errors import EvalFileErrors
from assay.suites.missing_programs import MissingPrograms

if TYPE_CHECKING:
    from unit.conftest import Project

SUITE = "id: a\ninput: x\nevaluators:\n  - {type: code_judge, script: %s}\n"


def reported(project: Project, script: str) -> list[tuple[str, str, str]]:
    """What `validate` reports: severity, message and hint."""
    project.write("a.yaml", SUITE % script)
    found = assay.validate("a.yaml").problems
    assert {(p.code, p.line) for p in found} <= {("program-not-found", 4)}
    return [(p.severity, p.message.removeprefix("code_judge: "), p.hint) for p in found]


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ("[python3, chek.py]", "the file 'chek.py' does not exist", "did you mean 'check.py'?"),
        ("python3 -u chek.py --fast", "the file 'chek.py' does not exist", "did you mean"),
        ("[env, run, deep/check.ts]", "the file 'deep/check.ts' does not exist", "relative to"),
        ("[./chek.py]", "the program './chek.py' does not exist", "did you mean 'check.py'?"),
        ("[./check.py]", "the program './check.py' is not executable", "chmod +x ./check.py"),
    ],
)
def test_missing_file_is_a_warning(project: Project, script: str, message: str, hint: str) -> None:
    project.write("check.py")
    ((severity, found, advice),) = reported(project, script)
    assert (severity, found) == ("warning", message)
    assert hint in advice


def test_program_that_is_not_on_the_path_is_a_warning(project: Project) -> None:
    expected = ("warning", "the program 'no-such-program' was not found on PATH", "install it")
    assert reported(project, "[no-such-program, run]") == [expected]


@pytest.mark.parametrize(
    "script",
    [
        "[python3, check.py]",
        "[python3, -c, import gone.py]",
        "[python3, -m, gone, gone.py]",
        "python3 $HOME/gone.py",
        "cat gone.py | python3 -",
        '"python3 \'unclosed.py"',
        "[./run, check.py]",
    ],
)
def test_existing_and_unknown_programs_are_accepted(project: Project, script: str) -> None:
    project.write("check.py")
    os.chmod(project.write("run"), 0o755)
    assert reported(project, script) == []


def test_files_are_looked_for_where_the_program_runs(project: Project) -> None:
    project.write("judges/check.py")
    assert reported(project, "[python3, check.py], cwd: judges") == []
    assert len(reported(project, "[python3, judges/check.py], cwd: judges")) == 1


def test_program_of_an_aggregator_is_checked(project: Project) -> None:
    members = "evaluators: [{type: contains, value: x}]"
    aggregator = "aggregator: {type: code_judge, script: [python3, gone.py]}"
    project.write(
        "a.yaml",
        f"id: a\ninput: x\nevaluators:\n  - {{type: composite, {members}, {aggregator}}}\n",
    )
    (problem,) = assay.validate("a.yaml").problems
    assert problem.message == "composite: the file 'gone.py' does not exist"


def test_shared_evaluator_is_reported_once(project: Project) -> None:
    project.write(
        "a.yaml",
        "execution: {evaluators: [{type: code_judge, script: [python3, gone.py]}]}\n"
        "cases: [{id: a, input: x}, {id: b, input: y}]\n",
    )
    assert len(assay.validate("a.yaml").problems) == 1


@pytest.mark.parametrize("script", ["[python3, gone.py]", "[no-such-program]"])
def test_run_is_refused_before_the_first_question(project: Project, script: str) -> None:
    asked: list[str] = []
    suite = project.suite(SUITE % script)  # loading alone needs no program
    with pytest.raises(EvalFileErrors) as refused:
        assay.run(suite, target=asked.append)
    assert [(p.severity, p.code) for p in refused.value.problems] == [
        ("error", "program-not-found")
    ]
    assert asked == []


def test_unselected_and_skipped_cases_need_no_program(project: Project) -> None:
    judge = f"evaluators: [{{type: code_judge, script: [{sys.executable}, gone.py]}}]"
    suite = project.suite(
        f"- {{id: a, input: x, expected_output: x}}\n- {{id: b, input: x, {judge}}}\n"
        f"- {{id: c, input: x, skip: later, {judge}}}\n"
    )
    assert assay.run(suite, target="echo:", filter=["a", "c"]).passed


def test_cases_that_are_read_one_by_one_do_not_share_results(project: Project) -> None:
    """The next case may get the memory of the last one, and so the `id()` of its evaluator."""
    found = MissingPrograms()
    for number in range(50):
        project.write("a.yaml", SUITE % f"[gone-{number}]")
        for case in assay.load("a.yaml")[0]:
            found.look(case)
    assert len({problem.message for problem in found.problems}) == 50
