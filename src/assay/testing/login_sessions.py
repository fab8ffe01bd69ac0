"""Conformance tests for the log-in sessions of a store; part of StoreConformance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.model.login import LoginSession
from assay.model.run import timestamp
from assay.ports import Store

_NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
_DAY = timedelta(days=1)


def make_session(id_hash: str, created_at: datetime = _NOON) -> LoginSession:
    """A session of one day."""
    return LoginSession(id_hash, "token", timestamp(created_at), timestamp(created_at + _DAY))


class LoginSessionConformance:
    """What a store must do with log-in sessions."""

    def test_a_session_is_found_until_it_expires(self, store: Store) -> None:
        store.login_sessions.add(make_session("a"))
        assert store.login_sessions.get("a", _NOON) == make_session("a")
        assert store.login_sessions.get("a", _NOON + _DAY - timedelta(seconds=1)) is not None
        assert store.login_sessions.get("a", _NOON + _DAY) is None
        assert store.login_sessions.get("b", _NOON) is None

    def test_a_removed_session_is_gone(self, store: Store) -> None:
        store.login_sessions.add(make_session("a"))
        store.login_sessions.add(make_session("b"))
        for _ in range(2):
            store.login_sessions.remove("a")
        assert store.login_sessions.get("a", _NOON) is None
        assert store.login_sessions.get("b", _NOON) == make_session("b")

    def test_adding_a_session_removes_expired_ones(self, store: Store) -> None:
        store.login_sessions.add(make_session("old"))
        store.login_sessions.add(make_session("new", _NOON + _DAY))
        assert store.login_sessions.get("old", _NOON) is None
        assert store.login_sessions.get("new", _NOON + _DAY) is not None
