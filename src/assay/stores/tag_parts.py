"""An index of trigrams, by which SQLite finds tags without reading all of them.

A part is three consecutive characters, written in hexadecimal digits, so that FTS5 takes any of
them for one word. A part begins at each character; those at the end of a tag are shorter. So every
character and every pair of characters is the prefix of a part.
"""

from __future__ import annotations

from assay.model.test_case import BETWEEN

#: How many digits a character and a part have.
_CHARACTER = 8
_PART = 3 * _CHARACTER
#: How many parts a query has at most: few sets match them all, and those are checked anyway.
_MAX_PARTS = 8

# The sets are found once more to be looked up: to materialize them would take longer.
_BY_PART = """
    n AS (
        SELECT sum(t.total) AS total FROM tag_part p CROSS JOIN tag_set t INDEXED BY tag_set_total
        WHERE p.tag_part MATCH ? AND t.number = p.rowid
    ),
    sets AS NOT MATERIALIZED (
        SELECT p.rowid AS number FROM unfilled CROSS JOIN tag_part p WHERE p.tag_part MATCH ?
    )
"""
# To check their tags once more would take longer, but sets that are only counted are not kept.
_BY_PARTS = """
    found AS NOT MATERIALIZED (
        SELECT t.number, t.total FROM tag_part p CROSS JOIN tag_set t
        WHERE p.tag_part MATCH ? AND t.number = p.rowid AND instr(t.folded, ?) > 0
    ),
    sets AS MATERIALIZED (SELECT t.number, t.total FROM unfilled CROSS JOIN found t),
    n AS (
        SELECT CASE WHEN EXISTS (SELECT 1 FROM unfilled)
        THEN (SELECT sum(total) FROM sets) ELSE (SELECT sum(total) FROM found) END AS total
    )
"""
_ANY = """
    n AS (SELECT sum(total) AS total FROM tag_set WHERE length(folded) > 0),
    sets AS NOT MATERIALIZED (
        SELECT number FROM unfilled CROSS JOIN tag_set WHERE length(folded) > 0
    )
"""


def tag_parts(folded: bytes) -> str:
    """The parts of a set of tags, as they are indexed."""
    parts = set[str]()
    for tag in folded.split(BETWEEN):
        digits = _digits(tag)
        parts.update([digits[at : at + _PART] for at in range(0, len(digits), _CHARACTER)])
    return " ".join(parts)


def sets_matching(needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
    """The CTEs that find sets with the needle in a tag; see `TagSearch`."""
    digits = _digits(needle)
    if not digits:
        return _ANY, ()
    if len(digits) <= _PART:
        part = digits if len(digits) == _PART else f"{digits}*"
        return _BY_PART, (part, part)
    starts = [*range(0, len(digits) - _PART, _PART)][: _MAX_PARTS - 1]
    parts = [digits[at : at + _PART] for at in (*starts, len(digits) - _PART)]
    return _BY_PARTS, (" AND ".join(parts), needle)


def _digits(text: bytes) -> str:
    return text.decode().encode("utf-32-be").hex()
