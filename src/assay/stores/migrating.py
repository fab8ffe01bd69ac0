"""Migrates a SQLite file to the current schema, by numbered scripts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from assay.errors import StoreError

#: Marks a file as ours, in the header field that SQLite has for this.
APPLICATION_ID = int.from_bytes(b"Assy", "big")

_FOLDER = Path(__file__).parent / "migrations"


def scripts(kind: str) -> list[str]:
    """The migration scripts for `sqlite` or `postgres`, in order; the first creates the schema."""
    return [file.read_text(encoding="utf-8") for file in sorted((_FOLDER / kind).glob("*.sql"))]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction. It locks at once: upgrading a read lock later can deadlock."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have rolled back already
            connection.execute("ROLLBACK")
        raise


def migrate(connection: sqlite3.Connection, name: str, migrations: Sequence[str]) -> None:
    """Run the migrations that the file lacks, all in one transaction."""
    if _version(connection, name, len(migrations)) == len(migrations):
        return
    with transaction(connection):
        # Check again: another process may have migrated while this one waited for the lock.
        for script in migrations[_version(connection, name, len(migrations)) :]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _version(connection: sqlite3.Connection, name: str, known: int) -> int:
    """How many migrations the file has had; raises StoreError if it is not ours, or too new."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if tables and owner != APPLICATION_ID:
        raise StoreError(f"{name}: this is a database of another program; name another file")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > known:
        found = f"the store has schema {version}, and this version of Assay supports up to {known}"
        raise StoreError(f"{name}: {found}; update Assay")
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """The single statements of a script: `executescript` would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
