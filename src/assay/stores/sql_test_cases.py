"""Test cases in a database, in the SQL that SQLite and PostgreSQL share.

A page costs as much as it shows: how many test cases there are is kept, not counted. A tag is
searched once for all test cases that have the same tags.
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
    first_version,
    folded,
    next_version,
    refuse_unfit,
    sought,
    storable,
    utc_text,
)

#: More than any store has; a greater number does not fit a column.
_BEYOND = 2**62

#: So many keys are looked up by one query.
_KEYS = 500
#: Many have a tag when at least one of so many test cases has it.
_OFTEN = 4
#: How many more of the oldest are tried than would do if the tag were spread evenly.
_SPARE = 200

_TEXTS = "v.input, v.expected_output, v.description, v.tags"
_FIELDS = f"c.id, {_TEXTS}, c.created_at, v.modified_at, v.version"
_NEWEST = "JOIN test_case_version v ON v.number = c.number AND v.version = c.version"
_GET = f"SELECT c.number, c.tag_set, {_FIELDS} FROM test_case c {_NEWEST}"
_GET += " WHERE c.id = ? AND c.deleted_at IS NULL"
# The versions have the numbers from 1 on; a row without one tells how many there are.
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
# The total comes first and has a row even when the page has none.
_PAGE = f"""
    WITH page AS (SELECT {_SHOWN} FROM test_case c WHERE c.deleted_at IS NULL {_IN_ORDER})
    SELECT n.total, {_FIELDS}
    FROM test_case_count n LEFT JOIN (page c {_NEWEST}) ON TRUE ORDER BY c.number
"""
# When many test cases have the tag, the oldest are tried first: usually they fill the page. When
# they do not, or when few have the tag, all that have it are looked up by their sets of tags, and
# sorted. `often` has no row when few have it; then `met` is empty without a look at anything.
_TAGGED = f"""
    WITH {{having}},
    n AS (SELECT coalesce(sum(total), 0) AS total FROM found),
    often AS (
        SELECT (SELECT min(number) FROM test_case WHERE deleted_at IS NULL) AS beginning
        FROM n, test_case_count a WHERE n.total * {_OFTEN} > a.total
    ),
    met AS MATERIALIZED (
        SELECT c.number FROM test_case c CROSS JOIN tag_set t
        WHERE c.number >= (SELECT beginning FROM often) AND c.deleted_at IS NULL
        AND c.number < (SELECT beginning + ? FROM often)
        AND t.number = c.tag_set AND length(folded) > 0 AND {{contains}} {_IN_ORDER}
    ),
    filled AS (SELECT 1 WHERE (SELECT count(*) FROM met) = ?),
    page AS (
        SELECT number FROM met WHERE EXISTS (SELECT 1 FROM filled)
        UNION ALL
        SELECT number FROM (
            SELECT c.number FROM sets t CROSS JOIN test_case c
            WHERE NOT EXISTS (SELECT 1 FROM filled) AND c.tag_set = t.number {_IN_ORDER}
        ) looked_up
    )
    SELECT n.total, {_FIELDS}
    FROM n LEFT JOIN (page p JOIN test_case c ON c.number = p.number {_NEWEST}) ON TRUE
    ORDER BY c.number
"""
_ADD = "INSERT INTO test_case (id, version, created_at, tag_set) VALUES (?, ?, ?, ?)"
_ADD += " RETURNING number"
_ADD_VERSION = "INSERT INTO test_case_version VALUES (?, ?, ?, ?, ?, ?, ?)"
_COUNT = "UPDATE test_case_count SET total = total + ?"
_TAGS = msgspec.json.Decoder(tuple[str, ...])


class Answer(Protocol):
    """What a statement gave."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection that takes statements with `?` for values."""

    def execute(self, statement: str, values: Sequence[Any], /) -> Answer: ...


class TagSearch(Protocol):
    """How a database finds tags."""

    #: The condition that a value is somewhere in the column `folded`.
    contains: str

    def having(self, needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
        """What stands behind WITH to find the sets that have a tag with the needle; its values.

        `found` has the `total` of each set, `sets` its `number`.
        """
        ...


#: Hands an action to the writer; what it returns is there once it is on disk. What it raises
#: refuses it alone, and then it must not have changed anything.
Writing = Callable[[Callable[[Connection], Any]], Future[Any]]


class SqlTestCases:
    """A TestCaseStore in tables."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Connection]],
        writing: Writing,
        searching: TagSearch,
    ) -> None:
        self._reading, self._writing, self._searching = reading, writing, searching

    def add(self, new: NewTestCase, now: datetime) -> Future[TestCase]:
        refuse_unfit(new)
        case = first_version(new, str(uuid4()) if new.id is None else new.id, now)

        def act(connection: Connection) -> TestCase:
            known = connection.execute("SELECT 1 FROM test_case WHERE id = ?", (case.id,))
            if known.fetchone() is not None:
                raise DuplicateId(case.id)
            values = (case.id, case.version, case.created_at, _join(connection, case))
            ((number,),) = connection.execute(_ADD, values).fetchall()
            _add_version(connection, number, case)
            connection.execute(_COUNT, (1,))
            return case

        return self._writing(act)

    def get(self, case_id: str) -> TestCase:
        with self._reading() as connection:
            return _get(connection, case_id)[2]

    def find(self, ids: Collection[str]) -> dict[str, TestCase | None]:
        keys = [(case_id,) for case_id in ids if storable(case_id)]
        found = [(live, _case(row)) for live, *row in self._looked_up(_TAKEN, keys)]
        return {case.id: case if live else None for live, case in found}

    def page(self, limit: int, skip: int = 0, tag: str | None = None) -> TestCasePage:
        bounds = (min(limit, _BEYOND), min(skip, _BEYOND))
        needle = None if tag is None else sought(tag)
        if tag is not None and needle is None:
            return TestCasePage([], 0)
        with self._reading() as connection:
            if needle is None:
                rows = connection.execute(_PAGE, bounds).fetchall()
            else:
                having, sought_for = self._searching.having(needle)
                query = _TAGGED.format(having=having, contains=self._searching.contains)
                tried = min(_OFTEN * sum(bounds) + _SPARE, _BEYOND)
                values = (*sought_for, tried, needle, *bounds, bounds[0], *bounds)
                rows = connection.execute(query, values).fetchall()
        return TestCasePage([_case(row[1:]) for row in rows if row[1] is not None], int(rows[0][0]))

    def change(
        self, case_id: str, changes: TestCaseChanges, now: datetime, known: str | None = None
    ) -> Future[TestCase]:
        refuse_unfit(changes)

        def act(connection: Connection) -> TestCase:
            number, tags, newest = _get(connection, case_id)
            case = next_version(newest, changes, now, known)
            _add_version(connection, number, case)
            joined = tags if folded(newest.tags) == folded(case.tags) else _join(connection, case)
            change = "UPDATE test_case SET version = ?, tag_set = ? WHERE number = ?"
            connection.execute(change, (case.version, joined, number))
            if joined != tags:
                _leave(connection, tags)
            return case

        return self._writing(act)

    def remove(self, case_id: str, now: datetime) -> Future[None]:
        def act(connection: Connection) -> None:
            number, tags, _ = _get(connection, case_id)
            change = "UPDATE test_case SET deleted_at = ?, tag_set = NULL WHERE number = ?"
            connection.execute(change, (utc_text(now), number))
            _leave(connection, tags)
            connection.execute(_COUNT, (-1,))

        return self._writing(act)

    def versions(self, case_id: str, limit: int, skip: int = 0) -> TestCasePage:
        if not storable(case_id):
            raise NotInStore("test case", case_id)
        values = (min(skip, _BEYOND), min(skip + limit, _BEYOND), case_id)
        with self._reading() as connection:
            rows = connection.execute(_VERSIONS, values).fetchall()
        if not rows:
            raise NotInStore("test case", case_id)
        return TestCasePage([_case(row[1:]) for row in rows if row[-1] is not None], rows[0][0])

    def find_versions(self, pins: Collection[Pin]) -> dict[Pin, TestCase]:
        fit = [pin for pin in pins if storable(pin[0]) and 1 <= pin[1] < _BEYOND]
        cases = [_case(row) for row in self._looked_up(_PINNED, fit)]
        return {(case.id, case.version): case for case in cases}

    def _looked_up(self, query: str, keys: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The rows for many keys, with a query for some hundreds at a time."""
        for begin in range(0, len(keys), _KEYS):
            some = keys[begin : begin + _KEYS]
            row = f"({', '.join('?' * len(some[0]))})"
            asked = query.format(keys=", ".join([row] * len(some)))
            with self._reading() as connection:
                yield from connection.execute(asked, [*chain(*some)]).fetchall()


def _get(connection: Connection, case_id: str) -> tuple[int, int, TestCase]:
    """A test case with its number and that of its tags."""
    row = connection.execute(_GET, (case_id,)).fetchone() if storable(case_id) else None
    if row is None:
        raise NotInStore("test case", case_id)
    number, tags, *fields = row
    return number, tags, _case(fields)


def _case(row: Sequence[Any]) -> TestCase:
    fields = list(row)
    fields[4] = _TAGS.decode(fields[4])
    return TestCase(*fields)


def _add_version(connection: Connection, number: int, case: TestCase) -> None:
    tags = msgspec.json.encode(case.tags).decode()
    texts = (case.input, case.expected_output, case.description, tags, case.modified_at)
    connection.execute(_ADD_VERSION, (number, case.version, *texts))


def _join(connection: Connection, case: TestCase) -> int:
    """The number of the set of the test case's tags, which has one more member now."""
    tags = folded(case.tags)
    change = "UPDATE tag_set SET total = total + 1 WHERE folded = ? RETURNING number"
    found = connection.execute(change, (tags,)).fetchall()
    if not found:
        made = "INSERT INTO tag_set (folded, total) VALUES (?, 1) RETURNING number"
        found = connection.execute(made, (tags,)).fetchall()
    return int(found[0][0])


def _leave(connection: Connection, tags: int) -> None:
    """The set has one member less; an empty one would only be in the way."""
    connection.execute("UPDATE tag_set SET total = total - 1 WHERE number = ?", (tags,))
    connection.execute("DELETE FROM tag_set WHERE number = ? AND total = 0", (tags,))
