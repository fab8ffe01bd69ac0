"""A project in a temporary folder: write eval files, load them, see what is refused."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner, Result

import assay
from assay import EvalCase, Problem, Suite
from assay.cli.app import app


def invoke(*arguments: str, typed: str = "") -> Result:
    """The command in this process, with separate stdout and stderr; click 8.1 needs an option."""
    options: Any = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
    return CliRunner(**options).invoke(app, arguments, input=typed)


class Project:
    """Its root is the working directory.

    A text that begins with a line break is dedented, and line 1 is the one below the break.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, content: str | bytes = "") -> Path:
        """A file of the project with exactly this content, except for the rule above."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            if content.startswith("\n"):
                content = dedent(content)[1:]
            content = content.encode()
        file.write_bytes(content)
        return file

    def suite(self, content: str | bytes, name: str = "suite.yaml") -> Suite:
        """The suite of a file that is right."""
        self.write(name, content)
        (suite,) = assay.load(name)
        return suite

    def case(self, content: str | bytes, name: str = "suite.yaml") -> EvalCase:
        """The case of a file that holds one."""
        (case,) = self.suite(content, name)
        return case

    def warned(self, content: str | bytes, name: str = "suite.yaml") -> list[str]:
        """The places of all warnings about a file that is right."""
        return [self.place(warning) for warning in self.suite(content, name).warnings]

    def problems(self, content: str | bytes, name: str = "suite.yaml") -> list[Problem]:
        """All problems of a file that does not load."""
        self.write(name, content)
        with pytest.raises(assay.EvalFileErrors) as refused:
            assay.load(name)
        return list(refused.value.problems)

    def refusals(self, content: str | bytes, name: str = "suite.yaml") -> list[str]:
        """The places of all problems of a file that does not load."""
        return [self.place(problem) for problem in self.problems(content, name)]

    def refused(self, content: str | bytes, name: str = "suite.yaml") -> tuple[str, str]:
        """The place of the only problem, and its message with the hint."""
        (problem,) = self.problems(content, name)
        return self.place(problem), f"{problem.message} ({problem.hint})"

    @staticmethod
    def place(problem: Problem) -> str:
        """`line:column slug`."""
        return f"{problem.line}:{problem.column} {problem.code}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
