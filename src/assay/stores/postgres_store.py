"""The Store in PostgreSQL: COPY for trials, server-side cursors for reading, advisory locks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, cast

import msgspec
import psycopg
from psycopg import errors

from assay.errors import CommitInDoubt, RunHeld, StoreError
from assay.model.run import TrialRecord
from assay.stores.migrating import scripts
from assay.stores.postgres_permits import PostgresPermits
from assay.stores.postgres_server import LOST, RETRY_SECONDS, PostgresServer, transaction, usable
from assay.stores.sql import ADD_CONTENT, KEEP_FIRST, TRIAL_COLUMNS, SqlStore, content_row
from assay.stores.sql_test_cases import Connection, Cursor

#: How long to wait for a lock of another process.
LOCK_TIMEOUT_SECONDS = 30.0
#: How often a transaction that conflicts with another is tried.
_ATTEMPTS = 10
#: The most trials that are inserted one by one; for more, COPY is faster.
_FEW = 16
#: The number is how many rows are in memory at once.
_FETCH = "FETCH FORWARD 200 FROM found"

_COLUMNS = ", ".join(TRIAL_COLUMNS)
_INCOMING = "CREATE TEMPORARY TABLE incoming (LIKE trial) ON COMMIT DELETE ROWS"
_INCOMING_CONTENT = "CREATE TEMPORARY TABLE incoming_content (LIKE content) ON COMMIT DELETE ROWS"
_COPY_CONTENT = "COPY incoming_content (place, hash, body) FROM STDIN (FORMAT BINARY)"
_INSERT_CONTENT = "INSERT INTO content (place, hash, body) SELECT place, hash, body"
_INSERT_CONTENT += " FROM incoming_content ORDER BY place, hash ON CONFLICT DO NOTHING"
_COPY = f"COPY incoming ({_COLUMNS}) FROM STDIN (FORMAT BINARY)"
_INSERT_ONE = f"INSERT INTO trial ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(TRIAL_COLUMNS))})"
_INSERT_ONE += KEEP_FIRST
# Ordered by key: two transactions that insert the same keys in different orders would deadlock.
_INSERT = f"INSERT INTO trial ({_COLUMNS}) SELECT {_COLUMNS} FROM incoming"
_INSERT += f" ORDER BY run_id, position, repeat{KEEP_FIRST}"
_IS_OURS = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema()"
_IS_OURS += " AND tablename = 'assay_schema'"
#: `pg_locks` shows the key of a lock in two halves.
_HELD = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
_HELD += " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
_HELD += " AND classid::bigint = ? AND objid::bigint = ?"
_CHANGED = "the connection was lost, and what was being read has changed since: read it again"
_KEEPALIVE = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10;"
_KEEPALIVE += "SET tcp_keepalives_count = 3"


class PostgresStore(SqlStore):
    """A Store in a PostgreSQL database, which several processes may share."""

    #: Reading may wait for another machine.
    remote = True

    def __init__(
        self,
        url: str,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._server = PostgresServer(url, lock_timeout, retry_seconds)
        super().__init__(PostgresDatabase(self._server))
        #: The rate limits of all processes together.
        self.permits = PostgresPermits(self._permits_connection)

    @contextmanager
    def _permits_connection(self) -> Iterator[Connection]:
        """Slots may be taken twice when a connection is lost: one of them is not used."""
        with self._server.translating_errors():
            yield ReadingConnection(self._server)

    @property
    def retry_seconds(self) -> float:
        """How long a server that cannot be reached is tried again, once the store is open."""
        return self._server.retry_seconds

    @retry_seconds.setter
    def retry_seconds(self, seconds: float) -> None:
        self._server.retry_seconds = seconds

    @property
    def schema_version(self) -> int:
        """How many migrations made the schema."""
        return len(scripts("postgres"))


class QmarkConnection:
    """A connection that takes `?` as placeholder."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any], /) -> Cursor:
        return self.connection.execute(_psycopg_style(statement), values)


class ReadingConnection:
    """Executes queries on idle connections, and again if a connection is lost."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def execute(self, statement: str, values: Sequence[Any], /) -> Cursor:
        return self._server.retried(partial(self._execute, _psycopg_style(statement), values))

    def _execute(self, statement: bytes, values: Sequence[Any]) -> Cursor:
        with self._server.borrowed() as connection:
            return connection.execute(statement, values)


class Lease:
    """A lease of this process. Once lost to another process it stays lost."""

    def __init__(self, connection: psycopg.Connection) -> None:
        #: Holds the lock.
        self.connection = connection
        self.is_lost = False


class PostgresDatabase:
    """The `Database` of a server."""

    contains = "position(? IN folded) > 0"
    among = "{} = ANY (string_to_array(btrim(?, '[]'), ',')::bigint[])"
    glob = "coalesce(c.normal_id, c.case_id) LIKE ?"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.translating_errors = server.translating_errors
        self._writer: psycopg.Connection | None = None
        self._types: list[int] = []
        #: The leases of this process, by run.
        self._leases: dict[str, Lease] = {}
        self._lock, self._retaking = threading.Lock(), threading.Lock()
        with server.translating_errors(), closing(server.connect()) as connection:
            migrate(connection, server.name, scripts("postgres"))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._server.translating_errors():
            yield ReadingConnection(self._server)

    def rows(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        seen, last = 0, None
        with self._server.translating_errors():
            while True:
                try:
                    for row in self._rows_after(seen, last, query, values):
                        yield row
                        seen, last = seen + 1, row
                    return
                except psycopg.Error as error:
                    if not self._server.may_retry(error):
                        raise

    def _rows_after(self, seen: int, last: Any, query: str, values: Sequence[Any]) -> Iterator[Any]:
        """The rows after the first ones, of which the last is known and must still be the same."""
        with self._server.borrowed() as connection, transaction(connection):
            # DECLARE takes no parameters from the protocol, so the client has to insert them.
            declare = b"DECLARE found NO SCROLL CURSOR FOR " + _psycopg_style(query)
            psycopg.ClientCursor(connection).execute(declare, values)
            if seen:
                connection.execute(b"MOVE FORWARD %d FROM found" % (seen - 1))
                if (
                    connection.execute(b"FETCH FORWARD 1 FROM found", binary=True).fetchone()
                    != last
                ):
                    raise StoreError(f"{self._server.name}: {_CHANGED}")
            while rows := connection.execute(_FETCH.encode(), binary=True).fetchall():
                self._server.reached()
                yield from rows

    def commit(self, write: Callable[[Connection], None]) -> None:
        with self._server.translating_errors(None):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._server.retried(partial(self._commit, write))
                    return
                except (errors.DeadlockDetected, errors.SerializationFailure):
                    if attempt == _ATTEMPTS:
                        raise

    def _commit(self, write: Callable[[Connection], None]) -> None:
        connection = self._writer_connection()
        with transaction(connection):
            write(QmarkConnection(connection))
            try:
                connection.execute(b"COMMIT")
            except psycopg.Error as error:
                if self._server.is_gone(error):
                    raise CommitInDoubt(self._server.message(LOST, error)) from error
                raise

    def insert(self, connection: Connection, trials: Iterable[TrialRecord]) -> None:
        kept: dict[tuple[str, int, int], TrialRecord] = {}
        for trial in trials:  # one statement cannot insert and update the same key
            key = (trial.run_id, trial.position, trial.repeat)
            if key not in kept or not kept[key].final:
                kept[key] = trial
        rows, contents = [], {}
        for _, trial in sorted(kept.items()):
            row = content_row(trial)
            if trial.content:
                contents[row[:2]] = row
            rows.append((*msgspec.structs.astuple(trial)[:-1], row[1] if trial.content else None))
        in_order = [contents[key] for key in sorted(contents)]
        with cast("QmarkConnection", connection).connection.cursor() as cursor:
            if len(rows) <= _FEW:
                cursor.executemany(_psycopg_style(ADD_CONTENT), in_order)
                cursor.executemany(_INSERT_ONE.encode(), rows)
                return
            with cursor.copy(_COPY_CONTENT.encode()) as copy:
                copy.set_types(["int8", "bytea", "bytea"])
                for content in in_order:
                    copy.write_row(content)
            with cursor.copy(_COPY.encode()) as copy:
                copy.set_types(self._types)
                for row in rows:
                    copy.write_row(row)
            cursor.execute(_INSERT_CONTENT.encode())
            cursor.execute(_INSERT.encode())
            # The transaction may insert again.
            cursor.execute(b"DELETE FROM incoming_content")
            cursor.execute(b"DELETE FROM incoming")

    def insert_many(
        self, connection: Connection, statement: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        with cast("QmarkConnection", connection).connection.cursor() as cursor:
            cursor.executemany(_psycopg_style(statement), rows)

    def glob_pattern(self, pattern: str) -> str:
        return re.sub(r"[\\%_]", r"\\\g<0>", pattern).replace("*", "%")

    def lock_test_cases(self, connection: Connection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_lock_key("test cases"),))

    def lock_contents(self, connection: Connection) -> None:
        """Waits for transactions that add trials: they may refer to a content that is there."""
        connection.execute("LOCK TABLE content IN SHARE ROW EXCLUSIVE MODE", ())

    @contextmanager
    def lease(self, run_id: str) -> Iterator[None]:
        """A lock that ends with its connection; a dead machine is noticed within two minutes.

        If the connection is lost, the next write or `held` takes the lock again, unless another
        process has.
        """
        with self._server.translating_errors():
            lease = Lease(self._server.retried(partial(self._lock_run, run_id)))
        with self._lock:
            self._leases[run_id] = lease
        try:
            yield
        finally:
            with self._lock:
                if self._leases.get(run_id) is lease:
                    del self._leases[run_id]
            _unlock(lease.connection)

    def _lock_run(self, run_id: str) -> psycopg.Connection:
        """A connection that holds the lock of a run; raises RunHeld when another one does."""
        connection = self._server.connect()
        try:
            connection.execute(_KEEPALIVE.encode())
            key = (_lock_key(f"run {run_id}"),)
            row = connection.execute(b"SELECT pg_try_advisory_lock(%s)", key).fetchone()
            if row is None or not row[0]:
                raise RunHeld(run_id)
            return connection
        except BaseException:
            connection.close()
            raise

    def lost_lease(self, run_id: str) -> bool:
        """Checks the connection without a round trip, as this is called for every group."""
        with self._retaking:  # two threads would keep the lock from each other
            with self._lock:
                lease = self._leases.get(run_id)
            if lease is None or lease.is_lost or usable(lease.connection):
                return lease is not None and lease.is_lost
            return self._retake(run_id, lease)

    def _retake(self, run_id: str, lease: Lease) -> bool:
        """Take the lock of a run again; False if that worked."""
        try:
            connection = self._lock_run(run_id)
        except RunHeld:
            lease.is_lost = True
            return True
        query = b"SELECT 1 FROM run WHERE id = %s AND status = 'finished'"
        lease.is_lost = connection.execute(query, (run_id,)).fetchone() is not None
        with self._lock:
            if self._leases.get(run_id) is lease and not lease.is_lost:
                lease.connection, connection = connection, lease.connection
        _unlock(connection)
        return lease.is_lost

    def held(self, run_id: str) -> bool:
        """Looks the lock up: trying to take it could keep another process from taking it."""
        if run_id in self._leases:
            with self._server.translating_errors():
                return not self._server.retried(partial(self.lost_lease, run_id))
        halves = divmod(_lock_key(f"run {run_id}") % 2**64, 2**32)
        with self.reading() as connection:
            return connection.execute(_HELD, halves).fetchone() is not None

    def close(self) -> None:
        self._server.close()
        if self._writer is not None:
            self._writer.close()

    def _writer_connection(self) -> psycopg.Connection:
        """The connection of the writer thread; a new one if it was lost."""
        if self._writer is None or not usable(self._writer):
            if self._writer is not None:
                self._writer.close()
            self._writer = self._server.connect()
            self._writer.execute(_INCOMING.encode())
            self._writer.execute(_INCOMING_CONTENT.encode())
            # A binary COPY needs exactly the types of the columns.
            columns = self._writer.execute(f"SELECT {_COLUMNS} FROM incoming".encode()).description
            self._types = [column.type_code for column in columns or ()]
        return self._writer


def _unlock(connection: psycopg.Connection) -> None:
    with suppress(psycopg.Error):  # with the connection, the lock is lost too
        # Closing alone would release the lock only when the server notices.
        connection.execute(b"SELECT pg_advisory_unlock_all()")
    connection.close()


def migrate(connection: psycopg.Connection, name: str, migrations: Sequence[str]) -> None:
    """Run the migrations that the database lacks, all in one transaction."""
    if _version(connection, name, len(migrations)) == len(migrations):
        return
    with connection.transaction():
        connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_lock_key("migrating"),))
        # Check again: another process may have migrated while this one waited for the lock.
        version = _version(connection, name, len(migrations))
        if version is None:
            connection.execute(b"CREATE TABLE assay_schema (version BIGINT NOT NULL)")
            connection.execute(b"INSERT INTO assay_schema VALUES (0)")
        for script in migrations[version or 0 :]:
            connection.execute(script.encode())
        connection.execute(b"UPDATE assay_schema SET version = %s", (len(migrations),))


def _version(connection: psycopg.Connection, name: str, known: int) -> int | None:
    """How many migrations the database has had; None if it has none of our tables."""
    # `to_regclass` reads a cache, which may lack tables that other processes have just created.
    if connection.execute(_IS_OURS.encode()).fetchone() is None:
        return None
    row = connection.execute(b"SELECT version FROM assay_schema").fetchone()
    version = int(row[0]) if row is not None else 0
    if version > known:
        found = f"the store has schema {version}, and this version of Assay supports up to {known}"
        raise StoreError(f"{name}: {found}; update Assay")
    return version


@lru_cache(maxsize=256)
def _psycopg_style(statement: str) -> bytes:
    """The statement with `%s` for `?`, as psycopg has it."""
    return statement.replace("?", "%s").encode()


def _lock_key(name: str) -> int:
    """The key of an advisory lock, hashed to be unlike those of other programs."""
    digest = sha256(f"assay {name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
