"""Log-in sessions in a database, in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from msgspec.structs import astuple

from assay.model.login import LoginSession
from assay.model.run import timestamp
from assay.stores.sql_test_cases import Connection

_FIELDS = ", ".join(LoginSession.__struct_fields__)
_GET = f"SELECT {_FIELDS} FROM login_session WHERE id_hash = ? AND expires_at > ?"
_ADD = f"INSERT INTO login_session ({_FIELDS}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


class SqlLoginSessions:
    """The LoginSessionStore of a database; `act` performs a repeatable action, and waits for it."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Connection]],
        act: Callable[[Callable[[Connection], Any]], Any],
    ) -> None:
        self._validation_context, self._act = reading, act

    def add(self, session: LoginSession) -> None:
        def act(connection: Connection) -> None:
            expired = "DELETE FROM login_session WHERE expires_at <= ?"
            connection.execute(expired, (session.created_at,))
            connection.execute(_ADD, astuple(session))

        self._act(act)

    def get(self, id_hash: str, now: datetime) -> LoginSession | None:
        with self._validation_context() as connection:
            row = connection.execute(_GET, (id_hash, timestamp(now))).fetchone()
        return None if row is None else LoginSession(*row)

    def remove(self, id_hash: str) -> None:
        def act(connection: Connection) -> None:
            connection.execute("DELETE FROM login_session WHERE id_hash = ?", (id_hash,))

        self._act(act)
