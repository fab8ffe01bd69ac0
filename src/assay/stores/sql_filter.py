"""Compiles a CaseFilter and a sort order to SQL, with values as parameters only.

A condition is never NULL, so that its negation holds exactly where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from assay.model.case_filter import CHOICES, FLAGS, NUMBERS, CaseFilter, Term, matches_glob
from assay.model.case_rows import CaseKind, Sort, Sortable
from assay.model.names import normal_name
from assay.model.test_case import storable

Condition = tuple[str, list[Any]]

#: The columns of fields and sort orders.
COLUMNS: dict[Sortable, str] = {
    "position": "c.position",
    "id": "c.case_id",
    "suite": "c.suite",
    "outcome": "c.outcome",
    "score": "c.score",
    "cost": "c.cost_usd",
    "latency": "c.latency_ms",
    "flaky": "c.flaky",
    "changed": "c.changed",
}
_NULLABLE = ("score", "cost", "changed")
_ALWAYS, _NEVER = "1 = 1", "1 = 0"


class Dialect(Protocol):
    """The conditions that databases write differently."""

    #: The column `folded` contains the value.
    contains: str
    #: A column is in a JSON array of numbers.
    among: str
    #: The name of a case matches a pattern.
    glob: str

    def glob_pattern(self, pattern: str) -> str:
        """The pattern for `glob`, in which `*` stands for any characters."""
        ...


def compile_filter(
    where: CaseFilter,
    kinds: Mapping[int, CaseKind],
    dialect: Dialect,
    positions: Callable[[str], str],
) -> Condition:
    """The condition on a row `c` of `case_row`, and its values.

    `positions` finds the cases with a text: a JSON array of their positions.
    """
    sql, values = [], []
    for term in where.terms:
        if term.field == "text":
            found = dialect.among.format("c.position"), [positions(str(term.values[0]))]
        else:
            found = _condition(term, kinds, dialect)
        condition, given = found
        sql.append(f"NOT ({condition})" if term.negated else f"({condition})")
        values += given
    return _joined(sql, "AND") if sql else _ALWAYS, values


def _condition(term: Term, kinds: Mapping[int, CaseKind], dialect: Dialect) -> Condition:
    field = term.field
    if field in FLAGS:
        return f"c.{field} = 1", []
    if field in NUMBERS:
        column = COLUMNS[field]  # type: ignore[index]
        return f"{column} IS NOT NULL AND {column} {term.op} ?", [float(term.values[0])]
    if field in CHOICES:
        return _choice(term)
    if field == "id":
        return _names([normal_name(str(value)) for value in term.values], dialect)
    return _kinds(replace(term, negated=False), kinds, dialect)


def _choice(term: Term) -> Condition:
    given = [c for c in CHOICES[term.field] if any(matches_glob(str(v), c) for v in term.values)]
    if not given:
        return _NEVER, []
    column = COLUMNS[term.field]  # type: ignore[index]
    return f"coalesce({column}, '') IN ({', '.join('?' * len(given))})", given


def _joined(conditions: Sequence[str], word: str) -> str:
    """The conditions as a balanced tree: SQLite refuses one that is deeper than 1,000."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return f"({_joined(conditions[:half], word)} {word} {_joined(conditions[half:], word)})"


def _names(patterns: Sequence[str], dialect: Dialect) -> Condition:
    """An id with one of these names; names without `*` are looked up all at once."""
    known = [pattern for pattern in dict.fromkeys(patterns) if storable(pattern)]
    exact = [pattern for pattern in known if "*" not in pattern]
    globs = [dialect.glob_pattern(pattern) for pattern in known if "*" in pattern]
    sql = [dialect.glob] * len(globs)
    if exact:
        sql.append(f"coalesce(c.normal_id, c.case_id) IN ({', '.join('?' * len(exact))})")
    return _joined(sql, "OR") if sql else _NEVER, [*globs, *exact]


def _kinds(term: Term, kinds: Mapping[int, CaseKind], dialect: Dialect) -> Condition:
    """A term about names that many cases share: compared once for each kind of case."""
    found = [number for number, kind in kinds.items() if term.matches(kind.filter_row())]
    if len(found) in (0, len(kinds)):
        return _ALWAYS if found else _NEVER, []
    return dialect.among.format("c.kind"), [msgspec.json.encode(found).decode()]


def order_of(sort: Sort) -> str:
    """What to sort by; rows without a value are last, equal ones in the order of the run."""
    column = COLUMNS[sort.by]
    direction = " DESC" if sort.descending else ""
    if sort.by == "position":
        return f"c.position{direction}"
    missing = f"({column} IS NULL), " if sort.by in _NULLABLE else ""
    return f"{missing}{column}{direction}, c.position"


def after(sort: Sort, cursor: tuple[Any, int] | None) -> Condition:
    """The condition for rows behind the one with this value and position."""
    if cursor is None:
        return _ALWAYS, []
    value, position = cursor
    column, beyond = COLUMNS[sort.by], "<" if sort.descending else ">"
    if sort.by == "position":
        return f"c.position {beyond} ?", [position]
    if value is None:
        return f"{column} IS NULL AND c.position > ?", [position]
    missing = f"{column} IS NULL OR " if sort.by in _NULLABLE else ""
    later = f"{column} {beyond} ? OR ({column} = ? AND c.position > ?)"
    return f"({missing}{later})", [value, value, position]
