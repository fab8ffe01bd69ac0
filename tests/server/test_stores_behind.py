"""The contract of `/api/test-cases` over every store that lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from assay.ports import Store
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from contract.postgres import Server
from server import test_contract, test_test_cases


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "store.db")
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_database()
    yield PostgresStore(url)
    server.give_back(url)


def found_in(module: ModuleType) -> dict[str, object]:
    """What pytest finds in a module, to be found here again with other stores."""
    return {n: v for n, v in vars(module).items() if n.startswith(("test_", "_client"))}


globals().update(found_in(test_contract) | found_in(test_test_cases))
