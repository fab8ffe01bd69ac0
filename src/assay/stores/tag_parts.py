"""The parts of tags, by which SQLite finds a tag without a look at all of them.

A part is three characters that follow each other, written in digits, so that FTS5 takes them for
a word whatever they are. One begins at each character of a tag; at its end they are shorter. They
stand in three rows: in each the next part begins where the one before ends. So any text in a tag
is a phrase of one of the rows, whose last word may be the beginning of a part. The index tells
which sets have it, without a look at their tags.
"""

from __future__ import annotations

from assay.model.test_case import BETWEEN

_CHARACTER = 8
_PART = 3 * _CHARACTER
#: Ends a row: no part, so no phrase goes on in the next row.
_END = "x"
#: A phrase of more parts takes longer than to look for the text in the tags that have its parts.
_LONG = 5
#: So many parts are asked for then: that leaves few sets that do not have the text.
_ASKED = 8

# Searching the index twice costs less than keeping what was found.
_BY_PHRASE = """
    found AS NOT MATERIALIZED (
        SELECT coalesce(t.total, 1) AS total
        FROM tag_part p LEFT JOIN tag_set t INDEXED BY tag_set_shared
        ON t.number = p.rowid AND t.total > 1 WHERE p.tag_part MATCH ?
    ),
    sets AS NOT MATERIALIZED (SELECT rowid AS number FROM tag_part WHERE tag_part MATCH ?)
"""
# Keeping what was found costs less than looking at the tags twice.
_BY_PARTS = """
    found AS MATERIALIZED (
        SELECT t.number, t.total FROM tag_part p CROSS JOIN tag_set t
        WHERE p.tag_part MATCH ? AND t.number = p.rowid AND instr(t.folded, ?) > 0
    ),
    sets AS NOT MATERIALIZED (SELECT number FROM found)
"""
_ANY = """
    found AS NOT MATERIALIZED (SELECT number, total FROM tag_set WHERE length(folded) > 0),
    sets AS NOT MATERIALIZED (SELECT number FROM found)
"""


def tag_parts(folded: bytes) -> str:
    """What the index has of a set of tags."""
    words = []
    for tag in folded.split(BETWEEN):
        digits = _digits(tag)
        for begin in range(0, _PART, _CHARACTER):
            words += [*_parts(digits[begin:]), _END]
    return " ".join(words)


def having(needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
    """What finds the sets that have the needle in a tag, as TagSearch has it."""
    digits = _digits(needle)
    if not digits:
        return _ANY, ()
    parts = _parts(digits)
    if len(parts) <= _LONG:
        phrase = " + ".join(parts) + ("*" if len(digits) % _PART else "")
        return _BY_PHRASE, (phrase, phrase)
    asked = [*parts[:-1][: _ASKED - 1], digits[-_PART:]]
    return _BY_PARTS, (" AND ".join(asked), needle)


def _parts(digits: str) -> list[str]:
    return [digits[at : at + _PART] for at in range(0, len(digits), _PART)]


def _digits(text: bytes) -> str:
    return text.decode().encode("utf-32-be").hex()
