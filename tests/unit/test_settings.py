"""Where the project root is, and what the configuration may say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.errors import ConfigError
from assay.model.script import shell_argv
from assay.service import eval_files
from assay.settings import Settings, environment, shown_path

if TYPE_CHECKING:
    from unit.conftest import Project

#: What stands in the place of a file and is none, with the slug that says so.
IMPOSTORS: dict[str, tuple[Callable[[Path], None], str]] = {
    "broken link": (lambda path: path.symlink_to("nowhere"), "not-found"),
    "pipe": (os.mkfifo, "not-a-file"),
    "folder": (Path.mkdir, "not-a-file"),
    "link to itself": (lambda path: path.symlink_to(path.name), "symlink-loop"),
}


def test_the_folder_of_the_config_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("allow_outside_root: true\n")
    (tmp_path / "a" / "b" / ".git").mkdir(parents=True)
    settings = Settings.find(tmp_path / "a" / "b")
    assert settings.root == tmp_path
    assert settings.config.allow_outside_root is True


def test_pyproject_counts_only_with_a_table_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.assay]\nseed_manifest = "data/seeds.json"\n')
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    settings = Settings.find(tmp_path / "a")
    assert settings.root == tmp_path
    assert settings.seed_manifest == tmp_path / "data" / "seeds.json"


def test_else_the_nearest_git_folder_is_the_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert Settings.find(tmp_path / "a" / "b").root == tmp_path


def test_else_the_starting_folder_is_the_root(tmp_path: Path) -> None:
    assert Settings.find(tmp_path).root == tmp_path


def test_an_empty_config_is_fine(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("# nothing yet\n")
    assert Settings.find(tmp_path).config.allow_outside_root is False


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("allow_outside: true\n", "assay.yaml:1:1: error[unknown-key]"),
        ("allow_outside_root: yes\n", "'allow_outside_root' is 'yes'; it must be true or false"),
        ("seed_manifest: /etc/passwd\n", "not a path under the project root"),
        ("seed_manifest: ../x.json\n", "not a path under the project root"),
        ("a: [\n", "yaml-syntax"),
        ("- a\n", "must be a mapping"),
        ("a: 1\na: 2\n", "duplicate-key"),
    ],
)
def test_a_wrong_config_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("assay.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        Settings.find(tmp_path)
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["[tool.assay\n", "[tool.assay]\nnope = 1\n"])
def test_a_wrong_pyproject_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        Settings.find(tmp_path)


def test_a_file_outside_belongs_to_the_project_it_lies_in(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other" / "evals").mkdir(parents=True)
    (tmp_path / "other" / "assay.yaml").write_text("allow_outside_root: true\n")
    mine = Settings.find(tmp_path / "mine")
    theirs = mine.for_file(tmp_path / "other" / "evals" / "x.eval.yaml")
    assert theirs.root == tmp_path / "other"
    assert mine.for_file(tmp_path / "mine" / "y.eval.yaml") is mine


@pytest.mark.parametrize("impostor", IMPOSTORS)
@pytest.mark.parametrize("name", ["assay.yaml", "pyproject.toml"])
def test_a_config_that_is_not_a_file_is_a_problem(
    project: Project, name: str, impostor: str
) -> None:
    make, slug = IMPOSTORS[impostor]
    make(project.root / name)
    with pytest.raises(ConfigError) as caught:
        Settings.find(project.root)
    (problem,) = caught.value.problems
    assert (problem.file, problem.code) == (name, slug)


SEEDED = "id: a\ninput: x\nexpect: {response_contains: ['{{seed:x}}']}\n"


@pytest.mark.parametrize("impostor", IMPOSTORS)
def test_a_seed_manifest_that_is_not_a_file_is_a_problem(project: Project, impostor: str) -> None:
    make, slug = IMPOSTORS[impostor]
    (project.root / "evals").mkdir()
    make(project.root / "evals" / "seed-manifest.json")
    (problem,) = project.problems(SEEDED)
    assert (problem.file, problem.code) == ("evals/seed-manifest.json", slug)


def test_a_broken_seed_manifest_is_reported_once_without_missing_values(project: Project) -> None:
    project.write("evals/seed-manifest.json", "{")
    block = "expect: {response_contains: ['{{seed:x}}']}"
    for name in ("a.eval.yaml", "b.eval.yaml"):
        project.write(name, "".join(f"- {{id: {n}, input: x, {block}}}\n" for n in "abc"))
    loaded = eval_files.validate(".")
    assert [(p.file, p.code) for p in loaded.problems] == [
        ("evals/seed-manifest.json", "json-syntax")
    ]
    assert loaded.suites == ()


@pytest.mark.parametrize("impostor", IMPOSTORS)
def test_a_sidecar_that_is_not_a_file_is_a_problem(project: Project, impostor: str) -> None:
    make, slug = IMPOSTORS[impostor]
    make(project.root / "a.yaml")
    line = '{"id": "a", "input": "x", "expected_output": "y"}'
    (problem,) = project.problems(line, "a.jsonl")
    assert (problem.file, problem.code) == ("a.yaml", slug)


def test_a_broken_link_is_called_one(project: Project) -> None:
    (project.root / "a.eval.yaml").symlink_to("nowhere")
    (problem,) = eval_files.validate("a.eval.yaml").problems
    assert problem.message == "the target of the symbolic link does not exist"


def test_a_project_without_config_and_seeds_is_fine(project: Project) -> None:
    assert project.warned(SEEDED) == ["3:30 unresolved-seed"]


def test_paths_are_shown_from_the_working_directory(project: Project) -> None:
    assert shown_path(Path(".")) == shown_path(project.root) == "."
    assert shown_path(project.root / "a" / "b") == "a/b"
    assert shown_path(project.root.parent) == project.root.parent.as_posix()


def test_only_the_named_variables_that_are_set_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_ONE", "1")
    monkeypatch.setenv("ASSAY_TWO", "2")
    monkeypatch.delenv("ASSAY_GONE", raising=False)
    assert environment(["ASSAY_ONE", "ASSAY_GONE"]) == {"ASSAY_ONE": "1"}


@pytest.mark.parametrize("name", ["a b", "", "a..b", "a\\n"])
def test_a_plugin_is_named_as_a_module(project: Project, name: str) -> None:
    project.write("assay.yaml", f'plugins: ["{name}"]\n')
    with pytest.raises(ConfigError, match="is not the name of a Python module"):
        Settings.find(project.root)


def test_a_slip_in_toml_has_its_place(project: Project) -> None:
    (project.root / "pyproject.toml").write_text("[tool.assay]\nseed_manifest = = 3\n")
    with pytest.raises(ConfigError) as caught:
        Settings.find(project.root)
    assert str(caught.value) == "pyproject.toml:2:17: error[toml-syntax]: Invalid value"


# Sources, the store, and the environment


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("store: runs.db\n", "1:8: error[wrong-value]: 'store' is not the URL of a store"),
        ("store: ''\n", "must not be empty"),
        ("tools: 3\n", "1:8: error[wrong-type]: 'tools' is 3, neither text nor a mapping"),
        ("tools: {}\n", "needs 'file', 'callable' or 'command'"),
        ("tools: python:tools\n", "'package.module:function'"),
        ("tools: 'command: '\n", "the script is empty"),
        ("tools: {command: []}\n", "must have at least 1 item"),
        ("tools: {command: [a], file: b}\n", "1:18: error[conflicting-keys]"),
        ("tools: {file: b, env: [A]}\n", "'file' and 'env' exclude each other"),
        ("tools: {command: a, timeout: 3}\n", "did you mean 'timeout_seconds'?"),
        ("snapshot: state.json\n", "'state.json' is neither a function nor a program"),
        ("snapshot: {callable: 'a:b', timeout_seconds: 0}\n", "must be > 0"),
    ],
)
def test_a_wrong_source_or_store_says_where(project: Project, text: str, part: str) -> None:
    project.write("assay.yaml", text)
    with pytest.raises(ConfigError) as caught:
        Settings.find(project.root)
    assert part in str(caught.value)


def test_a_text_is_short_for_a_source(project: Project) -> None:
    for text, key, value in (
        ("tools: a/b.json", "file", "a/b.json"),
        ("tools: python:a.b:c.d", "callable", "a.b:c.d"),
        ("tools: command:./list --all | sort", "command", shell_argv("./list --all | sort")),
        ("tools: {command: [./list, --all]}", "command", ["./list", "--all"]),
        ("tools: python", "file", "python"),
    ):
        project.write("assay.yaml", text + "\n")
        assert getattr(Settings.find(project.root).config.tools, key) == value


def test_the_store_has_a_default(project: Project) -> None:
    assert Settings.find(project.root).config.store == "sqlite:.assay/assay.db"


@pytest.mark.parametrize("file", ["assay.yaml", None])
def test_the_environment_wins_over_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    if file:
        project.write(file, "store: 'memory:'\nseed_manifest: a.json\ntools: {file: b.json}\n")
    monkeypatch.setenv("ASSAY_STORE", "postgresql://host/db")
    monkeypatch.setenv("ASSAY_JUDGE", "echo:")
    monkeypatch.setenv("ASSAY_ALLOW_OUTSIDE_ROOT", "True")
    monkeypatch.setenv("ASSAY_TOOLS", "python:a:b")
    monkeypatch.setenv("ASSAY_SEED_MANIFEST", "")
    monkeypatch.setenv("ASSAY_TARGETS", "not read")
    config = Settings.find(project.root).config
    assert (config.store, config.judge, config.targets) == ("postgresql://host/db", "echo:", [])
    assert config.allow_outside_root is True
    assert config.tools is not None
    assert (config.tools.file, config.tools.callable) == (None, "a:b")
    assert config.seed_manifest == ("a.json" if file else "evals/seed-manifest.json")


@pytest.mark.parametrize("text", ["0", "false", "FALSE"])
def test_a_flag_of_the_environment_may_be_off(
    project: Project, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    project.write("assay.yaml", "allow_outside_root: true\n")
    monkeypatch.setenv("ASSAY_ALLOW_OUTSIDE_ROOT", text)
    assert Settings.find(project.root).config.allow_outside_root is False


def test_every_wrong_variable_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STORE", "here")
    monkeypatch.setenv("ASSAY_ALLOW_OUTSIDE_ROOT", "maybe")
    monkeypatch.setenv("ASSAY_SNAPSHOT", "x.json")
    monkeypatch.setenv("ASSAY_SEED_MANIFEST", "/etc/passwd")
    with pytest.raises(ConfigError) as caught:
        Settings.find(project.root)
    assert {p.file for p in caught.value.problems} == {
        f"environment variable ASSAY_{name}"
        for name in ("STORE", "ALLOW_OUTSIDE_ROOT", "SNAPSHOT", "SEED_MANIFEST")
    }
    assert "'allow_outside_root' is 'maybe'; it must be true or false" in str(caught.value)


def test_a_password_in_a_wrong_store_is_not_printed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_STORE", "//me:pa55word@host")
    with pytest.raises(ConfigError) as caught:
        Settings.find(project.root)
    assert "pa55word" not in str(caught.value)


def test_sources_are_recorded_unchanged(project: Project) -> None:
    project.write("assay.yaml", "tools: a.json\nsnapshot: python:a:b\n")
    recorded = Settings.find(project.root).recorded()
    assert recorded == {"tools": {"file": "a.json"}, "snapshot": {"callable": "a:b"}}


def test_a_judge_in_place_is_recorded_without_its_key(project: Project) -> None:
    """Warnings are errors: that of a serializer would be printed in every run."""
    judge = "judge: {provider: openai, model: small, api_key: hidden}\n"
    project.write("assay.yaml", judge)
    recorded = Settings.find(project.root).recorded()
    assert recorded == {"judge": {"provider": "openai", "model": "small"}}


def test_a_number_may_be_set_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings.find(tmp_path).config.store_retry_seconds == 30
    monkeypatch.setenv("ASSAY_STORE_RETRY_SECONDS", "2.5")
    assert Settings.find(tmp_path).config.store_retry_seconds == 2.5
    for wrong in ("soon", "-1", "inf"):
        monkeypatch.setenv("ASSAY_STORE_RETRY_SECONDS", wrong)
        with pytest.raises(ConfigError, match="environment variable ASSAY_STORE_RETRY_SECONDS"):
            Settings.find(tmp_path)


@pytest.mark.parametrize(
    ("written", "key", "meant"),
    [
        ("targets: [{name: a, provder: python}]", "provder", "provider"),
        ("targets: [{nme: a, provider: python}]", "nme", "name"),
        ("judge: {Providr: openai}", "Providr", "provider"),
    ],
)
def test_a_misspelt_key_of_a_target_is_named(
    tmp_path: Path, written: str, key: str, meant: str
) -> None:
    (tmp_path / "assay.yaml").write_text(written)
    with pytest.raises(ConfigError) as caught:
        _ = Settings.find(tmp_path).config
    (problem,) = caught.value.problems
    assert problem.code == "unknown-key"
    assert f"the key {key!r} is not known here" in problem.message
    assert problem.hint == f"did you mean {meant!r}?"


def test_a_list_that_needs_one_item_says_so_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("tools: {command: []}\n")
    with pytest.raises(ConfigError) as caught:
        _ = Settings.find(tmp_path).config
    assert caught.value.problems[0].message.endswith("it must have at least 1 item")
