"""Which files of a directory are eval files, which are skipped and why, and in which order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
import preloaded_command
from assay.registry import loaders
from assay.settings import Settings
from assay.suites.discovery import Discovery, discover, loader_for

if TYPE_CHECKING:
    from unit.conftest import Project

CASE = "id: a\ninput: Hello\nexpected_output: Hi\n"
LISTED = "- id: a\n  input: Hello\n  expected_output: Hi\n"
SUITE = "cases:\n- id: a\n  input: Hello\n  expected_output: Hi\n"
LINE = '{"id": "a", "input": "Hello", "expected_output": "Hi"}\n'
CSV = "id,input,expected_output\na,Hello,Hi\n"
GOLDEN = json.dumps(
    [
        {
            "id": "gs-t-001",
            "description": "d",
            "input": {"message": "m"},
            "expect": {"toolsCalled": ["t"], "noToolErrors": True, "responseNonEmpty": True},
        }
    ]
)


def discovered(paths: Iterable[Path]) -> Discovery:
    return discover(paths, Settings.find(Path.cwd()))


def found(path: str = ".") -> list[str]:
    """The files that would be loaded."""
    return [file.as_posix() for file in discovered([Path(path)]).files]


def skipped_files(path: str = ".") -> dict[str, str]:
    return {file.as_posix(): reason for file, reason in discovered([Path(path)]).skipped_files}


def problems(*paths: str) -> list[tuple[str, str]]:
    return [(p.file, p.code) for p in discovered([Path(path) for path in paths]).problems]


# Eval files by name or content, and skipped files


@pytest.mark.parametrize(
    "name",
    [
        "a.eval.yaml",
        "a.eval.yml",
        "a.eval.jsonl",
        "a.eval.csv",
        "a.b.eval.yaml",
        "t.golden.json",
        "t.labeled.json",
        "t.regression.json",
        "t.rubric.json",
    ],
)
@pytest.mark.parametrize("content", ["", "nothing: here\n", "%%%", "{}\n"])
def test_these_names_are_always_eval_files(project: Project, name: str, content: str) -> None:
    project.write(f"deep/er/{name}", content)
    assert found() == [f"deep/er/{name}"]
    assert skipped_files() == {}
    with pytest.raises(assay.EvalFileErrors):
        assay.load(".")


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
@pytest.mark.parametrize(
    "content",
    [
        SUITE,
        LISTED,
        SUITE.replace("cases", "tests"),
        SUITE.replace("cases", "evalcases"),
        SUITE.replace("cases", "eval_cases"),
        "cases: []\n",
        "cases:\n",
        "cases: text\n",
        '{"cases": [1]}',
        "- {input: x}\n- {input_messages: x, id: 5}\n",
        "- {input: x}\n- {inptu: x}\n",
        "- {id: a}\n- 1\n- {input: x}\n",
        "name: x\nother: [1]\ncases: {a: 1}\n",
    ],
)
def test_other_yaml_with_cases_or_a_list_of_inputs(
    project: Project, suffix: str, content: str
) -> None:
    project.write(f"a.{suffix}", content)
    assert found() == [f"a.{suffix}"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no cases"),
        ("# nothing\n", "no cases"),
        ("name: x\n", "no cases"),
        ("[]\n", "no cases"),
        ("- 1\n", "a list, but not of cases with an input"),
        ("- {name: x}\n", "a list, but not of cases with an input"),
        ("text\n", "no cases"),
        ("nested:\n  cases: []\n", "no cases"),
        (CASE, "no cases"),
        ("on:\n  push: [main\njobs: {}\n", "not valid YAML"),
        ("a: *b\n", "not valid YAML"),
        ("{{ template }}: {% x %}\n", "not valid YAML"),
    ],
)
def test_other_yaml_is_skipped(project: Project, content: str, reason: str) -> None:
    project.write("a.yaml", content)
    project.write("good.eval.yaml", SUITE)
    assert found() == ["good.eval.yaml"]
    assert reason in skipped_files()["a.yaml"]
    loaded = assay.validate(".")
    assert loaded.problems == ()
    assert [file for file, _ in loaded.skipped_files] == ["a.yaml"]


@pytest.mark.parametrize(
    ("content", "taken"),
    [
        (LINE, True),
        ("\n\n" + LINE, True),
        ('{"input_messages": []}\n', True),
        ('{"input": 5}\nnot json\n', True),
        ("\ufeff" + LINE, True),
        ('{"event": "x"}\n' + LINE, False),
        ("[1]\n", False),
        ('"input"\n', False),
        ("", False),
        ("\n \n", False),
    ],
)
def test_other_jsonl_when_its_first_line_has_an_input(
    project: Project, content: str, taken: bool
) -> None:
    project.write("a.jsonl", content.encode())
    assert found() == (["a.jsonl"] if taken else [])
    assert list(skipped_files()) == ([] if taken else ["a.jsonl"])
    assert all(skipped_files().values())


def test_other_csv_is_skipped(project: Project) -> None:
    project.write("a.csv", CSV)
    assert "*.eval.csv" in skipped_files()["a.csv"]
    assert found() == []


def test_files_of_other_kinds_are_not_reported(project: Project) -> None:
    for name in (
        "a.json",
        "package.json",
        "a.txt",
        "README.md",
        "a.py",
        "a.yaml.bak",
        "a",
        "b.toml",
    ):
        project.write(name, SUITE)
    project.write("good.eval.yaml", SUITE)
    assert found() == ["good.eval.yaml"]
    assert skipped_files() == {}


def test_the_ledger_is_not_an_eval_file(project: Project) -> None:
    for name in ("t.regression.lock.json", "t.regression.archive.json"):
        project.write(name, "{}")
    project.write("t.regression.json", "[]")
    project.write("t.golden.json", GOLDEN)
    assert found() == ["t.golden.json", "t.regression.json"]
    assert skipped_files() == {}


def test_the_configuration_is_not_an_eval_file(project: Project) -> None:
    project.write("assay.yaml", "allow_outside_root: false\n")
    project.write("sub/assay.yaml", SUITE)
    project.write("good.eval.yaml", SUITE)
    assert found() == ["good.eval.yaml"]
    assert skipped_files() == {}


@pytest.mark.parametrize("name", ["a.EVAL.YAML", "a.Golden.Json", "a.eval.YML"])
def test_names_are_case_sensitive(project: Project, name: str) -> None:
    project.write(name, SUITE)
    assert found() == []


# A typo must not make a suite disappear


@pytest.mark.parametrize(
    "content",
    [
        SUITE + "  tags: [x\n",
        "description: x\n" + SUITE + "\tbad: 1\n",
        SUITE + "- id: 'b\n",
        SUITE + "a: *b\n",
        SUITE.replace("cases", "tests") + "- : : :\n",
        "cases: &c\n- *c\n",
        "cases:\n- " + "[" * 200 + "\n",
    ],
)
def test_broken_yaml_with_cases_is_an_error(project: Project, content: str) -> None:
    project.write("a.yaml", content)
    assert found() == ["a.yaml"]
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(".")
    assert all(problem.line >= 1 for problem in refused.value.problems)


@pytest.mark.parametrize(
    "content",
    [
        LISTED + "  tags: [x\n",
        LISTED + "- id: b\n\tinput: x\n",
        "- input: 'x\n",
        '{"cases": [{"id": "a"}\n',
        '"cases":\n- id: a\n  tags: [x\n',
    ],
)
def test_broken_yaml_in_the_other_forms_of_a_suite_is_an_error(
    project: Project, content: str
) -> None:
    project.write("a.yaml", content)
    assert found() == ["a.yaml"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (SUITE.encode() + b"# caf\xe9\n", "encoding"),
        (SUITE.encode() + b"# \0\n", "bad-character"),
        (SUITE.encode() + b"# \x0c\n", "bad-character"),
    ],
)
def test_a_suite_with_a_bad_byte_is_an_error(project: Project, content: bytes, code: str) -> None:
    project.write("a.yaml", content)
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(".")
    assert [(p.file, p.line, p.code) for p in refused.value.problems] == [("a.yaml", 5, code)]


@pytest.mark.parametrize(
    "content",
    [
        LINE.replace("}", ",}"),
        '{"id": "a", "input": "x"\n',
        "{'id': 'a', 'input': 'x'}\n",
        '{"id": "a", "input": NaN}\n',
        '{"id": "a", "id": "b", "input": "x"}\n',
    ],
)
def test_a_broken_first_line_with_an_input_is_an_error(project: Project, content: str) -> None:
    project.write("a.jsonl", content + LINE)
    assert found() == ["a.jsonl"]
    with pytest.raises(assay.EvalFileErrors):
        assay.load(".")


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"\0\n", b"garbage\n", b"[[[\n"])
def test_a_jsonl_of_something_else_is_skipped(project: Project, content: bytes) -> None:
    project.write("a.jsonl", content)
    assert list(skipped_files()) == ["a.jsonl"]


# Sidecars


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_a_sidecar_is_skipped_and_applied(project: Project, suffix: str) -> None:
    project.write("a.jsonl", LINE)
    project.write(f"a.{suffix}", "execution: {threshold: 0.25}\n")
    assert found() == ["a.jsonl"]
    assert skipped_files() == {f"a.{suffix}": "sidecar of a.jsonl"}
    assert assay.load(".")[0].cases[0].threshold == 0.25


def test_two_sidecars_of_one_file_are_an_error(project: Project) -> None:
    project.write("a.jsonl", LINE)
    project.write("a.yaml", "execution: {threshold: 0.25}\n")
    project.write("a.yml", "execution: {threshold: 0.5}\n")
    (problem,) = assay.validate(".").problems
    assert (problem.file, problem.code) == ("a.yml", "two-sidecars")
    assert "a.yaml" in problem.message


def test_a_sidecar_of_an_eval_file(project: Project) -> None:
    project.write("a.eval.jsonl", LINE)
    project.write("a.eval.yaml", "description: About the lines\n")
    (suite,) = assay.load(".")
    assert (suite.file, suite.description) == ("a.eval.jsonl", "About the lines")


def test_a_suite_next_to_jsonl_of_another_name_is_not_a_sidecar(project: Project) -> None:
    project.write("a.jsonl", LINE)
    project.write("b.yaml", SUITE)
    project.write("sub/a.yaml", SUITE)
    assert found() == ["a.jsonl", "b.yaml", "sub/a.yaml"]


def test_a_sidecar_with_cases_is_an_error(project: Project) -> None:
    project.write("a.jsonl", LINE)
    project.write("a.yaml", "tests: [{id: b, input: x, outcome: y}]\n")
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(".")
    assert [(p.file, p.line, p.code) for p in refused.value.problems] == [
        ("a.yaml", 1, "conflicting-keys")
    ]


def test_a_broken_sidecar_is_an_error(project: Project) -> None:
    project.write("a.jsonl", LINE)
    project.write("a.yaml", "execution: [\n")
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(".")
    assert {p.file for p in refused.value.problems} == {"a.yaml"}


# Folders


@pytest.mark.parametrize(
    "folder",
    [".git", ".venv", ".hidden", "node_modules", "__pycache__", "a/.b/c", "x/node_modules"],
)
def test_skipped_folders(project: Project, folder: str) -> None:
    project.write(f"{folder}/a.eval.yaml", "broken: [")
    project.write("good.eval.yaml", SUITE)
    assert found() == ["good.eval.yaml"]
    assert skipped_files() == {}


def test_virtual_environments_are_skipped_under_any_name(project: Project) -> None:
    project.write("my-env/pyvenv.cfg", "home = /usr/bin\n")
    project.write("my-env/lib/a.eval.yaml", "broken: [")
    project.write("good.eval.yaml", SUITE)
    assert found() == ["good.eval.yaml"]


def test_a_named_folder_is_always_walked(project: Project) -> None:
    for folder in (".hidden", "node_modules"):
        project.write(f"{folder}/a.eval.yaml", SUITE)
        assert found(folder) == [f"{folder}/a.eval.yaml"]


def test_dot_files_are_files(project: Project) -> None:
    project.write(".a.eval.yaml", SUITE)
    assert found() == [".a.eval.yaml"]


@pytest.mark.parametrize("name", ["a.eval.yaml", "a.golden.json", "b.yaml"])
def test_a_folder_named_like_an_eval_file_is_a_folder(project: Project, name: str) -> None:
    project.write(f"{name}/x.eval.yaml", SUITE)
    assert found() == [f"{name}/x.eval.yaml"]


# Order and duplicates

TREE = (
    "b.eval.yaml",
    "B.eval.yaml",
    "a/z.eval.yaml",
    "a/b/c.eval.yaml",
    "a.eval.yaml",
    "é.eval.yaml",
)


def test_the_order_is_by_name_files_before_folders(project: Project) -> None:
    for name in reversed(TREE):
        project.write(name, SUITE)
    assert found() == [
        "B.eval.yaml",
        "a.eval.yaml",
        "b.eval.yaml",
        "é.eval.yaml",
        "a/z.eval.yaml",
        "a/b/c.eval.yaml",
    ]


def test_the_order_does_not_depend_on_the_order_of_writing(project: Project) -> None:
    for root, names in (("one", TREE), ("two", TREE[::-1])):
        for name in names:
            project.write(f"{root}/{name}", SUITE)
    assert [name[3:] for name in found("one")] == [name[3:] for name in found("two")]


def test_paths_keep_the_order_in_which_they_are_named(project: Project) -> None:
    for name in ("a.eval.yaml", "b.eval.yaml", "sub/c.eval.yaml"):
        project.write(name, SUITE)
    suites = assay.load(["sub", "b.eval.yaml", "a.eval.yaml"])
    assert [suite.file for suite in suites] == ["sub/c.eval.yaml", "b.eval.yaml", "a.eval.yaml"]


@pytest.mark.parametrize(
    "paths",
    [
        [".", "."],
        ["a.eval.yaml", "a.eval.yaml"],
        ["a.eval.yaml", "."],
        [".", "./sub/../a.eval.yaml"],
        ["link.eval.yaml", "a.eval.yaml"],
        ["other", "."],
    ],
)
def test_a_file_that_is_named_twice_is_loaded_once(project: Project, paths: list[str]) -> None:
    project.write("a.eval.yaml", SUITE)
    project.write("sub/x.txt")
    (project.root / "link.eval.yaml").symlink_to("a.eval.yaml")
    (project.root / "other").symlink_to(".") if "other" in paths else None
    assert len(discovered([Path(path) for path in paths]).files) == 1


def test_the_same_path_object_twice(project: Project) -> None:
    file = project.write("a.eval.yaml", SUITE)
    assert discovered([file, file]).files == [file]


def test_copies_are_different_files(project: Project) -> None:
    project.write("a.eval.yaml", SUITE)
    project.write("b.eval.yaml", SUITE)
    assert len(assay.load(".")) == 2


def test_hard_links_are_different_names_of_one_file(project: Project) -> None:
    os.link(project.write("a.eval.yaml", SUITE), project.root / "b.eval.yaml")
    assert found() == ["a.eval.yaml", "b.eval.yaml"]


# Links


def test_links_to_folders_and_files_are_followed(project: Project) -> None:
    project.write("real/a.eval.yaml", SUITE)
    project.write("elsewhere/b.yaml", SUITE)
    (project.root / "evals").mkdir()
    (project.root / "evals" / "folder").symlink_to("../real")
    (project.root / "evals" / "file.eval.yaml").symlink_to("../elsewhere/b.yaml")
    assert found("evals") == ["evals/file.eval.yaml", "evals/folder/a.eval.yaml"]


def test_two_links_to_one_folder_count_once(project: Project) -> None:
    project.write("real/a.eval.yaml", SUITE)
    for name in ("one", "two"):
        (project.root / name).symlink_to("real")
    assert len(found()) == 1
    assert problems(".") == []


def test_a_link_to_a_folder_above_is_a_loop(project: Project) -> None:
    project.write("sub/a.eval.yaml", SUITE)
    (project.root / "sub" / "up").symlink_to("..")
    assert found() == ["sub/a.eval.yaml"]
    assert problems(".") == [("sub/up", "symlink-loop")]


def test_a_link_to_a_folder_above_the_start_is_a_loop(project: Project) -> None:
    project.write("other.eval.yaml", SUITE)
    project.write("evals/deep/a.eval.yaml", SUITE)
    (project.root / "evals" / "up").symlink_to("..")
    assert found("evals") == ["evals/deep/a.eval.yaml"]
    assert problems("evals") == [("evals/up", "symlink-loop")]


def test_a_link_out_of_the_project_root_is_refused_unless_the_config_allows_it(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "b.eval.yaml").write_text(SUITE)
    project.write("evals/a.eval.yaml", SUITE)
    (project.root / "evals" / "shared").symlink_to(outside)
    assert found() == ["evals/a.eval.yaml"]
    assert problems(".") == [("evals/shared", "outside-root")]
    project.write("assay.yaml", "allow_outside_root: true\n")
    assert found() == ["evals/a.eval.yaml", "evals/shared/b.eval.yaml"]
    assert problems(".") == []


def test_a_folder_outside_the_project_root_may_be_named(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "deep").mkdir()
    (outside / "deep" / "b.eval.yaml").write_text(SUITE)
    (project.root / "shared").symlink_to(outside)
    assert found("shared") == ["shared/deep/b.eval.yaml"]
    assert problems("shared", str(outside)) == []


def test_a_broken_link_named_like_a_folder_is_ignored(project: Project) -> None:
    project.write("a.eval.yaml", SUITE)
    (project.root / "gone").symlink_to("nowhere")
    assert found() == ["a.eval.yaml"]
    assert problems(".") == []


# Paths that are wrong


def test_no_eval_files(project: Project) -> None:
    (project.root / "empty").mkdir()
    project.write("other/notes.yaml", "a: 1\n")
    project.write("hidden/.git/a.eval.yaml", SUITE)
    for folder in ("empty", "other", "hidden"):
        assert problems(folder) == [(folder, "no-eval-files")]


def test_one_empty_folder_among_others_is_still_an_error(project: Project) -> None:
    project.write("evals/a.eval.yaml", SUITE)
    (project.root / "empty").mkdir()
    assert problems("evals", "empty") == [("empty", "no-eval-files")]
    assert problems("empty", "evals") == [("empty", "no-eval-files")]


def test_a_folder_whose_files_were_named_already_is_not_empty(project: Project) -> None:
    project.write("evals/a.eval.yaml", SUITE)
    assert problems("evals/a.eval.yaml", "evals") == []
    assert problems("evals", "evals") == []


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("weather.eval.yml", "did you mean 'weather.eval.yaml'?"),
        ("wether.eval.yaml", "did you mean 'weather.eval.yaml'?"),
        ("Weather.Eval.Yaml", "did you mean 'weather.eval.yaml'?"),
        ("eval", "did you mean 'evals'?"),
        ("evals/frist.eval.yaml", "did you mean 'first.eval.yaml'?"),
        ("nowhere/x.yaml", ""),
        ("weather.eval.yaml/x", ""),
        ("zzz", ""),
    ],
)
def test_a_missing_path_and_the_nearest_name(project: Project, path: str, hint: str) -> None:
    project.write("weather.eval.yaml", SUITE)
    project.write("evals/first.eval.yaml", SUITE)
    (problem,) = discovered([Path(path)]).problems
    assert (problem.file, problem.code, problem.hint) == (path, "not-found", hint)


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a", "a.yaml.bak", "golden.json", "a.toml"])
def test_an_unknown_format(project: Project, name: str) -> None:
    project.write(name, SUITE)
    (problem,) = discovered([Path(name)]).problems
    assert (problem.file, problem.code) == (name, "unknown-format")
    for suffix in ("yaml", "yml", "jsonl", "csv", "golden.json", "regression.json"):
        assert f"*.{suffix}" in problem.hint


def test_named_companions_of_eval_files_are_skipped(project: Project) -> None:
    project.write("assay.yaml", "")
    project.write("pyproject.toml", "")
    project.write("evals/t.regression.json", "[]")
    project.write("evals/t.regression.lock.json", '{"cases": {}}')
    project.write("evals/t.regression.archive.json", "[]")
    project.write("evals/seed-manifest.json", "{}")
    project.write("evals/eval.schema.json", "{}")
    project.write("evals/a.eval.jsonl", LINE)
    project.write("evals/a.eval.yaml", "description: About the lines\n")
    project.write("evals/b.jsonl", LINE)
    project.write("evals/b.yml", "# nothing yet\n")
    named = sorted(file for file in project.root.rglob("*") if file.is_file())
    loaded = assay.validate(named)
    assert loaded.problems == ()
    assert [suite.file for suite in loaded.suites] == [
        "evals/a.eval.jsonl",
        "evals/b.jsonl",
        "evals/t.regression.json",
    ]
    assert dict(loaded.skipped_files) == {
        "assay.yaml": "configuration",
        "pyproject.toml": "configuration",
        "evals/a.eval.yaml": "sidecar of a.eval.jsonl",
        "evals/b.yml": "sidecar of b.jsonl",
        "evals/eval.schema.json": "a JSON Schema",
        "evals/seed-manifest.json": "seed manifest",
        "evals/t.regression.archive.json": "archive of t.regression.json",
        "evals/t.regression.lock.json": "lock of t.regression.json",
    }


@pytest.mark.parametrize("content", [CASE, LISTED, SUITE])
def test_a_named_suite_is_not_a_sidecar(project: Project, content: str) -> None:
    project.write("a.yaml", content)
    project.write("a.jsonl", '{"event": "x"}\n')
    assert len(assay.load("a.yaml")) == 1


def test_a_broken_sidecar_that_is_named_is_an_error(project: Project) -> None:
    project.write("a.yaml", "execution: [\n")
    project.write("a.jsonl", LINE)
    assert [p.code for p in assay.validate("a.yaml").problems] == ["yaml-syntax"]


def test_all_wrong_paths_are_reported_and_the_right_ones_load(project: Project) -> None:
    project.write("a.eval.yaml", SUITE)
    project.write("b.txt")
    loaded = assay.validate(["nothing.yaml", "b.txt", "a.eval.yaml", "nowhere"])
    assert [problem.code for problem in loaded.problems] == [
        "not-found",
        "unknown-format",
        "not-found",
    ]
    assert [suite.file for suite in loaded.suites] == ["a.eval.yaml"]


def test_a_name_that_is_not_utf_8_is_a_problem(project: Project) -> None:
    project.write("a.eval.yaml", SUITE)
    for name in (b"b\xff.eval.yaml", b"c\xff/d.eval.yaml"):
        project.write(os.fsdecode(name), SUITE)
    escaped = ["b\\xff.eval.yaml", "c\\xff/d.eval.yaml"]
    assert problems(".") == [(name, "encoding") for name in escaped]
    assert found() == ["a.eval.yaml"]


def test_the_project_may_be_in_a_folder_whose_name_is_not_utf_8(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path.cwd() / os.fsdecode(b"caf\xe9")
    home.mkdir()
    (home / "assay.yaml").write_text("{}")
    (home / "a.eval.yaml").write_text(SUITE)
    monkeypatch.chdir(home)
    for path in (".", "a.eval.yaml", str(home), str(home / "a.eval.yaml")):
        assert [suite.file for suite in assay.load(path)] == ["a.eval.yaml"]


def test_a_named_file_is_loaded_under_any_name(project: Project) -> None:
    project.write("plain.csv", CSV)
    project.write("case.yaml", CASE)
    project.write("data.jsonl", LINE)
    assert len(assay.load(["plain.csv", "case.yaml", "data.jsonl"])) == 3


def test_no_path_at_all(project: Project) -> None:
    assert discovered([]).files == []
    assert assay.load([]) == []


def test_a_loader_that_cannot_be_loaded_is_a_problem_of_its_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("odd", "no_such_module", loaders.group)
    monkeypatch.setattr(loaders, "_entries", {**loaders._entries, "odd": [entry]})
    project.write("a.odd")
    project.write("b.eval.yaml", SUITE)
    for path in ("a.odd", "."):
        assert problems(path) == [("a.odd", "plugin-failed")]
    assert found() == ["b.eval.yaml"]


def test_the_longest_suffix_chooses_the_loader() -> None:
    def loader(name: str) -> str:
        return getattr(loader_for(Path(name)), "__name__", "")

    assert loader("a.golden.json") == "assay.loaders.tiers"
    assert loader("a.eval.yml") == "assay.loaders.yaml"
    assert loader("a.jsonl") == "assay.loaders.jsonl"
    assert loader("a.json") == ""
    assert loader("golden.json") == ""
    assert loader("yaml") == ""


# The command


def test_skipped_files_are_listed_on_stderr(project: Project) -> None:
    project.write("a.eval.yaml", SUITE)
    project.write("notes.yaml", "a: 1\n")
    project.write("table.csv", CSV)
    done = preloaded_command.assay("validate", ".", cwd=project.root)
    assert done.returncode == 0
    assert "notes.yaml" not in done.stdout
    assert "skipped notes.yaml (no cases)" in done.stderr
    assert "skipped table.csv (" in done.stderr
