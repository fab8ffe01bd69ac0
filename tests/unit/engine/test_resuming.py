"""Runs that did not end: they are gone on with only as they were begun."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import assay
from assay.blocking import wait_for
from assay.engine.cancellation import Cancellation
from assay.errors import UsageError
from assay.service import runs
from unit.conftest import Project

ASKED = '[{"role": "user", "content": ["look", {"type": "file", "value": "note.txt"}]}]'
CASES = f'{{"id": "a", "input": {ASKED}}}\n{{"id": "b", "input": {ASKED}}}\n'
SIDECAR = "execution: {evaluators: [{type: contains, value: VALUE}]}\n"


@pytest.fixture(autouse=True)
def evals(project: Project) -> None:
    project.write("assay.yaml")
    project.write("evals/s.eval.jsonl", CASES)
    project.write("evals/s.eval.yaml", SIDECAR.replace("VALUE", "look"))
    project.write("evals/note.txt", "one")
    project.write(
        "evals/named.yaml", SIDECAR.replace("VALUE", "look") + "tests: ../named/cases.jsonl\n"
    )
    project.write("named/cases.jsonl", CASES)


def begun(path: str) -> assay.Run:
    """A run that was stopped while its first question was answered."""
    cancellation = Cancellation()

    def answer(question: str) -> str:
        cancellation.request()
        return question

    order = runs.RunRequest(path, answer, hooks=runs.RunHooks(cancellation=cancellation))
    run = wait_for(lambda: runs.execute(order, {"workers": 1}))
    assert (run.exit_code, run.summary.passed) == (130, 1)
    return run


def resumed(path: str) -> assay.Run:
    order = runs.RunRequest(path, lambda question: question, resume="")
    return wait_for(lambda: runs.execute(order, {"workers": 1}))


def add_file(project: Project) -> None:
    project.write("evals/a.eval.jsonl", '{"id": "new", "input": "x", "expected_output": "x"}\n')


def change_sidecar(project: Project) -> None:
    project.write("evals/s.eval.yaml", SIDECAR.replace("VALUE", "one"))


def change_named_cases(project: Project) -> None:
    project.write("named/cases.jsonl", CASES + "\n")


def change_attachment(project: Project) -> None:
    project.write("evals/note.txt", "other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add_file, "evals/a.eval.jsonl was added since the run"),
        (change_sidecar, "its question, expectations or evaluators changed since the run"),
        (change_named_cases, "evals/named.yaml changed since the run"),
        (change_attachment, "its question, expectations or evaluators changed since the run"),
    ],
)
def test_a_run_with_changed_cases_is_not_resumed(
    project: Project, change: Callable[[Project], None], words: str
) -> None:
    begun("evals")
    change(project)
    with pytest.raises(UsageError, match=words):
        resumed("evals")


def test_a_run_with_unchanged_cases_is_resumed() -> None:
    begun("evals")
    assert resumed("evals").summary.passed == 4


def test_regrading_an_unfinished_run_notes_the_missing_cases() -> None:
    run = begun("evals")
    found = assay.regrade(run.id)
    assert found.summary.total_cases == 1
    assert (
        f"the run {run.id} did not finish: cases that it did not reach are left out" in found.notes
    )


def test_a_run_of_another_store_is_graded_again_there() -> None:
    run = assay.run("evals", target="echo:", store="sqlite:other.db")
    found = assay.regrade(run.id, store="sqlite:other.db")
    assert found.summary.total_cases == run.summary.total_cases
