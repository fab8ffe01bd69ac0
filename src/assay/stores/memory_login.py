"""The log-in sessions of the store in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

from assay.model.login import LoginSession
from assay.model.run import timestamp


class MemoryLoginSessions:
    """Behaves like sessions in a database. `open_` returns the lock, if the store is open."""

    def __init__(self, open_: Callable[[], AbstractContextManager[object]]) -> None:
        self._open = open_
        self._sessions: dict[str, LoginSession] = {}

    def add(self, session: LoginSession) -> None:
        with self._open():
            live = (s for s in self._sessions.values() if s.expires_at > session.created_at)
            self._sessions = {session.id_hash: session} | {s.id_hash: s for s in live}

    def get(self, id_hash: str, now: datetime) -> LoginSession | None:
        with self._open():
            session = self._sessions.get(id_hash)
        return None if session is None or session.expires_at <= timestamp(now) else session

    def remove(self, id_hash: str) -> None:
        with self._open():
            self._sessions.pop(id_hash, None)
