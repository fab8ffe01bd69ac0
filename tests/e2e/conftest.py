"""One agent for all tests of a worker, and a project for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.projects import Agent, Gate, Project, serving


@pytest.fixture(scope="session")
def _served() -> Iterator[Agent]:
    with serving() as agent:
        yield agent


@pytest.fixture
def agent(_served: Agent) -> Agent:
    _served.reset()
    return _served


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
