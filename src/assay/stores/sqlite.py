"""`sqlite:FILE`, the store in one file: write-ahead log, one writing thread, group commit.

`synchronous = FULL` makes every commit wait for the disk, so that what was acknowledged
outlives a killed process and a loss of power. Because commits are shared it costs hardly
more than `NORMAL`, which would outlive the first only.

Each reader has a connection of its own: it sees one moment of the file and waits for nobody.
Processes take turns in writing, by SQLite's own locks.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from assay.errors import NotInStore, StoreError
from assay.model.result import Outcome
from assay.model.run import RunRecord, RunStatus, SuiteHeader, TrialFacts, TrialRecord
from assay.stores.group_commit import GroupCommit, Write
from assay.stores.migrating import scripts, transaction
from assay.stores.sql_test_cases import Connection, SqlTestCases
from assay.stores.sqlite_file import SqliteFile

#: How many seconds a lock of another process is waited for.
PATIENCE = 30.0

_TRIAL = ", ".join(TrialRecord.__struct_fields__)
_FACTS = ", ".join(TrialFacts.__struct_fields__)
_JSON = ("plan", "options", "environment", "suites", "summary")
_RUN = ", ".join(RunRecord.__struct_fields__)


def _places(record: type[msgspec.Struct]) -> str:
    return ", ".join("?" * len(record.__struct_fields__))


_INSERT_RUN = f"INSERT INTO run ({_RUN}) VALUES ({_places(RunRecord)}) ON CONFLICT DO NOTHING"
_KEY = ("run_id", "position", "repeat")
_INSERT_TRIAL = (
    f"INSERT INTO trial ({_TRIAL}) VALUES ({_places(TrialRecord)})"
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{n} = excluded.{n}" for n in TrialRecord.__struct_fields__ if n not in _KEY)
    + " WHERE NOT trial.final"
)
_SET_BASELINE = (
    "INSERT INTO baseline (name, run_id) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id"
)
_PUT = (
    "INSERT INTO cache (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)

_BOOLEANS: dict[type[msgspec.Struct], tuple[int, ...]] = {
    record: tuple(
        record.__struct_fields__.index(name) for name in ("critical", "confirms", "final")
    )
    for record in (TrialRecord, TrialFacts)
}
Row = TypeVar("Row", TrialRecord, TrialFacts)
Action = Callable[[sqlite3.Connection], Any]
#: What is handed to the writer.
Work = tuple[TrialRecord, ...] | Action


def open_store(url: str, root: Path = Path()) -> SqliteStore:
    """The store of `sqlite:FILE`, made when it is not there; FILE is relative to `root`."""
    scheme, _, path = url.partition(":")
    if scheme != "sqlite" or not path:
        raise StoreError(f"{url!r} is not the URL of a SQLite store, such as 'sqlite:runs.db'")
    return SqliteStore(root / path)


class SqliteStore:
    """A Store in one SQLite file. What an Action raises refuses that action alone."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._file = SqliteFile(path, patience)
        self._writer: GroupCommit[Work] = GroupCommit(self._commit)
        self._lock = threading.Lock()
        self._unwritten: dict[str, bytes] = {}
        self.test_cases = SqlTestCases(_Tables(self._file, self._writer))

    @property
    def schema_version(self) -> int:
        """How many migrations made the schema of the file."""
        return len(scripts())

    # Runs

    def begin(self, run: RunRecord) -> None:
        def act(connection: sqlite3.Connection) -> None:
            if not connection.execute(_INSERT_RUN, _row(run)).rowcount:
                raise StoreError(f"there is a run {run.id!r} already")

        self._act(act)

    def save(self, *trials: TrialRecord) -> Future[None]:
        return self._writer.hand_in(trials)

    def finish(
        self, run_id: str, status: RunStatus, finished_at: str, summary: dict[str, Any]
    ) -> None:
        change = "UPDATE run SET status = ?, finished_at = ?, summary = ? WHERE id = ?"
        self._change(run_id, change, (status, finished_at, _json(summary), run_id))

    def describe(self, run_id: str, suites: list[SuiteHeader]) -> None:
        self._change(run_id, "UPDATE run SET suites = ? WHERE id = ?", (_json(suites), run_id))

    def run(self, run_id: str) -> RunRecord:
        with self._file.reading() as connection:
            query = f"SELECT {_RUN} FROM run WHERE id = ?"
            row = connection.execute(query, (run_id,)).fetchone()
        if row is None:
            raise NotInStore("run", run_id)
        return self._run(row)

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        older, values = ("", (limit,)) if before is None else ("WHERE id < ?", (before, limit))
        query = f"SELECT {_RUN} FROM run {older} ORDER BY id DESC LIMIT ?"
        with self._file.reading() as connection:
            rows = connection.execute(query, values).fetchall()
        return [self._run(row) for row in rows]

    def trials(
        self,
        run_id: str,
        outcomes: Collection[Outcome] | None = None,
        positions: range | None = None,
    ) -> Iterator[TrialRecord]:
        self.run(run_id)
        wanted: tuple[Any, ...] = () if outcomes is None else tuple(outcomes)
        which = "" if outcomes is None else f" AND outcome IN ({', '.join('?' * len(wanted))})"
        among, bounds = _among(positions)
        which, wanted = which + among, wanted + bounds
        return (_as(TrialRecord, row) for row in self._rows(_TRIAL, which, (run_id, *wanted)))

    def facts(self, run_id: str, positions: range | None = None) -> Iterator[TrialFacts]:
        self.run(run_id)
        which, wanted = _among(positions)
        return (_as(TrialFacts, row) for row in self._rows(_FACTS, which, (run_id, *wanted)))

    def finished(self, run_id: str) -> Iterator[tuple[int, int]]:
        self.run(run_id)
        return self._rows("position, repeat", " AND final", (run_id,))

    def delete(self, run_id: str) -> None:
        def act(connection: sqlite3.Connection) -> None:
            query = "SELECT name FROM baseline WHERE run_id = ? ORDER BY name"
            for (name,) in connection.execute(query, (run_id,)).fetchall():
                found = f"the run {run_id!r} is the baseline {name!r}"
                raise StoreError(f"{found}; remove that first")
            if not connection.execute("DELETE FROM run WHERE id = ?", (run_id,)).rowcount:
                raise NotInStore("run", run_id)

        self._act(act)

    # Baselines

    def set_baseline(self, name: str, run_id: str) -> None:
        def act(connection: sqlite3.Connection) -> None:
            if not _has_run(connection, run_id):
                raise NotInStore("run", run_id)
            connection.execute(_SET_BASELINE, (name, run_id))

        self._act(act)

    def baseline(self, name: str) -> str:
        known = self.baselines()
        if name not in known:
            raise NotInStore("baseline", name, known)
        return known[name]

    def baselines(self) -> dict[str, str]:
        with self._file.reading() as connection:
            query = "SELECT name, run_id FROM baseline ORDER BY name"
            return dict(connection.execute(query).fetchall())

    def remove_baseline(self, name: str) -> None:
        def act(connection: sqlite3.Connection) -> None:
            if not connection.execute("DELETE FROM baseline WHERE name = ?", (name,)).rowcount:
                raise NotInStore("baseline", name, known)

        known = self.baselines()
        self._act(act)

    # Cache

    def get(self, key: str) -> dict[str, Any] | None:
        value = self._unwritten.get(key)
        if value is None:
            with self._file.reading() as connection:
                query = "SELECT value FROM cache WHERE key = ?"
                row = connection.execute(query, (key,)).fetchone()
            if row is None:
                return None
            value = row[0]
        with self._file.telling():
            return msgspec.json.decode(value, type=dict[str, Any])

    def put(self, key: str, value: dict[str, Any]) -> None:
        encoded = msgspec.json.encode(value)

        def act(connection: sqlite3.Connection) -> None:
            connection.execute(_PUT, (key, encoded))

        def forget(_: Future[None]) -> None:
            with self._lock:
                if self._unwritten.get(key) is encoded:  # not when it was put again since
                    del self._unwritten[key]

        with self._lock:
            write = self._writer.hand_in(act)
            self._unwritten[key] = encoded
        write.add_done_callback(forget)

    def close(self) -> None:
        self._writer.close()
        self._file.close()

    # How it is read and written

    def _change(self, run_id: str, statement: str, values: tuple[Any, ...]) -> None:
        def act(connection: sqlite3.Connection) -> None:
            if not connection.execute(statement, values).rowcount:
                raise NotInStore("run", run_id)

        self._act(act)

    def _act(self, action: Action) -> None:
        self._writer.hand_in(action).result()

    def _commit(self, group: list[Write[Work]]) -> None:
        with self._file.telling(None), transaction(self._file.writer) as connection:
            for actions, writes in groupby(group, lambda write: callable(write.what)):
                (_do if actions else _insert)(connection, list(writes))

    def _rows(self, columns: str, condition: str, values: tuple[Any, ...]) -> Iterator[Any]:
        """Rows of a run's trials, one at a time; the primary key has them in order."""
        query = f"SELECT {columns} FROM trial WHERE run_id = ?{condition} ORDER BY position, repeat"
        with (
            self._file.reading() as connection,
            closing(connection.execute(query, values)) as rows,
        ):
            yield from rows

    def _run(self, row: tuple[Any, ...]) -> RunRecord:
        with self._file.telling():
            fields = dict(zip(RunRecord.__struct_fields__, row, strict=True))
            for name in _JSON:
                if fields[name] is not None:
                    fields[name] = msgspec.json.decode(fields[name])
            return msgspec.convert(fields, RunRecord)


class _Tables:
    """The file as its test cases see it."""

    contains = "instr(folded, ?) > 0"

    def __init__(self, file: SqliteFile, writer: GroupCommit[Work]) -> None:
        self.reading, self._writer = file.reading, writer

    def writing(self, action: Callable[[Connection], Any]) -> Future[Any]:
        return self._writer.hand_in(action)


def _among(positions: range | None) -> tuple[str, tuple[int, ...]]:
    if positions is None:
        return "", ()
    return " AND position >= ? AND position < ?", (positions.start, positions.stop)


def _as(record: type[Row], row: tuple[Any, ...]) -> Row:
    """A row as a record; SQLite has no booleans."""
    values = list(row)
    for index in _BOOLEANS[record]:
        values[index] = bool(values[index])
    return record(*values)


def _do(connection: sqlite3.Connection, writes: list[Write[Work]]) -> None:
    for write in writes:
        if callable(write.what):
            try:
                write.value = write.what(connection)
            except StoreError as refusal:
                write.refusal = refusal


def _insert(connection: sqlite3.Connection, writes: list[Write[Work]]) -> None:
    """Insert the trials of runs that are there, with one statement for all."""
    saves = [(write, write.what) for write in writes if isinstance(write.what, tuple)]
    runs = {trial.run_id for _, trials in saves for trial in trials}
    unknown = {run_id for run_id in runs if not _has_run(connection, run_id)}
    for write, trials in saves if unknown else ():
        for run_id in unknown.intersection(trial.run_id for trial in trials):
            write.refusal = NotInStore("run", run_id)
    kept = (trial for write, trials in saves if write.refusal is None for trial in trials)
    connection.executemany(_INSERT_TRIAL, map(msgspec.structs.astuple, kept))


def _has_run(connection: sqlite3.Connection, run_id: str) -> bool:
    return connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is not None


def _row(run: RunRecord) -> tuple[Any, ...]:
    fields = msgspec.structs.asdict(run)
    return tuple(_json(value) if name in _JSON else value for name, value in fields.items())


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
