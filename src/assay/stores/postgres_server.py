"""A PostgreSQL server: its connections, and what its errors mean to a user."""

from __future__ import annotations

import logging
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from assay.errors import StoreError

T = TypeVar("T")

# psycopg logs a warning, which ends up on stderr, for each error that it ignores while it handles
# another one. A lost connection is handled here. WARNING is the level that it sets itself.
if (_log := logging.getLogger("psycopg")).level == logging.WARNING:
    _log.setLevel(logging.ERROR)

#: How long a server that cannot be reached is tried again.
RETRY_SECONDS = 30.0
#: The pause between two attempts.
_PAUSE_SECONDS = 0.1
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

_LOCKED = "it is locked by another process; wait until that ends"
LOST = "the connection was lost; what was not acknowledged may be missing"
_STARTING = "the server is starting or stopping; wait until it accepts connections"
_UNREACHABLE = "the server cannot be reached; check host and port, and whether it runs"
#: What may be over when the server has been restarted.
_PASSING = (LOST, _STARTING, _UNREACHABLE)
_REFUSED = "the server refuses the user or the password; check both"
_NO_PASSWORD = "the server asks for a password; set PGPASSWORD or ASSAY_STORE, for workers too"
_DAMAGED = "it is damaged, or its tables are not ours"
#: What SQLSTATE codes and prefixes mean, for those that are about the server, not the statement.
FAULTS = {
    "08": LOST,
    "25006": "it is read-only; name the primary server, or let the user write",
    "28": _REFUSED,
    "3D000": "the database does not exist; create it with `createdb`",
    "42501": "the user may not do this; grant CREATE on its schema, and TEMPORARY",
    "42P07": "it has tables of another program; name another database",
    "53100": "the disk of the server is full; free some space",
    "53200": "the server has no memory left",
    "53300": "the server has no connection left; close others, or raise max_connections",
    "55P03": _LOCKED,
    "57P03": _STARTING,
    "57P": LOST,
    "58": "the disk of the server failed",
    "XX": _DAMAGED,
}
#: Errors during connecting have no code: these are parts of their messages.
_FAULTS_BY_MESSAGE = {
    "the database system": _STARTING,
    "password": FAULTS["28"],
    "authentication": FAULTS["28"],
    "role": FAULTS["28"],
    "database": FAULTS["3D000"],
    "too many": FAULTS["53300"],
    "remaining connection slots": FAULTS["53300"],
}


class PostgresServer:
    """Connections to one database; idle ones are reused."""

    def __init__(self, url: str, lock_timeout: float, retry_seconds: float = RETRY_SECONDS) -> None:
        self._url, self._lock_timeout = url, lock_timeout
        self.retry_seconds = retry_seconds
        self.name = without_password(url)
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection] | None = []
        #: Since when the server cannot be reached, by the monotonic clock.
        self._gone_since: float | None = None

    def connect(self) -> psycopg.Connection:
        """A new connection, which the caller closes."""
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
            yield connection
        finally:
            self._give_back(connection)

    def retried(self, attempt: Callable[[], T]) -> T:
        """The result of an attempt that may be repeated while the server cannot be reached."""
        while True:
            try:
                result = attempt()
            except psycopg.Error as error:
                if not self.may_retry(error):
                    raise
            else:
                self.reached()
                return result

    def reached(self) -> None:
        """The server answered: the next time that it cannot be reached, the wait starts over."""
        self._gone_since = None

    @staticmethod
    def is_gone(error: psycopg.Error) -> bool:
        """Does the error say that the connection is lost, or that there is no server?"""
        return _fault(error) in _PASSING

    def may_retry(self, error: psycopg.Error) -> bool:
        """Pause and return True if another attempt may succeed.

        All threads together wait for `retry_seconds`, so that each call fails at once after that.
        """
        if not self.is_gone(error):
            return False
        now = time.monotonic()
        with self._lock:
            self._gone_since = self._gone_since or now
            left = self._gone_since + self.retry_seconds - now
            if left <= 0 or self._idle is None:
                return False
        time.sleep(min(left, _PAUSE_SECONDS))
        return True

    @contextmanager
    def translating_errors(self, default: str | None = _DAMAGED) -> Iterator[None]:
        """Turns errors of the server into StoreErrors that say what to do.

        `default` is the message for all other errors; with None they are raised unchanged.
        """
        try:
            yield
        except psycopg.Error as error:
            fault = _fault(error) or default
            if fault is None:
                raise
            raise StoreError(self.message(fault, error)) from error

    def message(self, fault: str, error: psycopg.Error) -> str:
        return f"{self.name}: {fault} ({_first_line(error)})"

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


@contextmanager
def transaction(connection: psycopg.Connection) -> Iterator[None]:
    """A transaction that is rolled back unless the caller commits it.

    With psycopg's own, a connection that is lost during the commit looks like any other.
    """
    connection.execute(b"BEGIN")
    try:
        yield
    finally:
        with suppress(psycopg.Error):  # with the connection, the transaction is lost too
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute(b"ROLLBACK")


def usable(connection: psycopg.Connection) -> bool:
    """Is an idle connection still open? All that a server sends on one is that it closes it."""
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
        raise StoreError(f"the URL of the store is not a PostgreSQL URL, {form}") from None
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
        return next((fault for part, fault in _FAULTS_BY_MESSAGE.items() if part in fatal), LOST)
    if "no password supplied" in message:
        return _NO_PASSWORD
    if "connection failed" in message or "timeout" in message or "resolve" in message:
        return _UNREACHABLE
    return LOST


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0]
