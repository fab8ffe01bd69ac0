"""An index of trigrams, by which SQLite finds tags without reading all of them.

A part is three consecutive characters, written in hexadecimal digits, so that FTS5 takes any of
them for one word. A part begins at each character of a tag; those at its end are shorter. They are
indexed in three rows, from the first, the second and the third character on: in a row, each part
begins where the one before it ends. So any text within a tag is a phrase of one row, and its last
word may be the prefix of a part.
"""

from __future__ import annotations

from assay.model.test_case import BETWEEN

#: How many digits a character and a part have.
_CHARACTER = 8
_PART = 3 * _CHARACTER
#: Ends a row, so that no phrase continues in the next one.
_END_OF_ROW = "x"
#: For a longer phrase it is cheaper to check the tags of all sets that have its parts.
_MAX_PHRASE = 5
#: How many parts a query for those sets has at most: few sets match them all by chance.
_MAX_PARTS = 8

# Searching the index twice is cheaper than materializing the matches. A set that is missing from
# the partial index has a total of 1.
_BY_PHRASE = """
    found AS NOT MATERIALIZED (
        SELECT coalesce(t.total, 1) AS total
        FROM tag_part p LEFT JOIN tag_set t INDEXED BY tag_set_shared
        ON t.number = p.rowid AND t.total > 1 WHERE p.tag_part MATCH ?
    ),
    sets AS NOT MATERIALIZED (SELECT rowid AS number FROM tag_part WHERE tag_part MATCH ?)
"""
# Materializing the matches is cheaper than checking the tags twice.
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
    """The parts of a set of tags, as they are indexed."""
    words = []
    for tag in folded.split(BETWEEN):
        digits = _digits(tag)
        for start in range(0, _PART, _CHARACTER):
            words += [*_parts(digits[start:]), _END_OF_ROW]
    return " ".join(words)


def sets_matching(needle: bytes) -> tuple[str, tuple[str | bytes, ...]]:
    """The CTEs that find sets with the needle in a tag; see `TagSearch`."""
    digits = _digits(needle)
    if not digits:
        return _ANY, ()
    parts = _parts(digits)
    if len(parts) <= _MAX_PHRASE:
        phrase = " + ".join(parts) + ("*" if len(digits) % _PART else "")
        return _BY_PHRASE, (phrase, phrase)
    whole = [*parts[:-1][: _MAX_PARTS - 1], digits[-_PART:]]
    return _BY_PARTS, (" AND ".join(whole), needle)


def _parts(digits: str) -> list[str]:
    return [digits[at : at + _PART] for at in range(0, len(digits), _PART)]


def _digits(text: bytes) -> str:
    return text.decode().encode("utf-32-be").hex()
