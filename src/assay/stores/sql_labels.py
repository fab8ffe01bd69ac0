"""People's labels in a database, in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from assay.model.label import AnswerLabel, LabelKey
from assay.stores.sql_test_cases import Connection

_KEY = LabelKey.__struct_fields__
_FIELDS = AnswerLabel.__struct_fields__
_VALUES = [name for name in _FIELDS if name not in _KEY]
_PUT = (
    f"INSERT INTO label ({', '.join(_FIELDS)}) VALUES ({', '.join('?' * len(_FIELDS))})"
    f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _VALUES)
)
_REMOVE = f"DELETE FROM label WHERE {' AND '.join(f'{name} = ?' for name in _KEY)} RETURNING run_id"
_OF_RUN = f"SELECT {', '.join(_FIELDS)} FROM label WHERE run_id = ? ORDER BY {', '.join(_KEY)}"


class SqlLabels:
    """The LabelStore of a database; `act` performs a repeatable action, and waits for it."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Connection]],
        act: Callable[[Callable[[Connection], Any]], Any],
    ) -> None:
        self._validation_context, self._act = reading, act

    def put(self, *labels: AnswerLabel) -> None:
        def act(connection: Connection) -> None:
            for label in labels:
                connection.execute(_PUT, _row(label))

        self._act(act)

    def remove(self, key: LabelKey) -> bool:
        values = [getattr(key, name) for name in _KEY]
        return bool(self._act(lambda connection: connection.execute(_REMOVE, values).fetchall()))

    def of_run(self, run_id: str) -> list[AnswerLabel]:
        with self._validation_context() as connection:
            rows = connection.execute(_OF_RUN, (run_id,)).fetchall()
        fields = (dict(zip(_FIELDS, row, strict=True)) for row in rows)
        return [AnswerLabel(**label | {"passed": bool(label["passed"])}) for label in fields]


def _row(label: AnswerLabel) -> list[str | int]:
    """The fields, with numbers for booleans, as both databases have them."""
    values = (getattr(label, name) for name in _FIELDS)
    return [int(value) if isinstance(value, bool) else value for value in values]
