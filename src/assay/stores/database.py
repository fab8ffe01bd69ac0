"""Database: what a store in tables needs of SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from assay.model.run import TrialRecord
from assay.stores.sql_cases import CaseDatabase
from assay.stores.sql_test_cases import Connection


class Database(CaseDatabase, Protocol):
    """The database that has the tables."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection for reading; a StoreError when the store is closed."""
        ...

    def rows(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        """The rows of a query, from one snapshot; they are streamed, in bounded memory."""
        ...

    def commit(self, write: Callable[[Connection], None]) -> None:
        """Call `write` in a transaction, and again if that conflicts with another transaction.

        It is also called again if the connection is lost before the commit. A fault of the
        database is a StoreError: a CommitInDoubt if the connection is lost during the commit. Any
        other exception is about what was written.
        """
        ...

    def insert(self, connection: Connection, trials: Iterable[TrialRecord]) -> None:
        """Insert trials, with KEEP_FIRST, and their contents."""
        ...

    def lock_test_cases(self, connection: Connection) -> None:
        """Keep other processes from writing test cases until the transaction ends."""
        ...

    def lock_contents(self, connection: Connection) -> None:
        """Keep other processes from adding or deleting contents until the transaction ends."""
        ...

    def translating_errors(self) -> AbstractContextManager[None]:
        """Turns errors of the database into StoreErrors."""
        ...

    def lease(self, run_id: str) -> AbstractContextManager[None]:
        """As in `Store`."""
        ...

    def held(self, run_id: str) -> bool:
        """As in `Store`."""
        ...

    def lost_lease(self, run_id: str) -> bool:
        """Did this process take a lease on the run, and lose it?"""
        ...

    def close(self) -> None: ...
