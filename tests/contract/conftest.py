"""One PostgreSQL for all tests of a worker that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.postgres import Server, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server
