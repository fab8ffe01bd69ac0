"""`sqlite:FILE`, a store in one file: write-ahead log, one writer thread, group commit.

With `synchronous = FULL` every commit waits for the disk, so that acknowledged writes survive a
killed process and a power failure. Thanks to group commit it costs hardly more than `NORMAL`,
which survives only the first.

Each reader has its own connection, sees a snapshot and never waits. SQLite's locks keep processes
from writing at the same time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, cast

from assay.errors import StoreError
from assay.model.run import TrialRecord
from assay.stores.file_lease import FileLease
from assay.stores.migrating import scripts, transaction
from assay.stores.sql import ADD_CONTENT, KEEP_FIRST, TRIAL_COLUMNS, SqlStore, content_row
from assay.stores.sql_test_cases import Connection
from assay.stores.sqlite_file import SqliteFile

#: How long to wait for a lock of another process.
LOCK_TIMEOUT_SECONDS = 30.0

_NULLABLE = ("score", "cost_usd", "judge_cost_usd", "cluster", "content")
_VALUES = ", ".join("nullif(?, x'')" if name in _NULLABLE else "?" for name in TRIAL_COLUMNS)
_INSERT_TRIAL = f"INSERT INTO trial ({', '.join(TRIAL_COLUMNS)}) VALUES ({_VALUES}){KEEP_FIRST}"
#: Stands for NULL in `_row`; `nullif` turns it into one.
_NULL = bytearray()


def open_store(url: str, root: Path = Path()) -> SqliteStore:
    """The store at `sqlite:FILE`, created if missing; FILE is relative to `root`."""
    scheme, _, path = url.partition(":")
    if scheme != "sqlite" or not path:
        raise StoreError(f"{url!r} is not the URL of a SQLite store, such as 'sqlite:runs.db'")
    return SqliteStore(root / path)


class SqliteStore(SqlStore):
    """A Store in one SQLite file."""

    def __init__(self, path: Path, lock_timeout: float = LOCK_TIMEOUT_SECONDS) -> None:
        self._file = SqliteFile(path, lock_timeout)
        super().__init__(SqliteDatabase(path, self._file))

    @property
    def schema_version(self) -> int:
        """How many migrations made the schema of the file."""
        return len(scripts("sqlite"))


class SqliteDatabase:
    """The `Database` of a file."""

    contains = "instr(folded, ?) > 0"
    among = "{} IN (SELECT value FROM json_each(?))"
    glob = "coalesce(c.normal_id, c.case_id) GLOB ?"

    def __init__(self, path: Path, file: SqliteFile) -> None:
        self._path, self._file = path, file
        self.reading, self.close = file.reading, file.close

    def rows(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        with (
            self._file.reading() as connection,
            closing(connection.execute(query, values)) as rows,
        ):
            yield from rows

    def commit(self, write: Callable[[Connection], None]) -> None:
        with self._file.translating_errors(None), transaction(self._file.writer) as connection:
            write(connection)

    def insert(self, connection: Connection, trials: Iterable[TrialRecord]) -> None:
        sqlite = cast("sqlite3.Connection", connection)
        rows, contents = [], []
        for trial in trials:
            hashed = _NULL
            if trial.content:
                place, digest, body = content_row(trial)
                hashed = bytearray(digest)
                contents.append((place, hashed, bytearray(body)))
            rows.append(_row(trial, hashed))
        sqlite.executemany(ADD_CONTENT, contents)
        sqlite.executemany(_INSERT_TRIAL, rows)

    def insert_many(
        self, connection: Connection, statement: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        cast("sqlite3.Connection", connection).executemany(statement, rows)

    def glob_pattern(self, pattern: str) -> str:
        return re.sub(r"[\[?]", r"[\g<0>]", pattern)

    def lock_test_cases(self, connection: Connection) -> None:
        """Does nothing: a transaction locks the whole file."""

    lock_contents = lock_test_cases

    def translating_errors(self) -> AbstractContextManager[None]:
        return self._file.translating_errors()

    def lease(self, run_id: str) -> FileLease:
        return FileLease(self._path.with_name(f"{self._path.name}.leases"), run_id)

    def held(self, run_id: str) -> bool:
        return self.lease(run_id).is_held()

    def lost_lease(self, run_id: str) -> bool:
        return False  # file locks are not lost


def _row(trial: TrialRecord, content: bytearray) -> tuple[str | int | float | bytearray, ...]:
    """The columns of a trial with the hash of its content, without any None, bool or bytes.

    For each of those the driver would look for an adapter, which takes longer than the rest of
    the insert.
    """
    return (
        trial.run_id,
        trial.position,
        trial.repeat,
        trial.suite,
        trial.case_id,
        trial.outcome,
        _NULL if trial.score is None else trial.score,
        trial.duration_ms,
        _NULL if trial.cost_usd is None else trial.cost_usd,
        _NULL if trial.judge_cost_usd is None else trial.judge_cost_usd,
        trial.comparability,
        +trial.critical,
        _NULL if trial.cluster is None else trial.cluster,
        trial.min_pass_rate,
        trial.skipped_assertions,
        +trial.confirms,
        +trial.final,
        bytearray(trial.result),
        bytearray(trial.observation),
        content,
    )
