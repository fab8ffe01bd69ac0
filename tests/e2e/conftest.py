"""One agent for all tests of a worker, and a project for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.one_suite_project import SEEN, SUITE, OneSuiteProject
from e2e.one_suite_project import outcomes as outcomes_of
from e2e.projects import Agent, Gate, Project, serving
from e2e.pytest_projects import Evals


@pytest.fixture(scope="session")
def _served() -> Iterator[Agent]:
    with serving() as agent:
        yield agent


@pytest.fixture
def agent(_served: Agent) -> Agent:
    _served.reset()
    return _served


@pytest.fixture
def evals(pytester: pytest.Pytester) -> Evals:
    return Evals(pytester)


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return Project(tmp_path / "home")


@pytest.fixture
def gate(agent: Agent) -> Iterator[Gate]:
    """Holds back what the agent answers; it is open at the latest when the test is over."""
    gate = Gate()
    agent.answer = gate
    yield gate
    gate.open()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneSuiteProject:
    """A project with a suite, one case of which passes, one fails and one is skipped."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    workplace = OneSuiteProject(tmp_path)
    workplace.write("evals/a.eval.yaml", SUITE)
    workplace.write("seen.jsonl", SEEN)
    return workplace


@pytest.fixture
def outcomes() -> Callable[[Any], dict[str, str]]:
    return outcomes_of
