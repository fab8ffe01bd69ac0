"""A server within the process, over a store in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore

TestClient.__test__ = False
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
