"""The page of the store has the tables of the schema, in the schema's own words."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pages import Page, code_words

from assay.registry import stores
from assay.stores.migrating import migrate, scripts
from assay.stores.sqlite import LOCK_TIMEOUT_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = Page.read(ROOT / "docs/store.md", ROOT)

#: Table -> column -> (type, comment), and table -> comment.
COLUMNS: dict[str, dict[str, tuple[str, str]]] = {}
TABLES: dict[str, str] = {}
for line in "\n".join(scripts("sqlite")).splitlines():
    if table := re.fullmatch(r"CREATE TABLE (\w+) \(  -- (.*)", line):
        COLUMNS[table[1]], TABLES[table[1]] = {}, table[2]
        latest = table[1]
    elif added := re.fullmatch(r"ALTER TABLE (\w+) ADD COLUMN (\w+) (\w+);  -- (.*)", line):
        COLUMNS[added[1]][added[2]] = (added[3], added[4])
    elif column := re.fullmatch(r" +(\w+) *(TEXT|INTEGER|REAL|BLOB)\b.*? -- (.*)", line):
        COLUMNS[latest][column[1]] = (column[2], column[3])


def test_every_table_and_column_of_the_schema_has_a_comment() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, "store.db", scripts("sqlite"))
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        made = connection.execute(query).fetchall()
        assert sorted(name for (name,) in made) == sorted(TABLES)
        for name, columns in COLUMNS.items():
            info = connection.execute(f"PRAGMA table_info({name})").fetchall()
            assert [row[1] for row in info] == list(columns)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_page_has_the_table(name: str) -> None:
    told = {code_words(r["Column"])[0]: (r["Type"], r["Meaning"]) for r in PAGE.table(name)}
    assert told == COLUMNS[name]
    comment = TABLES[name]
    assert f"### {name}\n\n{comment[0].upper()}{comment[1:]}." in PAGE.text


@pytest.mark.parametrize("name", ["permit", "spending"])
def test_the_page_has_the_tables_that_only_postgresql_has(name: str) -> None:
    (script,) = (text for text in scripts("postgres") if f"CREATE TABLE {name}" in text)
    found = re.findall(r" +(\w+) (TEXT|DOUBLE PRECISION).*? -- (.*)", script)
    told = [(code_words(r["Column"])[0], r["Type"], r["Meaning"]) for r in PAGE.table(name)]
    assert told == found


def test_every_scheme_is_listed() -> None:
    listed = {
        word.partition(":")[0]
        for r in PAGE.table("URLs")
        for w in r.values()
        for word in code_words(w)
    }
    own = {one.name for one in stores.listed() if one.source == "assay-evals"}
    assert own == listed


def test_the_page_tells_how_long_a_lock_is_waited_for() -> None:
    assert f"up to {LOCK_TIMEOUT_SECONDS:.0f} seconds" in " ".join(PAGE.text.split())
