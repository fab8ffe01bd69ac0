"""Permits in PostgreSQL: a row per target, with the time of its next free slot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

# By the clock of the server, so that those of the machines need not agree. A crash of the server
# may forget the last slots, which is no reason to wait for the disk.
_NOW = "extract(epoch FROM clock_timestamp())"
_TAKE = f"""
    INSERT INTO permit (target, next_at) VALUES (?, {_NOW} + ?)
    ON CONFLICT (target) DO UPDATE SET next_at = greatest(permit.next_at, {_NOW}) + ?
    RETURNING next_at - {_NOW}
"""
_HOLD = f"""
    INSERT INTO permit (target, next_at) VALUES (?, {_NOW} + ?)
    ON CONFLICT (target) DO UPDATE SET next_at = greatest(permit.next_at, {_NOW} + ?)
    RETURNING next_at
"""

Execute = Callable[[str, tuple[Any, ...]], Any]


class PostgresPermits:
    """The Permits of a store. `connected` lends a connection that commits each statement."""

    def __init__(self, connected: Callable[[], AbstractContextManager[Any]]) -> None:
        self._connected = connected

    def take(self, target: str, number: int, per_second: float) -> float:
        seconds = number / per_second
        return max(self._execute(_TAKE, target, seconds) - seconds, 0.0)

    def hold(self, target: str, seconds: float) -> None:
        self._execute(_HOLD, target, seconds)

    def _execute(self, statement: str, target: str, seconds: float) -> float:
        with self._connected() as connection:
            row = connection.execute(statement, (target, seconds, seconds)).fetchone()
            return float(row[0])
