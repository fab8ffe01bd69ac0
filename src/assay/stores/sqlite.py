"""`sqlite:FILE`, a store in one file: write-ahead log, one writer thread, group commit.

With `synchronous = FULL` every commit waits for the disk, so that acknowledged writes survive a
killed process and a power failure. Thanks to group commit it costs hardly more than `NORMAL`,
which survives only the first.

Each reader has its own connection, sees a snapshot and never waits. SQLite's locks keep processes
from writing at the same time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, cast

from assay.errors import StoreError
from assay.model.run import TrialRecord
from assay.stores.file_lease import FileLease
from assay.stores.migrating import scripts, transaction
from assay.stores.sql import KEEP_FIRST, SqlStore
from assay.stores.sql_test_cases import Connection
from assay.stores.sqlite_file import SqliteFile

#: How long to wait for a lock of another process.
LOCK_TIMEOUT_SECONDS = 30.0

_FIELDS = TrialRecord.__struct_fields__
_NULLABLE = ("score", "cost_usd", "judge_cost_usd", "cluster")
_VALUES = ", ".join("nullif(?, x'')" if name in _NULLABLE else "?" for name in _FIELDS)
_INSERT_TRIAL = f"INSERT INTO trial ({', '.join(_FIELDS)}) VALUES ({_VALUES}){KEEP_FIRST}"
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
        cast("sqlite3.Connection", connection).executemany(_INSERT_TRIAL, map(_row, trials))

    def lock_test_cases(self, connection: Connection) -> None:
        """Does nothing: a transaction locks the whole file."""

    def translating_errors(self) -> AbstractContextManager[None]:
        return self._file.translating_errors()

    def lease(self, run_id: str) -> FileLease:
        return FileLease(self._path.with_name(f"{self._path.name}.leases"), run_id)

    def held(self, run_id: str) -> bool:
        return self.lease(run_id).is_held()

    def lost_lease(self, run_id: str) -> bool:
        return False  # file locks are not lost


def _row(trial: TrialRecord) -> tuple[str | int | float | bytearray, ...]:
    """The fields of a trial in order, without any None, bool or bytes.

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
    )
