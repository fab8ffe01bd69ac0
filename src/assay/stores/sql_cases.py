"""The rows of ended runs in a database, in the SQL that SQLite and PostgreSQL share.

They are computed from trials when the cases of a run are first listed, and so cost nothing
while it is recorded. A run that is reopened or deleted loses them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import msgspec

from assay.model.case_filter import CaseFilter
from assay.model.case_rows import (
    MAX_COMPARISONS,
    CaseKind,
    CaseQuery,
    CaseRow,
    Facets,
    IndexedCase,
    facets_of,
)
from assay.model.names import normal_name
from assay.model.run import RunRecord
from assay.stores.sql_filter import Condition, Dialect, after, compile_filter, order_of
from assay.stores.sql_test_cases import Connection

#: How many rows are written in one transaction; other writers wait for it.
_BATCH = 2000
#: How many searches for a text are remembered.
_SEARCHES = 8

_ONCE = " ON CONFLICT DO NOTHING"
_ROW = (
    "position, suite, case_id, kind, outcome, passes, judged, score, cost_usd, latency_ms, flaky,"
    " changed"
)
_SHOWN = ", ".join(f"c.{name.strip()}" for name in _ROW.split(","))
_ADD_ROW = f"INSERT INTO case_row (run, {_ROW}, normal_id) VALUES ({', '.join('?' * 14)}){_ONCE}"
_ADD_TEXT = f"INSERT INTO case_text (run, position, folded) VALUES (?, ?, ?){_ONCE}"
_ADD_KIND = f"INSERT INTO case_kind (run, number, kind) VALUES (?, ?, ?){_ONCE}"
_INDEXED = "SELECT i.number, r.finished_at FROM indexed_run i JOIN run r ON r.id = i.run_id"
_INDEXED += " WHERE i.run_id = ? AND i.complete = 1"
#: Finds a run that is still as it was when its rows were computed.
_UNCHANGED = "FROM run WHERE id = ? AND status = ? AND coalesce(finished_at, '') = ?"
_BEGIN = f"INSERT INTO indexed_run (run_id, complete) SELECT id, 0 {_UNCHANGED}{_ONCE}"
_NUMBER = f"SELECT number FROM indexed_run WHERE run_id IN (SELECT id {_UNCHANGED})"
_COMPARISON = "SELECT value FROM comparison WHERE base_id = ? AND candidate_id = ? AND rules = ?"
_KEEP = "INSERT INTO comparison (base_id, candidate_id, rules, value) SELECT ?, ?, ?, ?"
_KEEP += " WHERE (SELECT count(*) FROM run WHERE id IN (?, ?) AND status = 'finished') = ?"
_PAIR = "FROM comparison WHERE base_id = ? AND candidate_id = ?"
#: Forget what was computed of a run.
FORGET = (
    "DELETE FROM indexed_run WHERE run_id = ?",
    "DELETE FROM comparison WHERE base_id = ?",
    "DELETE FROM comparison WHERE candidate_id = ?",
)
_Rows = Iterable[tuple[str, list[tuple[Any, ...]]]]
_decode_kind = msgspec.json.Decoder(CaseKind).decode


class CaseDatabase(Dialect, Protocol):
    """The part of a Database that the index of cases needs."""

    def reading(self) -> AbstractContextManager[Connection]: ...

    def insert_many(
        self, connection: Connection, statement: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Execute a statement for every row."""
        ...


class _Run(NamedTuple):
    """An indexed run; its `version` is another once it has been resumed."""

    number: int
    version: tuple[str, str]
    kinds: dict[int, CaseKind]


class SqlCaseIndex:
    """The CaseIndex of a database; `act` performs a repeatable action, and waits for it."""

    def __init__(
        self, database: CaseDatabase, act: Callable[[Callable[[Connection], Any]], Any]
    ) -> None:
        self._database, self._act = database, act
        #: The positions of cases with a text: the same search is often sorted and paged anew.
        self._found: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, run_id: str) -> bool:
        with self._database.reading() as connection:
            return connection.execute(_INDEXED, (run_id,)).fetchone() is not None

    def add(self, run: RunRecord, cases: Iterable[IndexedCase]) -> bool:
        version = (run.id, run.status, run.finished_at or "")
        numbers: dict[CaseKind, int] = {}

        def begin(connection: Connection) -> bool:
            connection.execute(_BEGIN, version)
            return connection.execute(_NUMBER, version).fetchone() is not None

        def write(rows: _Rows, connection: Connection) -> bool:
            found = connection.execute(_NUMBER, version).fetchone()
            if found is None:
                return False
            for statement, values in rows:
                numbered = [(found[0], *value) for value in values]
                self._database.insert_many(connection, statement, numbered)
            return True

        def end(connection: Connection) -> bool:
            change = f"UPDATE indexed_run SET complete = 1 WHERE number IN ({_NUMBER})"
            connection.execute(change, version)
            return connection.execute(_INDEXED, (run.id,)).fetchone() is not None

        if run.status == "running" or not self._act(begin):
            return False
        remaining = iter(cases)
        while batch := list(islice(remaining, _BATCH)):
            if not self._act(partial(write, list(_rows(batch, numbers)))):
                return False
        return bool(self._act(end))

    def page(self, run_id: str, query: CaseQuery) -> list[CaseRow]:
        with self._database.reading() as connection:
            run = self._run(connection, run_id)
            condition, values = self._compile(connection, run, query.where)
            beyond, cursor = after(query.sort, query.after)
            statement = (
                f"SELECT {_SHOWN} FROM case_row c WHERE c.run = ? AND {condition} AND {beyond}"
                f" ORDER BY {order_of(query.sort)} LIMIT ? OFFSET ?"
            )
            bounds = (query.limit, query.skip)
            found = connection.execute(statement, (run.number, *values, *cursor, *bounds))
            return [_as_row(row, run.kinds) for row in found.fetchall()]

    def row(self, run_id: str, position: int) -> CaseRow | None:
        with self._database.reading() as connection:
            run = self._run(connection, run_id)
            statement = f"SELECT {_SHOWN} FROM case_row c WHERE c.run = ? AND c.position = ?"
            found = connection.execute(statement, (run.number, position)).fetchone()
        return None if found is None else _as_row(found, run.kinds)

    def facets(self, run_id: str, where: CaseFilter) -> Facets:
        with self._database.reading() as connection:
            run = self._run(connection, run_id)
            condition, values = self._compile(connection, run, where)
            statement = (
                "SELECT c.kind, c.outcome, c.flaky, c.changed, count(*) FROM case_row c"
                f" WHERE c.run = ? AND {condition} GROUP BY c.kind, c.outcome, c.flaky, c.changed"
            )
            groups = connection.execute(statement, (run.number, *values)).fetchall()
        return facets_of((run.kinds[kind], *rest) for kind, *rest in groups)

    def _run(self, connection: Connection, run_id: str) -> _Run:
        number, finished = connection.execute(_INDEXED, (run_id,)).fetchone() or (0, None)
        query = "SELECT number, kind FROM case_kind WHERE run = ?"
        rows = connection.execute(query, (number,)).fetchall()
        kinds = {kind: _decode_kind(value) for kind, value in rows}
        return _Run(number, (run_id, finished or ""), kinds)

    def _compile(self, connection: Connection, run: _Run, where: CaseFilter) -> Condition:
        find = partial(self._positions, connection, run)
        return compile_filter(where, run.kinds, self._database, find)

    def _positions(self, connection: Connection, run: _Run, text: str) -> str:
        """The positions of the cases with a text, as a JSON array."""
        key = (*run.version, text)
        with self._lock:
            if (known := self._found.get(key)) is not None:
                self._found.move_to_end(key)
                return known
        query = f"SELECT position FROM case_text WHERE run = ? AND {self._database.contains}"
        needle = text.encode("utf-8", "surrogatepass")
        rows = connection.execute(query, (run.number, needle)).fetchall()
        found = msgspec.json.encode([position for (position,) in rows]).decode()
        with self._lock:
            self._found[key] = found
            while len(self._found) > _SEARCHES:
                self._found.popitem(last=False)
        return found

    def comparison(self, base: str, candidate: str, rules: str) -> bytes | None:
        with self._database.reading() as connection:
            row = connection.execute(_COMPARISON, (base, candidate, rules)).fetchone()
        return None if row is None else bytes(row[0])

    def keep_comparison(self, base: str, candidate: str, rules: str, value: bytes) -> None:
        def act(connection: Connection) -> None:
            pair, ends = (base, candidate), (base, candidate, len({base, candidate}))
            (kept,) = connection.execute(f"SELECT count(*) {_PAIR}", pair).fetchone()
            if kept >= MAX_COMPARISONS:
                connection.execute(f"DELETE {_PAIR}", pair)
            connection.execute(_KEEP + _ONCE, (base, candidate, rules, value, *ends))

        self._act(act)


def _rows(
    batch: Sequence[IndexedCase], numbers: dict[CaseKind, int]
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """The statements for some cases, each with its rows; `numbers` are those of known kinds."""
    known = len(numbers)
    for case in batch:
        numbers.setdefault(case.kind, len(numbers))
    fresh = list(numbers.items())[known:]
    yield _ADD_KIND, [(number, msgspec.json.encode(kind).decode()) for kind, number in fresh]
    yield _ADD_ROW, [_row(case.row, numbers[case.kind]) for case in batch]
    texts = ((case.row.position, case.text) for case in batch)
    yield _ADD_TEXT, [(place, text.encode("utf-8", "surrogatepass")) for place, text in texts]


def _row(row: CaseRow, kind: int) -> tuple[Any, ...]:
    name = normal_name(row.id)
    return (
        row.position,
        row.suite,
        row.id,
        kind,
        row.outcome,
        row.passes,
        row.judged,
        row.score,
        row.cost_usd,
        row.latency_ms,
        int(row.flaky),
        row.changed,
        None if name == row.id else name,
    )


def _as_row(row: Sequence[Any], kinds: dict[int, CaseKind]) -> CaseRow:
    kind = kinds[row[3]]
    values = (*row[:3], kind.tags, kind.evaluators, *row[4:10], bool(row[10]), row[11])
    return CaseRow(*values)
