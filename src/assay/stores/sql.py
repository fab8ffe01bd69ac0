"""A Store in tables, in the SQL that SQLite and PostgreSQL share, with `?` as placeholder.

A Database provides connections, bulk inserts of trials, and the meaning of errors. One thread
does all writing, in groups that are committed together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from hashlib import blake2b
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from assay.errors import CommitInDoubt, NotInStore, StoreError, kept_by_baseline
from assay.model.result import Outcome
from assay.model.run import (
    PLACE_MASK,
    RunRecord,
    RunStatus,
    SuiteHeader,
    TrialFacts,
    TrialRecord,
    place_of,
)
from assay.model.test_case import storable
from assay.stores.database import Database
from assay.stores.group_commit import GroupCommit, Write
from assay.stores.sql_cases import FORGET, SqlCaseIndex
from assay.stores.sql_labels import SqlLabels
from assay.stores.sql_login import SqlLoginSessions
from assay.stores.sql_test_cases import Connection, SqlTestCases

#: The columns of a trial; the last one is the hash of its content.
TRIAL_COLUMNS = TrialRecord.__struct_fields__
_TRIAL = ", ".join((*TRIAL_COLUMNS[:-1], "body"))
_TRIALS = f"trial LEFT JOIN content ON place = position & {PLACE_MASK} AND hash = content"
ADD_CONTENT = "INSERT INTO content (place, hash, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
#: Deletes the contents of a run that no other run has.
_DELETE_CONTENTS = f"""
    DELETE FROM content WHERE (place, hash) IN (
        SELECT position & {PLACE_MASK}, content FROM trial WHERE run_id = ?
    ) AND NOT EXISTS (
        SELECT 1 FROM trial
        WHERE position & {PLACE_MASK} = place AND content = hash AND run_id <> ?
    )
"""
_FACTS = ", ".join(TrialFacts.__struct_fields__)
_JSON = ("plan", "options", "environment", "suites", "summary")
_RUN = ", ".join(RunRecord.__struct_fields__[:-1]) + ", group_id"
_INSERT_RUN = (
    f"INSERT INTO run ({_RUN}) VALUES ({', '.join('?' * len(RunRecord.__struct_fields__))})"
    " ON CONFLICT DO NOTHING RETURNING id"
)
_KEY = ("run_id", "position", "repeat")
#: Ends an INSERT of trials: the first final trial of a key is kept.
KEEP_FIRST = (
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{n} = excluded.{n}" for n in TRIAL_COLUMNS if n not in _KEY)
    + " WHERE NOT trial.final"
)
_SET_BASELINE = (
    "INSERT INTO baseline (name, run_id) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id"
)
#: Both return a row if the name did point to the expected run, or did not exist.
_MOVE_BASELINE = "UPDATE baseline SET run_id = ? WHERE name = ? AND run_id = ? RETURNING name"
_CREATE_BASELINE = (
    "INSERT INTO baseline (run_id, name) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING name"
)
_LAST_ENTRY = (
    "SELECT number, run_id FROM baseline_history WHERE name = ? ORDER BY number DESC LIMIT 1"
)
_ADD_ENTRY = "INSERT INTO baseline_history (name, number, run_id) VALUES (?, ?, ?)"
#: The baselines that need a run, and whether it is their current one; else it is their first.
_KEPT = (
    "SELECT name, 1 FROM baseline WHERE run_id = ?"
    " UNION ALL SELECT name, 0 FROM baseline_history AS entry WHERE run_id = ? AND number ="
    " (SELECT min(number) FROM baseline_history AS other WHERE other.name = entry.name)"
    " ORDER BY 2 DESC, 1"
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
Action = Callable[[Connection], Any]
#: What the writer takes: trials to insert, or a function to call in the transaction.
Work = tuple[TrialRecord, ...] | Action
#: How often a group is committed whose commit was in doubt.
_ATTEMPTS = 5


class Idempotent:
    """An Action that may be performed twice: the second time changes nothing."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def __call__(self, connection: Connection, /) -> Any:
        return self._action(connection)


class SqlStore:
    """A Store in a database. If an Action raises a StoreError, only that action fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer: GroupCommit[Work] = GroupCommit(self._commit)
        self._lock = threading.Lock()
        #: Cached replies that are not committed yet.
        self._unwritten: dict[str, bytes] = {}
        self.test_cases = SqlTestCases(
            database.reading, self._submit_for_test_cases, database.contains
        )
        self.case_index = SqlCaseIndex(database, self._repeatedly)
        self.labels = SqlLabels(database.reading, self._repeatedly)
        self.login_sessions = SqlLoginSessions(database.reading, self._repeatedly)

    # Runs

    def begin(self, *runs: RunRecord) -> None:
        def act(connection: Connection) -> None:
            taken = [run.id for run in runs if _has_run(connection, run.id)]
            for run in () if taken else runs:
                taken += [] if connection.execute(_INSERT_RUN, _row(run)).fetchall() else [run.id]
            if taken:
                raise StoreError(f"a run {taken[0]!r} already exists")

        self._act(act)

    def save(self, *trials: TrialRecord) -> Future[None]:
        return self._writer.submit(trials)

    def finish(
        self, run_id: str, status: RunStatus, finished_at: str, summary: dict[str, Any]
    ) -> None:
        change = "UPDATE run SET status = ?, finished_at = ?, summary = ? WHERE id = ?"
        self._change(run_id, change, (status, finished_at, _json(summary), run_id))

    def reopen(self, run_id: str) -> None:
        change = "UPDATE run SET status = ?, finished_at = NULL, summary = NULL WHERE id = ?"
        self._change(run_id, change, ("running", run_id), FORGET)

    def describe(self, run_id: str, suites: list[SuiteHeader], environment: dict[str, Any]) -> None:
        change = "UPDATE run SET suites = ?, environment = ? WHERE id = ?"
        self._change(run_id, change, (_json(suites), _json(environment), run_id))

    def run(self, run_id: str) -> RunRecord:
        with self._database.reading() as connection:
            query = f"SELECT {_RUN} FROM run WHERE id = ?"
            row = connection.execute(query, (run_id,)).fetchone()
        if row is None:
            raise NotInStore("run", run_id)
        return self._run(row)

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        where, values = ("", (limit,)) if before is None else ("WHERE id < ?", (before, limit))
        query = f"SELECT {_RUN} FROM run {where} ORDER BY id DESC LIMIT ?"
        with self._database.reading() as connection:
            rows = connection.execute(query, values).fetchall()
        return [self._run(row) for row in rows]

    def group(self, group_id: str) -> list[RunRecord]:
        query = f"SELECT {_RUN} FROM run WHERE group_id = ? ORDER BY id"
        with self._database.reading() as connection:
            rows = connection.execute(query, (group_id,)).fetchall() if storable(group_id) else []
        if not rows:
            raise NotInStore("group", group_id)
        return [self._run(row) for row in rows]

    def trials(
        self,
        run_id: str,
        outcomes: Collection[Outcome] | None = None,
        positions: range | None = None,
    ) -> Iterator[TrialRecord]:
        self.run(run_id)
        if outcomes is not None and not outcomes:
            return iter(())
        condition, values = _in_positions(positions)
        if outcomes is not None:
            condition += f" AND outcome IN ({', '.join('?' * len(outcomes))})"
            values += tuple(outcomes)
        rows = self._rows(_TRIAL, condition, (run_id, *values), _TRIALS)
        return (_as(TrialRecord, (*row[:-1], row[-1] or b"")) for row in rows)

    def facts(self, run_id: str, positions: range | None = None) -> Iterator[TrialFacts]:
        self.run(run_id)
        condition, values = _in_positions(positions)
        return (_as(TrialFacts, row) for row in self._rows(_FACTS, condition, (run_id, *values)))

    def finished(self, run_id: str) -> Iterator[tuple[int, int]]:
        self.run(run_id)
        return self._rows("position, repeat", " AND final", (run_id,))

    def delete(self, run_id: str) -> None:
        def act(connection: Connection) -> None:
            self._database.lock_contents(connection)
            for name, current in connection.execute(_KEPT, (run_id, run_id)).fetchall():
                raise kept_by_baseline(run_id, name, current=bool(current))
            connection.execute(_DELETE_CONTENTS, (run_id, run_id))
            deleted = connection.execute("DELETE FROM run WHERE id = ? RETURNING id", (run_id,))
            if not deleted.fetchall():
                raise NotInStore("run", run_id)

        self._act(act)

    def lease(self, run_id: str) -> AbstractContextManager[None]:
        return self._database.lease(run_id)

    def held(self, run_id: str) -> bool:
        return self._database.held(run_id)

    # Baselines

    def set_baseline(self, name: str, run_id: str, *, reset_history: bool = False) -> None:
        def act(connection: Connection) -> None:
            if not _has_run(connection, run_id):
                raise NotInStore("run", run_id)
            connection.execute(_SET_BASELINE, (name, run_id))
            if reset_history:
                connection.execute("DELETE FROM baseline_history WHERE name = ?", (name,))
            _add_to_history(connection, name, run_id)

        self._repeatedly(act)

    def move_baseline(self, name: str, run_id: str, before: str | None) -> bool:
        def act(connection: Connection) -> bool:
            if not _has_run(connection, run_id):
                raise NotInStore("run", run_id)
            if before is None:
                found = connection.execute(_CREATE_BASELINE, (run_id, name)).fetchone()
            else:
                found = connection.execute(_MOVE_BASELINE, (run_id, name, before)).fetchone()
            if found:
                _add_to_history(connection, name, run_id)
            query = "SELECT 1 FROM baseline WHERE name = ? AND run_id = ?"
            return connection.execute(query, (name, run_id)).fetchone() is not None

        return bool(self._repeatedly(act))

    def baseline_history(self, name: str) -> list[str]:
        self.baseline(name)
        query = "SELECT run_id FROM baseline_history WHERE name = ? ORDER BY number"
        with self._database.reading() as connection:
            return [run_id for (run_id,) in connection.execute(query, (name,)).fetchall()]

    def baseline(self, name: str) -> str:
        known = self.baselines()
        if name not in known:
            raise NotInStore("baseline", name, known)
        return known[name]

    def baselines(self) -> dict[str, str]:
        with self._database.reading() as connection:
            query = "SELECT name, run_id FROM baseline ORDER BY name"
            return dict(connection.execute(query, ()).fetchall())

    def remove_baseline(self, name: str) -> None:
        def act(connection: Connection) -> None:
            delete = "DELETE FROM baseline WHERE name = ? RETURNING name"
            if not connection.execute(delete, (name,)).fetchall():
                raise NotInStore("baseline", name, known)

        known = self.baselines()
        if not storable(name):  # the database would raise an error of its own
            raise NotInStore("baseline", name, known)
        self._act(act)

    # Cache

    def get(self, key: str) -> dict[str, Any] | None:
        value = self._unwritten.get(key)
        if value is None:
            with self._database.reading() as connection:
                query = "SELECT value FROM cache WHERE key = ?"
                row = connection.execute(query, (key,)).fetchone()
            if row is None:
                return None
            value = row[0]
        with self._database.translating_errors():
            return msgspec.json.decode(value, type=dict[str, Any])

    def put(self, key: str, value: dict[str, Any]) -> None:
        self._put(key, value)

    def keep(self, key: str, value: dict[str, Any]) -> None:
        self._put(key, value).result()

    def _put(self, key: str, value: dict[str, Any]) -> Future[None]:
        encoded = msgspec.json.encode(value)

        def act(connection: Connection) -> None:
            connection.execute(_PUT, (key, encoded))

        def forget(_: Future[None]) -> None:
            with self._lock:
                if self._unwritten.get(key) is encoded:  # unless it was put again since
                    del self._unwritten[key]

        with self._lock:
            write = self._writer.submit(Idempotent(act))
            self._unwritten[key] = encoded
        write.add_done_callback(forget)
        return write

    def close(self) -> None:
        self._writer.close()
        self._database.close()

    # Reading and writing

    def _change(
        self,
        run_id: str,
        statement: str,
        values: tuple[Any, ...],
        others: Sequence[str] = (),
    ) -> None:
        """Change a run; `others` are statements with its id as the only value."""

        def act(connection: Connection) -> None:
            if self._database.lost_lease(run_id):
                raise _lease_lost(run_id)
            if not connection.execute(statement + " RETURNING id", values).fetchall():
                raise NotInStore("run", run_id)
            for other in others:
                connection.execute(other, (run_id,))

        self._repeatedly(act)

    def _act(self, action: Action) -> Any:
        return self._writer.submit(action).result()

    def _repeatedly(self, action: Action) -> Any:
        """Perform an action that may be performed twice."""
        return self._act(Idempotent(action))

    def _submit_for_test_cases(self, action: Action) -> Future[Any]:
        def act(connection: Connection) -> Any:
            self._database.lock_test_cases(connection)
            return action(connection)

        return self._writer.submit(act)

    def _commit(self, group: list[Write[Work]]) -> None:
        """Commit a group. After a commit in doubt, only actions that are not Idempotent fail."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._database.commit(partial(self._perform_all, group))
                return
            except CommitInDoubt as error:
                if attempt == _ATTEMPTS:
                    raise
                for write in group:
                    if not isinstance(write.item, tuple | Idempotent):
                        write.error = error
                group = [write for write in group if write.error is not error]

    def _perform_all(self, group: list[Write[Work]], connection: Connection) -> None:
        for are_actions, writes in groupby(group, lambda write: callable(write.item)):
            (_perform if are_actions else self._insert)(connection, list(writes))

    def _insert(self, connection: Connection, writes: list[Write[Work]]) -> None:
        """Insert all trials in bulk, except those whose run does not exist or lost its lease."""
        saves = [(write, write.item) for write in writes if isinstance(write.item, tuple)]
        runs = {trial.run_id for _, trials in saves for trial in trials}
        errors = {run_id: self._check_run(connection, run_id) for run_id in runs}
        is_wrong = any(errors.values())
        for write, trials in saves:
            of_write = (errors[trial.run_id] for trial in trials if is_wrong)
            write.error = next((error for error in of_write if error is not None), None)
        accepted = (trial for write, trials in saves if write.error is None for trial in trials)
        self._database.insert(connection, accepted)

    def _check_run(self, connection: Connection, run_id: str) -> StoreError | None:
        """Why trials of the run cannot be saved, if so."""
        if self._database.lost_lease(run_id):
            return _lease_lost(run_id)
        return None if _has_run(connection, run_id) else NotInStore("run", run_id)

    def _rows(
        self, columns: str, condition: str, values: tuple[Any, ...], source: str = "trial"
    ) -> Iterator[Any]:
        """Rows of trials of a run; the primary key gives their order."""
        where = f"WHERE run_id = ?{condition} ORDER BY position, repeat"
        query = f"SELECT {columns} FROM {source} {where}"
        return self._database.rows(query, values)

    def _run(self, row: tuple[Any, ...]) -> RunRecord:
        with self._database.translating_errors():
            fields = dict(zip(RunRecord.__struct_fields__, row, strict=True))
            for name in _JSON:
                if fields[name] is not None:
                    fields[name] = msgspec.json.decode(fields[name])
            return msgspec.convert(fields, RunRecord)


def _in_positions(positions: range | None) -> tuple[str, tuple[Any, ...]]:
    """The condition for these positions, and its values."""
    if positions is None:
        return "", ()
    return " AND position >= ? AND position < ?", (positions.start, positions.stop)


def _as(record: type[Row], row: tuple[Any, ...]) -> Row:
    """A row as a record, with booleans, which SQLite does not have."""
    values = list(row)
    for index in _BOOLEANS[record]:
        values[index] = bool(values[index])
    return record(*values)


def content_row(trial: TrialRecord) -> tuple[int, bytes, bytes]:
    """The row of the content of a trial."""
    return place_of(trial.position)[1], content_hash(trial), trial.content


def content_hash(trial: TrialRecord) -> bytes:
    return blake2b(trial.content, digest_size=16).digest()


def _perform(connection: Connection, writes: list[Write[Work]]) -> None:
    for write in writes:
        if callable(write.item):
            try:
                write.error = None  # it may be left from an earlier attempt
                write.result = write.item(connection)
            except StoreError as error:
                write.error = error


def _lease_lost(run_id: str) -> StoreError:
    lost = f"the connection that held the run {run_id} was lost"
    return StoreError(
        f"{lost}, and another process may be working on it; if none is, resume the run"
    )


def _add_to_history(connection: Connection, name: str, run_id: str) -> None:
    """Add the run to the history of a baseline, unless it is its last one."""
    number, last = connection.execute(_LAST_ENTRY, (name,)).fetchone() or (0, None)
    if last != run_id:
        connection.execute(_ADD_ENTRY, (name, number + 1, run_id))


def _has_run(connection: Connection, run_id: str) -> bool:
    return connection.execute("SELECT 1 FROM run WHERE id = ?", (run_id,)).fetchone() is not None


def _row(run: RunRecord) -> tuple[Any, ...]:
    fields = msgspec.structs.asdict(run)
    return tuple(_json(value) if name in _JSON else value for name, value in fields.items())


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
