"""The Store in PostgreSQL: COPY for trials, cursors of the server for reading, advisory locks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

import msgspec
import psycopg
from psycopg import errors

from assay.errors import RunHeld, StoreError
from assay.model.run import TrialRecord
from assay.stores.migrating import scripts
from assay.stores.postgres_server import PostgresServer, usable
from assay.stores.sql import KEEP_FIRST, SqlStore
from assay.stores.sql_test_cases import Answer, Connection

#: How many seconds a lock of another process is waited for.
PATIENCE = 30.0
#: How often a group is written again that was in the way of another.
_ATTEMPTS = 10
#: So many trials are inserted one by one: COPY has to be prepared, and pays for more.
_FEW = 16
#: So many rows are in memory at once.
_FETCH = "FETCH FORWARD 200 FROM found"

_FIELDS = TrialRecord.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_INCOMING = "CREATE TEMPORARY TABLE incoming (LIKE trial) ON COMMIT DELETE ROWS"
_COPY = f"COPY incoming ({_COLUMNS}) FROM STDIN (FORMAT BINARY)"
_INSERT_ONE = f"INSERT INTO trial ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(_FIELDS))})"
_INSERT_ONE += KEEP_FIRST
# In the order of their keys, as two that insert the same in other orders wait for each other.
_INSERT = f"INSERT INTO trial ({_COLUMNS}) SELECT {_COLUMNS} FROM incoming"
_INSERT += f" ORDER BY run_id, position, repeat{KEEP_FIRST}"
_IS_OURS = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema()"
_IS_OURS += " AND tablename = 'assay_schema'"
#: A lock's number is shown in two halves.
_HELD = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
_HELD += " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
_HELD += " AND classid::bigint = %s AND objid::bigint = %s"
_KEEPALIVE = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10;"
_KEEPALIVE += "SET tcp_keepalives_count = 3"


class PostgresStore(SqlStore):
    """A Store in a PostgreSQL database, which several processes may share."""

    #: Reading means to wait for another machine.
    remote = True

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        super().__init__(PostgresDatabase(PostgresServer(url, patience)))

    @property
    def schema_version(self) -> int:
        """How many migrations made the schema."""
        return len(scripts("postgres"))


class Spoken:
    """A connection that takes `?` for values."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any], /) -> Answer:
        return self.connection.execute(_spoken(statement), values)


class PostgresDatabase:
    """The server as the Store in tables sees it."""

    contains = "position(? IN folded) > 0"

    # CASE lets PostgreSQL expect few sets: of a bare condition it expects a third, and would rather
    # read all test cases than look some up.
    _HAVING = f"""
        found AS MATERIALIZED (
            SELECT number, total FROM tag_set
            WHERE CASE WHEN length(folded) > 0 AND {contains} THEN 1 ELSE 0 END = 1
        ),
        sets AS (SELECT number FROM found)
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.telling = server.telling
        self._writer: psycopg.Connection | None = None
        self._types: list[int] = []
        #: The connections that hold the runs which are worked on here.
        self._leases: dict[str, psycopg.Connection] = {}
        self._lock = threading.Lock()
        with server.telling(), closing(server.connect()) as connection:
            migrate(connection, server.name, scripts("postgres"))

    def having(self, needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
        return self._HAVING, (needle,)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._server.borrowed() as connection:
            yield Spoken(connection)

    def rows(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        left = False
        try:
            with self._server.borrowed() as connection, connection.transaction():
                # The protocol has no values for this statement: they are written into it.
                found = psycopg.ClientCursor(connection)
                found.execute(b"DECLARE found NO SCROLL CURSOR FOR " + _spoken(query), values)
                while rows := connection.execute(_FETCH.encode(), binary=True).fetchall():
                    try:
                        yield from rows
                    except GeneratorExit:
                        left = True
                        raise
        except StoreError:
            if not left:  # whoever has gone does not care that the connection was lost
                raise

    def commit(self, write: Callable[[Connection], None]) -> None:
        with self._server.telling(None):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    connection = self._writing()
                    with connection.transaction():
                        write(Spoken(connection))
                    return
                except (errors.DeadlockDetected, errors.SerializationFailure):
                    if attempt == _ATTEMPTS:
                        raise

    def insert(self, connection: Connection, trials: Iterable[TrialRecord]) -> None:
        kept: dict[tuple[str, int, int], TrialRecord] = {}
        for trial in trials:  # PostgreSQL does not take a key twice in one statement
            key = (trial.run_id, trial.position, trial.repeat)
            if key not in kept or not kept[key].final:
                kept[key] = trial
        rows = [msgspec.structs.astuple(kept[key]) for key in sorted(kept)]
        with cast("Spoken", connection).connection.cursor() as cursor:
            if len(rows) <= _FEW:
                cursor.executemany(_INSERT_ONE.encode(), rows)
                return
            with cursor.copy(_COPY.encode()) as copy:
                copy.set_types(self._types)
                for row in rows:
                    copy.write_row(row)
            cursor.execute(_INSERT.encode())
            cursor.execute(b"DELETE FROM incoming")  # another may follow in the transaction

    def take_turns(self, connection: Connection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_number("test cases"),))

    @contextmanager
    def lease(self, run_id: str) -> Iterator[None]:
        """A lock that ends with its connection; a dead machine is noticed within two minutes."""
        connection, lock = self._server.connect(), (_number(f"run {run_id}"),)
        try:
            with self._server.telling():
                connection.execute(_KEEPALIVE.encode())
                row = connection.execute(b"SELECT pg_try_advisory_lock(%s)", lock).fetchone()
            if row is None or not row[0]:
                raise RunHeld(run_id)
            with self._lock:
                self._leases[run_id] = connection
            yield
        finally:
            with self._lock:
                if self._leases.get(run_id) is connection:
                    del self._leases[run_id]
            with suppress(psycopg.Error):  # when it was lost, so was the lock
                # A server takes its time to notice that a connection was closed.
                connection.execute(b"SELECT pg_advisory_unlock_all()")
            connection.close()

    def has_lost(self, run_id: str) -> bool:
        """Looks at the connection without asking the server: it is done for every group."""
        with self._lock:
            connection = self._leases.get(run_id)
            return connection is not None and not usable(connection)

    def held(self, run_id: str) -> bool:
        """Looked up and not tried: a try would keep others from the lock meanwhile."""
        halves = divmod(_number(f"run {run_id}") % 2**64, 2**32)
        with self._server.borrowed() as connection:
            return connection.execute(_HELD.encode(), halves).fetchone() is not None

    def close(self) -> None:
        self._server.close()
        if self._writer is not None:
            self._writer.close()

    def _writing(self) -> psycopg.Connection:
        """The connection of the thread that writes; a new one when it was lost."""
        if self._writer is None or not usable(self._writer):
            if self._writer is not None:
                self._writer.close()
            self._writer = self._server.connect()
            self._writer.execute(_INCOMING.encode())
            # What comes in binary has to have exactly the types of the columns.
            columns = self._writer.execute(f"SELECT {_COLUMNS} FROM incoming".encode()).description
            self._types = [column.type_code for column in columns or ()]
        return self._writer


def migrate(connection: psycopg.Connection, name: str, migrations: Sequence[str]) -> None:
    """Run the migrations that the database has not seen, all in one transaction."""
    if _version(connection, name, len(migrations)) == len(migrations):
        return
    with connection.transaction():
        connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_number("migrating"),))
        # Asked again: another process may have migrated while this one waited for the lock.
        version = _version(connection, name, len(migrations))
        if version is None:
            connection.execute(b"CREATE TABLE assay_schema (version BIGINT NOT NULL)")
            connection.execute(b"INSERT INTO assay_schema VALUES (0)")
        for script in migrations[version or 0 :]:
            connection.execute(script.encode())
        connection.execute(b"UPDATE assay_schema SET version = %s", (len(migrations),))


def _version(connection: psycopg.Connection, name: str, known: int) -> int | None:
    """How many migrations the database has seen; None when it is not ours yet."""
    # `to_regclass` would be answered by a cache that does not know what others made meanwhile.
    if connection.execute(_IS_OURS.encode()).fetchone() is None:
        return None
    row = connection.execute(b"SELECT version FROM assay_schema").fetchone()
    version = int(row[0]) if row is not None else 0
    if version > known:
        found = f"the store has schema {version}, and this version of Assay knows {known}"
        raise StoreError(f"{name}: {found}; update Assay")
    return version


@lru_cache(maxsize=256)
def _spoken(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _number(what: str) -> int:
    """The number of an advisory lock; they are the database's, so ours must be unlike others'."""
    digest = sha256(f"assay {what}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
