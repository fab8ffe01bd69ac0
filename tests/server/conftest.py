"""A server within the process, over a store in memory or in a file."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from timeouts import WAIT_SECONDS

TestClient.__test__ = False
if os.environ.get("ASSAY_TEST_PROFILE") != "full":
    collect_ignore = ["test_openapi_in_full.py"]
ADDRESS = "http://127.0.0.1:8321"


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **step: float) -> None:
        self.time += timedelta(**step)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> Store:
    return MemoryStore()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path)


@pytest.fixture
def client(settings: Settings, store: Store, clock: Clock) -> Iterator[TestClient]:
    with TestClient(create_app(settings, store, now=clock), ADDRESS) as client:
        yield client


class Agent:
    """A target in the process: it may be held back, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached, self.open = threading.Event(), threading.Event()
        self.open.set()
        #: The reported cost of an answer, if any.
        self.price: float | None = None
        #: What it answers if the question has the word.
        self.known = {"France": "Paris"}

    def answer(self, message: str) -> str | dict[str, Any]:
        self.asked.append(message)
        self.reached.set()
        assert self.open.wait(WAIT_SECONDS)
        said = next((answer for word, answer in self.known.items() if word in message), "no idea")
        return said if self.price is None else {"response": said, "costUsd": self.price}


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    agent = Agent()
    module = ModuleType("agent_of_the_server_tests")
    module.answer = agent.answer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield agent
    agent.open.set()


CONFIG = """
targets:
  - {name: agent, provider: python, callable: "agent_of_the_server_tests:answer"}
  - {name: other, provider: echo}
defaults: {target: agent}
"""
SUITE = """
cases:
  - {id: france, input: "capital of France?", expected_output: Paris}
  - {id: spain, input: "capital of Spain?", expected_output: Madrid, description: Iberia}
"""


@pytest.fixture
def project(tmp_path: Path, agent: Agent) -> Settings:
    """A project with a target and a suite."""
    (tmp_path / "assay.yaml").write_text(CONFIG)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "capitals.eval.yaml").write_text(SUITE)
    return Settings.find(tmp_path)


@pytest.fixture
def running(project: Settings, store: Store, clock: Clock) -> Iterator[TestClient]:
    """The server of that project."""
    with TestClient(create_app(project, store, now=clock), ADDRESS) as client:
        yield client
