"""The contract of `/api/test-cases` over every store that lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from contract.postgres import Server
from server import test_contract, test_test_cases
from server.conftest import ADDRESS


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "store.db")
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_store()
    with closing(PostgresStore(url)) as store:
        yield store
    server.give_back_store(url)


def found_in(module: ModuleType) -> dict[str, object]:
    """What pytest finds in a module, to be found here again with other stores."""
    return {n: v for n, v in vars(module).items() if n.startswith(("test_", "_client"))}


globals().update(found_in(test_contract) | found_in(test_test_cases))


def test_health_follows_a_real_database(postgres: Server, tmp_path: Path) -> None:
    settings, url = Settings(tmp_path), postgres.new_database()
    with (
        closing(PostgresStore(url)) as store,
        TestClient(create_app(settings, store), ADDRESS) as client,
    ):
        assert client.get("/api/health").status_code == 200
        postgres.stop()
        try:
            assert client.get("/api/health").status_code == 503
        finally:
            postgres.start()
        assert client.get("/api/health").status_code == 200
    postgres.give_back(url)
