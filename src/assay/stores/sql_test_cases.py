"""Test cases in a database, in the SQL that SQLite and PostgreSQL share.

The cost of a page depends on its size only: the total is stored, not counted. A tag is searched
once for all test cases with the same set of tags.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from assay.errors import DuplicateId, NotInStore
from assay.model.test_case import (
    NewTestCase,
    Pin,
    TestCase,
    TestCaseChanges,
    TestCasePage,
    count_tags,
    first_version,
    folded,
    next_version,
    refuse_unfit,
    search_key,
    storable,
    utc_text,
)

#: Larger than any number in a store, and still fits a 64-bit column.
_HUGE = 2**62

#: How many keys are looked up by one query.
_KEYS_PER_QUERY = 500

_TEXTS = "v.input, v.expected_output, v.description, v.tags"
_FIELDS = f"c.id, {_TEXTS}, c.created_at, v.modified_at, v.version"
_NEWEST = "JOIN test_case_version v ON v.number = c.number AND v.version = c.version"
_GET = f"SELECT c.number, c.tag_set, {_FIELDS} FROM test_case c {_NEWEST}"
_GET += " WHERE c.id = ? AND c.deleted_at IS NULL"
# Versions are numbered from 1. A page beyond the end still has one row, with the total.
_VERSIONS = f"""
    SELECT c.version, {_FIELDS} FROM test_case c
    LEFT JOIN test_case_version v ON v.number = c.number AND v.version > ? AND v.version <= ?
    WHERE c.id = ? ORDER BY v.version
"""
_KEYED = "(VALUES {keys}) k CROSS JOIN test_case c"
_TAKEN = f"SELECT c.deleted_at IS NULL, {_FIELDS} FROM {_KEYED} {_NEWEST} WHERE c.id = k.column1"
_PINNED = f"""
    SELECT {_FIELDS} FROM {_KEYED} CROSS JOIN test_case_version v
    WHERE c.id = k.column1 AND v.number = c.number AND v.version = k.column2
"""
_SHOWN = "c.number, c.id, c.created_at, c.version"
_IN_ORDER = "ORDER BY c.number LIMIT ? OFFSET ?"
# The total comes first in each row; an empty page still has one row, for the total.
_PAGE = f"""
    WITH page AS (SELECT {_SHOWN} FROM test_case c WHERE c.deleted_at IS NULL {_IN_ORDER})
    SELECT n.total, {_FIELDS}
    FROM test_case_count n LEFT JOIN (page c {_NEWEST}) ON TRUE ORDER BY c.number
"""
# Every set of tags is looked at, and the test cases of those that match are sorted.
_TAGGED = f"""
    WITH sets AS MATERIALIZED (
        SELECT number, total FROM tag_set WHERE length(folded) > 0 AND {{contains}}
    ),
    page AS (
        SELECT {_SHOWN} FROM sets t CROSS JOIN test_case c WHERE c.tag_set = t.number {_IN_ORDER}
    )
    SELECT n.total, {_FIELDS}
    FROM (SELECT coalesce(sum(total), 0) AS total FROM sets) n
    LEFT JOIN (page c {_NEWEST}) ON TRUE ORDER BY c.number
"""
_TAG_SETS = "SELECT folded, total FROM tag_set"
_ADD = "INSERT INTO test_case (id, version, created_at, tag_set) VALUES (?, ?, ?, ?)"
_ADD += " RETURNING number"
_ADD_VERSION = "INSERT INTO test_case_version VALUES (?, ?, ?, ?, ?, ?, ?)"
_COUNT = "UPDATE test_case_count SET total = total + ?"
_TAGS = msgspec.json.Decoder(tuple[str, ...])


class Cursor(Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection that takes statements with `?` as placeholder."""

    def execute(self, statement: str, values: Sequence[Any], /) -> Cursor: ...


#: Queues an action for the writer; the future has its result once that is on disk. If the action
#: raises a StoreError, only it fails; it must not have written anything then.
Submit = Callable[[Callable[[Connection], Any]], Future[Any]]


class SqlTestCases:
    """A TestCaseStore in tables."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Connection]],
        submit: Submit,
        contains: str,
    ) -> None:
        self._validation_context, self._submit = reading, submit
        self._tagged = _TAGGED.format(contains=contains)

    def add(self, new: NewTestCase, now: datetime) -> Future[TestCase]:
        refuse_unfit(new)
        case = first_version(new, str(uuid4()) if new.id is None else new.id, now)

        def act(connection: Connection) -> TestCase:
            known = connection.execute("SELECT 1 FROM test_case WHERE id = ?", (case.id,))
            if known.fetchone() is not None:
                raise DuplicateId(case.id)
            values = (case.id, case.version, case.created_at, _join_tag_set(connection, case))
            ((number,),) = connection.execute(_ADD, values).fetchall()
            _add_version(connection, number, case)
            connection.execute(_COUNT, (1,))
            return case

        return self._submit(act)

    def get(self, case_id: str) -> TestCase:
        with self._validation_context() as connection:
            return _get(connection, case_id)[2]

    def find(self, ids: Collection[str]) -> dict[str, TestCase | None]:
        keys = [(case_id,) for case_id in ids if storable(case_id)]
        found = [(live, _case(row)) for live, *row in self._look_up(_TAKEN, keys)]
        return {case.id: case if live else None for live, case in found}

    def page(self, limit: int, skip: int = 0, tag: str | None = None) -> TestCasePage:
        bounds = (min(limit, _HUGE), min(skip, _HUGE))
        needle = None if tag is None else search_key(tag)
        if tag is not None and needle is None:
            return TestCasePage([], 0)
        with self._validation_context() as connection:
            if needle is None:
                rows = connection.execute(_PAGE, bounds).fetchall()
            else:
                rows = connection.execute(self._tagged, (needle, *bounds)).fetchall()
        return TestCasePage([_case(row[1:]) for row in rows if row[1] is not None], int(rows[0][0]))

    def tags(self) -> dict[str, int]:
        with self._validation_context() as connection:
            return count_tags(connection.execute(_TAG_SETS, ()).fetchall())

    def change(
        self, case_id: str, changes: TestCaseChanges, now: datetime, known: str | None = None
    ) -> Future[TestCase]:
        refuse_unfit(changes)

        def act(connection: Connection) -> TestCase:
            number, old_set, newest = _get(connection, case_id)
            case = next_version(newest, changes, now, known)
            _add_version(connection, number, case)
            has_same_tags = folded(newest.tags) == folded(case.tags)
            new_set = old_set if has_same_tags else _join_tag_set(connection, case)
            change = "UPDATE test_case SET version = ?, tag_set = ? WHERE number = ?"
            connection.execute(change, (case.version, new_set, number))
            if not has_same_tags:
                _leave_tag_set(connection, old_set)
            return case

        return self._submit(act)

    def remove(self, case_id: str, now: datetime) -> Future[None]:
        def act(connection: Connection) -> None:
            number, tag_set, _ = _get(connection, case_id)
            change = "UPDATE test_case SET deleted_at = ?, tag_set = NULL WHERE number = ?"
            connection.execute(change, (utc_text(now), number))
            _leave_tag_set(connection, tag_set)
            connection.execute(_COUNT, (-1,))

        return self._submit(act)

    def versions(self, case_id: str, limit: int, skip: int = 0) -> TestCasePage:
        if not storable(case_id):
            raise NotInStore("test case", case_id)
        values = (min(skip, _HUGE), min(skip + limit, _HUGE), case_id)
        with self._validation_context() as connection:
            rows = connection.execute(_VERSIONS, values).fetchall()
        if not rows:
            raise NotInStore("test case", case_id)
        return TestCasePage([_case(row[1:]) for row in rows if row[-1] is not None], rows[0][0])

    def find_versions(self, pins: Collection[Pin]) -> dict[Pin, TestCase]:
        keys = [pin for pin in pins if storable(pin[0]) and 1 <= pin[1] < _HUGE]
        cases = [_case(row) for row in self._look_up(_PINNED, keys)]
        return {(case.id, case.version): case for case in cases}

    def _look_up(self, query: str, keys: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The rows for any number of keys, by several queries if need be."""
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            row = f"({', '.join('?' * len(some[0]))})"
            statement = query.format(keys=", ".join([row] * len(some)))
            with self._validation_context() as connection:
                yield from connection.execute(statement, [*chain(*some)]).fetchall()


def _get(connection: Connection, case_id: str) -> tuple[int, int, TestCase]:
    """The number of a test case, that of its tag set, and the test case."""
    row = connection.execute(_GET, (case_id,)).fetchone() if storable(case_id) else None
    if row is None:
        raise NotInStore("test case", case_id)
    number, tag_set, *fields = row
    return number, tag_set, _case(fields)


def _case(row: Sequence[Any]) -> TestCase:
    fields = list(row)
    fields[4] = _TAGS.decode(fields[4])
    return TestCase(*fields)


def _add_version(connection: Connection, number: int, case: TestCase) -> None:
    tags = msgspec.json.encode(case.tags).decode()
    texts = (case.input, case.expected_output, case.description, tags, case.modified_at)
    connection.execute(_ADD_VERSION, (number, case.version, *texts))


def _join_tag_set(connection: Connection, case: TestCase) -> int:
    """Count the test case in the set of its tags, which may be new; returns the set's number."""
    tags = folded(case.tags)
    change = "UPDATE tag_set SET total = total + 1 WHERE folded = ? RETURNING number"
    found = connection.execute(change, (tags,)).fetchall()
    if not found:
        made = "INSERT INTO tag_set (folded, total) VALUES (?, 1) RETURNING number"
        found = connection.execute(made, (tags,)).fetchall()
    return int(found[0][0])


def _leave_tag_set(connection: Connection, number: int) -> None:
    """Count one test case less in a set; an empty set is deleted, so that no search reads it."""
    connection.execute("UPDATE tag_set SET total = total - 1 WHERE number = ?", (number,))
    connection.execute("DELETE FROM tag_set WHERE number = ? AND total = 0", (number,))
