"""The parts of tags, by which SQLite finds a tag without a look at all of them.

A part is three characters that follow each other, written in digits, so that FTS5 takes them for
a word whatever they are. One begins at each character: at the end of a tag it is shorter. So
every single character and every pair is the beginning of a part.
"""

from __future__ import annotations

from assay.model.test_case import BETWEEN

_CHARACTER = 8
_PART = 3 * _CHARACTER
#: So many parts are asked for at most: that leaves few sets, and those are looked at anyway.
_MOST = 8

# Searching the index twice costs less than keeping what was found.
_BY_PART = """
    found AS NOT MATERIALIZED (
        SELECT t.total FROM tag_part p CROSS JOIN tag_set t INDEXED BY tag_set_total
        WHERE p.tag_part MATCH ? AND t.number = p.rowid
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
    parts = set[str]()
    for tag in folded.split(BETWEEN):
        digits = _digits(tag)
        parts.update([digits[at : at + _PART] for at in range(0, len(digits), _CHARACTER)])
    return " ".join(parts)


def having(needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
    """What finds the sets that have the needle in a tag, as TagSearch has it."""
    digits = _digits(needle)
    if not digits:
        return _ANY, ()
    if len(digits) <= _PART:
        part = digits if len(digits) == _PART else f"{digits}*"
        return _BY_PART, (part, part)
    begins = [*range(0, len(digits) - _PART, _PART)][: _MOST - 1]
    parts = [digits[at : at + _PART] for at in (*begins, len(digits) - _PART)]
    return _BY_PARTS, (" AND ".join(parts), needle)


def _digits(text: bytes) -> str:
    return text.decode().encode("utf-32-be").hex()
