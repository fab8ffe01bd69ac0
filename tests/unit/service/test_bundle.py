"""The project bundle: what travels to workers, and what does not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from assay.errors import ExecutorError, UsageError
from assay.service import bundle
from assay.settings import Settings
from unit.conftest import Project


def files_of(packed: bytes) -> dict[str, str]:
    with bundle.unpacked(packed, bundle.hash_of(packed)) as folder:
        found = (path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def settings() -> Settings:
    return Settings.find(Path.cwd())


def test_the_files_that_git_knows_travel(project: Project) -> None:
    project.write("assay.yaml")
    for name in ("evals/a.eval.yaml", "run.sh", ".env", ".ci/build.py", "answers.jsonl"):
        project.write(name, name)
    Path("run.sh").chmod(0o755)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "assay.yaml", "evals", "run.sh", ".env", ".ci"], check=True)
    packed = bundle.packed(settings())
    assert files_of(packed).keys() == {"assay.yaml", "evals/a.eval.yaml", "run.sh"}
    with bundle.unpacked(packed, bundle.hash_of(packed)) as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert os.access(Path(folder, "run.sh"), os.X_OK)
    assert bundle.packed(settings()) == packed


def test_the_configuration_may_list_files_and_folders(project: Project) -> None:
    project.write("assay.yaml", '{"bundle": ["evals", "*.jsonl"]}')
    for name in ("evals/deep/a.eval.yaml", "evals/.secret", "answers.jsonl", "agent.py"):
        project.write(name, name)
    assert files_of(bundle.packed(settings())).keys() == {"evals/deep/a.eval.yaml", "answers.jsonl"}


def test_a_link_that_leads_outside_does_not_travel(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "outside.txt"
    outside.write_text("secret")
    project.write("assay.yaml", '{"bundle": ["*"]}')
    project.write("evals/inside.txt", "here")
    Path("out").symlink_to(outside)
    Path("in").symlink_to("evals/inside.txt")
    assert files_of(bundle.packed(settings())).keys() == {"assay.yaml", "evals/inside.txt", "in"}


def test_a_project_that_is_too_large_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MAX_BYTES", 1 << 20)
    project.write("assay.yaml", '{"bundle": ["*"]}')
    project.write("big.jsonl", "x" * (1 << 20))
    with pytest.raises(UsageError, match="more than 1 MB: list what workers need under 'bundle'"):
        bundle.packed(settings())


def test_a_pattern_that_matches_nothing_is_named(project: Project) -> None:
    project.write("assay.yaml", '{"bundle": ["evlas"]}')
    with pytest.raises(UsageError, match="lists 'evlas', and no file matches"):
        bundle.packed(settings())


def test_without_git_the_files_must_be_listed(project: Project) -> None:
    project.write("assay.yaml")
    with pytest.raises(UsageError, match=r"git does not know .*'bundle' in assay\.yaml"):
        bundle.packed(settings())


def test_a_damaged_bundle_is_refused(project: Project) -> None:
    project.write("assay.yaml", '{"bundle": ["*"]}')
    packed = bundle.packed(settings())
    with pytest.raises(ExecutorError, match="damaged"):
        bundle.unpacked(packed + b"x", bundle.hash_of(packed))


@pytest.mark.parametrize("path", ["/etc/cron.d/x", "../x", "evals/.hidden", ""])
def test_a_bundle_writes_only_below_its_folder(path: str) -> None:
    assert not bundle._may_travel(path)
