"""Suites whose cases are in another file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.loaders import jsonl
from assay.settings import Settings
from assay.suites.staleness import eval_file_hash
from unit.conftest import invoke

if TYPE_CHECKING:
    from unit.conftest import Project

SUITE = """
    description: Capitals
    tags: [geo]
    execution:
      threshold: 0.9
      evaluators: [{type: contains, value: Paris}]
    cases: NAME
"""
FILES = {
    "c.jsonl": '{"id": "a", "input": "Paris"}\n{"id": "b", "input": "Rome"}\n',
    "c.yaml": "- {id: a, input: Paris}\n- {id: b, input: Rome}\n",
    "c.yml": "- {id: a, input: Paris}\n- {id: b, input: Rome}\n",
    "c.csv": "id,input\na,Paris\nb,Rome\n",
}


def naming(name: str, key: str = "cases") -> str:
    return SUITE.replace("NAME", name).replace("cases:", f"{key}:")


@pytest.mark.parametrize("name", FILES)
def test_named_cases_inherit_the_keys_of_the_suite(project: Project, name: str) -> None:
    project.write(f"data/{name}", FILES[name])
    suite = project.suite(naming(f"./data/{name}"))
    line = 2 if name == "c.csv" else 1
    assert (suite.name, suite.file, len(suite)) == ("suite", "suite.yaml", 2)
    assert [case.id for case in suite] == ["a", "b"]
    assert [case.origin.file for case in suite] == [f"data/{name}"] * 2
    assert [case.origin.line for case in suite] == [line, line + 1]
    assert all(case.tags == ("geo",) and case.threshold == 0.9 for case in suite)
    assert str(suite.cases[0].origin_of("evaluators.0.value")) == "suite.yaml:5:40"


@pytest.mark.parametrize("key", ["cases", "evalcases", "eval_cases", "tests"])
@pytest.mark.parametrize("text", ["c.jsonl", "./c.jsonl", "file://c.jsonl", "/c.jsonl"])
def test_spellings_of_the_name(project: Project, key: str, text: str) -> None:
    project.write("c.jsonl", FILES["c.jsonl"])
    assert len(project.suite(naming(text, key))) == 2


def test_a_large_file_is_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "HELD_BYTES", 10)
    project.write("c.jsonl", FILES["c.jsonl"])
    suite = project.suite(naming("c.jsonl"))
    assert [case.id for case in suite] == ["a", "b"]
    assert suite.cases[1].tags == ("geo",)


def test_paths_are_relative_to_the_suite(project: Project) -> None:
    part = {"type": "file", "value": "note.txt"}
    case = {"id": "a", "input": [{"role": "user", "content": [part]}]}
    project.write("evals/note.txt", "beside the suite")
    project.write("evals/data/c.jsonl", json.dumps(case))
    (case_,) = project.suite(naming("data/c.jsonl"), "evals/suite.yaml")
    assert case_.folder == str(project.root / "evals")
    assert case_.origin.file == "evals/data/c.jsonl"


def test_problems_have_the_position_in_their_own_file(project: Project) -> None:
    project.write("c.jsonl", '{"id": "a", "input": "x"}\n{"id": "a", "inpt": "x"}\n{"id"\n')
    found = project.problems(naming("c.jsonl"))
    assert {(p.file, p.line) for p in found} == {("c.jsonl", 2), ("c.jsonl", 3)}
    assert {"duplicate-id", "unknown-key", "json-syntax"} == {p.code for p in found}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("gone.jsonl", "6:8 file-not-found"),
        ("../outside.jsonl", "6:8 outside-root"),
        ("file:///gone.csv", "6:8 file-not-found"),
        ("notes.txt", "6:8 unknown-format"),
        ("folder", "6:8 file-not-found"),
        ("c/*.yaml", "6:8 file-not-found"),
    ],
)
def test_a_name_that_cannot_be_used(project: Project, name: str, place: str) -> None:
    project.write("assay.yaml")
    project.write("notes.txt", "x")
    project.write("folder/c.jsonl", FILES["c.jsonl"])
    assert project.refusals(naming(name)) == [place]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("cases: [{id: a, input: x}]\n", "1:1 no-cases"),
        ("[]\n", "1:1 no-cases"),
        ("", "1:1 no-cases"),
        ("- [\n", "2:1 yaml-syntax"),
    ],
)
def test_a_yaml_file_of_cases_is_a_list(project: Project, content: str, place: str) -> None:
    project.write("c.yaml", content)
    assert project.refusals(naming("c.yaml")) == [place]


def test_a_suite_that_names_itself_is_refused(project: Project) -> None:
    assert project.refusals(naming("suite.yaml")) == ["1:1 no-cases"]
    shown = invoke("validate", ".")
    assert (shown.exit_code, "error[no-cases]" in shown.stdout) == (2, True)


def test_a_second_sidecar_is_refused(project: Project) -> None:
    project.write("c.jsonl", FILES["c.jsonl"])
    project.write("c.yml", "execution: {threshold: 0.1}\n")
    (problem,) = project.problems(naming("c.jsonl"))
    assert (problem.file, problem.code) == ("c.yml", "two-sidecars")


def test_a_sidecar_may_name_its_own_file(project: Project) -> None:
    project.write("c.jsonl", FILES["c.jsonl"])
    project.write("c.yaml", naming("c.jsonl"))
    assert [suite.file for suite in assay.load(["c.yaml", "c.jsonl"])] == ["c.yaml"]
    (alone,) = assay.load("c.jsonl")
    assert [case.tags for case in alone] == [("geo",)] * 2


@pytest.mark.parametrize("name", ["c.jsonl", "c.eval.jsonl", "c.eval.csv", "c.yaml"])
def test_a_directory_has_named_cases_once(project: Project, name: str) -> None:
    project.write(f"evals/data/{name}", FILES[f"c{Path(name).suffix}"])
    project.write("evals/suite.yaml", naming(f"data/{name}"))
    for paths in (["evals"], ["evals/suite.yaml", f"evals/data/{name}"]):
        shown = invoke("validate", *paths)
        assert shown.exit_code == 0
        assert "1 suite with 2 cases loaded" in shown.stderr
        assert f"skipped evals/data/{name} (has the cases of suite.yaml)" in shown.stderr


def test_two_suites_may_name_one_file(project: Project) -> None:
    project.write("evals/c.jsonl", FILES["c.jsonl"])
    project.write("evals/one.yaml", naming("c.jsonl"))
    project.write("evals/two.yaml", "execution: {evaluators: [{type: is_json}]}\ntests: c.jsonl\n")
    assert [suite.file for suite in assay.load("evals")] == ["evals/one.yaml", "evals/two.yaml"]


def test_the_hash_covers_the_named_file(project: Project) -> None:
    settings = Settings.find(project.root)
    file = project.write("suite.yaml", naming("c.jsonl"))
    hashes = set()
    for content in (FILES["c.jsonl"], FILES["c.jsonl"] + "\n"):
        project.write("c.jsonl", content)
        hashes.add(eval_file_hash(file, settings))
    assert len(hashes) == 2
