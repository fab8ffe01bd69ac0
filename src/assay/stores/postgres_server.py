"""A PostgreSQL server: its connections, and what its errors mean to a user."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from assay.errors import StoreError

#: How many idle connections are kept for reuse.
MAX_IDLE = 8
#: Connection parameters, unless the URL sets them.
DEFAULTS: dict[str, Any] = {
    "application_name": "assay",
    "connect_timeout": 10,
    # An idle connection that breaks is noticed about as soon as the server notices.
    "keepalives_idle": 60,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    # Otherwise a request to a server that vanished is retransmitted for a quarter of an hour.
    "tcp_user_timeout": 30_000,
}

_LOCKED = "another process keeps it locked; wait for that one to end"
_LOST = "the connection was lost; what was not acknowledged may be missing"
_REFUSED = "the server refuses the user or the password; check both"
_DAMAGED = "it is damaged, or its tables are not ours"
#: What SQLSTATE codes and prefixes mean, for those that are about the server, not the statement.
FAULTS = {
    "08": _LOST,
    "25006": "it is read-only; name the primary server, or let the user write",
    "28": _REFUSED,
    "3D000": "there is no such database; make it with `createdb`",
    "42501": "the user may not do this; grant CREATE on its schema, and TEMPORARY",
    "42P07": "it has tables of another program; name another database",
    "53100": "the disk of the server is full; make room",
    "53200": "the server has no memory left",
    "53300": "the server has no connection left; close others, or raise max_connections",
    "55P03": _LOCKED,
    "57P": _LOST,
    "58": "the disk of the server failed",
    "XX": _DAMAGED,
}
#: Errors during connecting have no code: these are parts of their messages.
_FAULTS_BY_MESSAGE = {
    "password": FAULTS["28"],
    "authentication": FAULTS["28"],
    "role": FAULTS["28"],
    "database": FAULTS["3D000"],
    "too many": FAULTS["53300"],
    "remaining connection slots": FAULTS["53300"],
}


class PostgresServer:
    """Connections to one database; idle ones are reused."""

    def __init__(self, url: str, lock_timeout: float) -> None:
        self._url, self._lock_timeout = url, lock_timeout
        self.name = without_password(url)
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection] | None = []

    def connect(self) -> psycopg.Connection:
        """A new connection, which the caller closes."""
        with self.translating_errors():
            parameters = {**DEFAULTS, **conninfo_to_dict(self._url)}
            connection = psycopg.connect(autocommit=True, **parameters)
            try:
                connection.execute(b"SET lock_timeout = %d" % int(self._lock_timeout * 1000))
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def borrowed(self) -> Iterator[psycopg.Connection]:
        """A connection for reading."""
        connection = self._take_idle() or self.connect()
        try:
            with self.translating_errors():
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def translating_errors(self, otherwise: str | None = _DAMAGED) -> Iterator[None]:
        """Turns errors of the server into StoreErrors that say what to do.

        `otherwise` is the message for all other errors; with None they are raised unchanged.
        """
        try:
            yield
        except psycopg.Error as error:
            fault = _fault(error) or otherwise
            if fault is None:
                raise
            raise StoreError(f"{self.name}: {fault} ({_first_line(error)})") from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle or [], None
        for connection in idle:
            connection.close()

    def _take_idle(self) -> psycopg.Connection | None:
        while True:
            with self._lock:
                if self._idle is None:
                    raise StoreError("the store is closed")
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if usable(connection):
                return connection
            connection.close()

    def _give_back(self, connection: psycopg.Connection) -> None:
        with self._lock:
            if self._idle is not None and len(self._idle) < MAX_IDLE and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()


def usable(connection: psycopg.Connection) -> bool:
    """Is an idle connection still open? Unasked, a server sends only that it closes it."""
    if connection.closed:
        return False
    with selectors.DefaultSelector() as watched:
        watched.register(connection.fileno(), selectors.EVENT_READ)
        return not watched.select(0)


def without_password(url: str) -> str:
    """The URL without its password, for messages."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # Without the error: it may quote a part of the password.
        form = "such as 'postgresql://user@host/database'; write % in it as %25"
        raise StoreError(f"the URL of the store is not one of PostgreSQL, {form}") from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def _fault(error: psycopg.Error) -> str | None:
    code = error.sqlstate
    if code is not None:
        return next((fault for start, fault in FAULTS.items() if code.startswith(start)), None)
    if not isinstance(error, psycopg.OperationalError):
        return None
    message = str(error)
    if "FATAL" in message:
        fatal = message.partition("FATAL")[2]
        return next((fault for part, fault in _FAULTS_BY_MESSAGE.items() if part in fatal), _LOST)
    if "connection failed" in message or "timeout" in message or "resolve" in message:
        return "the server cannot be reached; check host and port, and whether it runs"
    return _LOST


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0]
