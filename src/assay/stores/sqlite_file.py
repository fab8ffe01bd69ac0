"""A SQLite file: its connections, and what its errors mean to a user."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from assay.errors import StoreError, unreadable
from assay.settings import shown_path
from assay.stores.migrating import migrate, scripts

#: A trial has some thousand bytes, for which larger pages than the default are faster to write.
#: Existing files keep their page size.
_PAGE_BYTES = 16384
_DAMAGED = "it is damaged; restore it from a backup, or move it away"
_LOCKED = "it is locked by another process; wait until that ends"
#: What SQLite's result codes mean, for those that are about the file and not the statement.
FAULTS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_PERM: "access to it was denied; check its permissions",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check its folder and its permissions",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed, or a limit on the size of files was reached",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database; name another file",
}


class SqliteFile:
    """The connections to a file, which is created or migrated when it is opened.

    One connection writes. Each reader has its own, and so sees a snapshot; idle ones are reused.
    """

    def __init__(self, path: Path, lock_timeout: float) -> None:
        self._path, self._lock_timeout = path, lock_timeout
        self.name = shown_path(path)
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] | None = []
        with self.translating_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.writer = self._connect("rwc")
            try:
                migrate(self.writer, self.name, scripts("sqlite"))
                self._enable_wal()
            except BaseException:
                self.writer.close()
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading."""
        with self._lock:
            if self._idle is None:
                raise StoreError("the store is closed")
            idle = self._idle.pop() if self._idle else None
        with self.translating_errors():
            connection = idle or self._connect("rw")
            try:
                yield connection
            finally:
                self._give_back(connection)

    @contextmanager
    def translating_errors(self, default: str | None = _DAMAGED) -> Iterator[None]:
        """Turns errors of the file into StoreErrors that say what to do.

        `default` is the message for all other errors: a read can only fail because of the file.
        With None they are raised unchanged.
        """
        try:
            yield
        except sqlite3.Error as error:
            fault = FAULTS.get(_result_code(error), default)
            if fault is None:
                raise
            raise StoreError(f"{self.name}: {fault} ({error})") from error
        except OSError as error:
            raise StoreError(
                f"{self.name}: the store cannot be created: {error.strerror}"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.name}: {_DAMAGED} ({unreadable(error)})") from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle or [], None
        for connection in (*idle, self.writer):
            connection.close()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if self._idle is not None:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self._lock_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not flush the disk
        return connection

    def _enable_wal(self) -> None:
        """Switch to the write-ahead log, for good."""
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                self.writer.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # Here SQLite ignores the timeout when another process opens the new file too.
                if _result_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)


def _result_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for errors of the Python module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
