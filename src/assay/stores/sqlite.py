"""`sqlite:FILE`, the store in one file: write-ahead log, one writing thread, group commit.

`synchronous = FULL` makes every commit wait for the disk, so that what was acknowledged
outlives a killed process and a loss of power. Because commits are shared it costs hardly
more than `NORMAL`, which would outlive the first only.

Each reader has a connection of its own: it sees one moment of the file and waits for nobody.
Processes take turns in writing, by SQLite's own locks.
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
from assay.stores.tag_parts import having

#: How many seconds a lock of another process is waited for.
PATIENCE = 30.0

_FIELDS = TrialRecord.__struct_fields__
_EMPTY = ("score", "cost_usd", "judge_cost_usd", "cluster")
_VALUES = ", ".join("nullif(?, x'')" if name in _EMPTY else "?" for name in _FIELDS)
_INSERT_TRIAL = f"INSERT INTO trial ({', '.join(_FIELDS)}) VALUES ({_VALUES}){KEEP_FIRST}"
#: Stands for None where a trial is inserted.
_NOTHING = bytearray()


def open_store(url: str, root: Path = Path()) -> SqliteStore:
    """The store of `sqlite:FILE`, made when it is not there; FILE is relative to `root`."""
    scheme, _, path = url.partition(":")
    if scheme != "sqlite" or not path:
        raise StoreError(f"{url!r} is not the URL of a SQLite store, such as 'sqlite:runs.db'")
    return SqliteStore(root / path)


class SqliteStore(SqlStore):
    """A Store in one SQLite file."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._file = SqliteFile(path, patience)
        super().__init__(SqliteDatabase(path, self._file))

    @property
    def schema_version(self) -> int:
        """How many migrations made the schema of the file."""
        return len(scripts("sqlite"))


class SqliteDatabase:
    """The file as the Store in tables sees it."""

    contains = "instr(folded, ?) > 0"
    having = staticmethod(having)

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
        with self._file.telling(None), transaction(self._file.writer) as connection:
            write(connection)

    def insert(self, connection: Connection, trials: Iterable[TrialRecord]) -> None:
        cast("sqlite3.Connection", connection).executemany(_INSERT_TRIAL, map(_row, trials))

    def take_turns(self, connection: Connection) -> None:
        """The transaction has the only lock there is."""

    def telling(self) -> AbstractContextManager[None]:
        return self._file.telling()

    def lease(self, run_id: str) -> FileLease:
        return FileLease(self._path.with_name(f"{self._path.name}.leases"), run_id)

    def held(self, run_id: str) -> bool:
        return self.lease(run_id).is_held()

    def has_lost(self, run_id: str) -> bool:
        return False  # the lock of a file stays until it is given back


def _row(trial: TrialRecord) -> tuple[str | int | float | bytearray, ...]:
    """The fields of a trial in their order, none of them a None, a bool or bytes.

    For each of those the driver would look whether somebody adapts it, which takes longer than
    all the rest of the insertion.
    """
    return (
        trial.run_id,
        trial.position,
        trial.repeat,
        trial.suite,
        trial.case_id,
        trial.outcome,
        _NOTHING if trial.score is None else trial.score,
        trial.duration_ms,
        _NOTHING if trial.cost_usd is None else trial.cost_usd,
        _NOTHING if trial.judge_cost_usd is None else trial.judge_cost_usd,
        trial.comparability,
        +trial.critical,
        _NOTHING if trial.cluster is None else trial.cluster,
        trial.min_pass_rate,
        trial.skipped_assertions,
        +trial.confirms,
        +trial.final,
        bytearray(trial.result),
        bytearray(trial.observation),
    )
