"""Where the project root is, and what the configuration may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import ConfigError
from assay.settings import Settings, environment


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


def test_only_the_named_variables_that_are_set_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_ONE", "1")
    monkeypatch.setenv("ASSAY_TWO", "2")
    monkeypatch.delenv("ASSAY_GONE", raising=False)
    assert environment(["ASSAY_ONE", "ASSAY_GONE"]) == {"ASSAY_ONE": "1"}
