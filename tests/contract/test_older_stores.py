"""Stores that earlier versions made, whole, open with everything in them.

Each file in `older` was made by the code of its time, and is called after the schema it had.
"""

from __future__ import annotations

import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assay.ports import Store
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from assay.testing.stores import make_run, make_trial, saved
from assay.testing.test_cases import NOON, SECONDS, added, changed, new_case
from contract.postgres import Server

OLDER = Path(__file__).parent / "older"
_COLUMNS = """
    SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2
"""
_INDEXES = "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"


@pytest.mark.parametrize("version", [4, 5])
def test_a_sqlite_file_opens(version: int, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    old.write_bytes(gzip.decompress((OLDER / f"sqlite-{version}.db.gz").read_bytes()))
    assert any("tag_part" in statement for statement in schema(old)) == (version == 4)
    with closing(SqliteStore(old)) as store:
        has_everything(store)
    SqliteStore(new).close()
    assert schema(old) == schema(new)


def test_a_postgres_database_opens(postgres: Server) -> None:
    old, new = postgres.new_database(), postgres.new_database()
    postgres.sql((OLDER / "postgres-3.sql").read_text(encoding="utf-8"), old)
    with closing(PostgresStore(old)) as store:
        has_everything(store)
    PostgresStore(new).close()
    for query in (_COLUMNS, _INDEXES):
        assert postgres.sql(query, old) == postgres.sql(query, new)
    postgres.give_back(old)
    postgres.give_back(new)


def has_everything(store: Store) -> None:
    """What was put into every older store is there, and can be added to."""
    assert store.run("run-1").suites[0].name == "weather"
    assert list(store.trials("run-1")) == [
        make_trial(0),
        make_trial(1, outcome="failed", score=0.0),
    ]
    assert store.baseline_history("main") == [store.baseline("main")] == ["run-1"]
    assert store.get("key") == {"reply": 1}
    cases = store.test_cases
    texts = {"GEO": ["Paris?"], "STÄDTE": ["Paris?"], "o": ["Paris?", "Rome?"], "graphy": []}
    for tag, expected in texts.items():
        page = cases.page(9, tag=tag)
        assert [case.input for case in page.test_cases] == expected
        assert page.total == len(expected)
    paris, rome, *_ = cases.page(9).test_cases
    assert cases.page(9).total == 4
    versions = cases.versions(rome.id, 9).test_cases
    assert [case.tags for case in versions] == [("geography",), ("history",)]
    changed(cases, rome.id, tags=("Geo", "Städte"))
    cases.remove(paris.id, NOON).result(SECONDS)
    added(cases, new_case("Bern?", "geo"))
    assert [case.input for case in cases.page(9, tag="geo").test_cases] == ["Rome?", "Bern?"]
    store.begin(make_run("run-2"))
    saved(store, make_trial(0, run_id="run-2"))


def schema(file: Path) -> list[str]:
    """The statements of the schema without their comments, which may be reworded."""
    with closing(sqlite3.connect(file)) as connection:
        made = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        found = connection.execute(made).fetchall()
        return [re.sub(r" *--.*", "", statement) for (statement,) in found]
