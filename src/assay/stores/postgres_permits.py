"""Permits in PostgreSQL: a row per target with its next free slot, and one per budget."""

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

_SPEND = """
    INSERT INTO spending (budget, usd) VALUES (?, ?)
    ON CONFLICT (budget) DO UPDATE SET usd = greatest(spending.usd, ?) + ?
    RETURNING usd
"""


class PostgresPermits:
    """The Permits of a store. `connected` lends a connection that commits each statement."""

    def __init__(self, connected: Callable[[], AbstractContextManager[Any]]) -> None:
        self._connected = connected

    def take(self, target: str, number: int, per_second: float) -> float:
        seconds = number / per_second
        return max(self._execute(_TAKE, target, seconds, seconds) - seconds, 0.0)

    def hold(self, target: str, seconds: float) -> None:
        self._execute(_HOLD, target, seconds, seconds)

    def spend(self, budget: str, usd: float, at_least: float = 0.0) -> float:
        return self._execute(_SPEND, budget, at_least + usd, at_least, usd)

    def _execute(self, statement: str, *values: Any) -> float:
        with self._connected() as connection:
            row = connection.execute(statement, values).fetchone()
            return float(row[0])
