"""Edit distance: how many characters must change to turn one text into another."""

from __future__ import annotations

from assay.deadlines import check_deadline

#: Only this many leading characters are compared; that takes half a second.
MAX_COMPARED = 50_000
#: The deadline is checked once per this many characters.
_CHARACTERS_AT_ONCE = 64


def similarity(a: str, b: str) -> float:
    """From 0 to 1: the share of the longer text that does not have to change."""
    a, b = a[:MAX_COMPARED], b[:MAX_COMPARED]
    longer = max(len(a), len(b))
    return 1 - edit_distance(a, b) / longer if longer else 1.0


def edit_distance(a: str, b: str) -> int:
    """The least number of characters to insert, delete or replace (Levenshtein).

    Bit-parallel (Myers 1999, Hyyrö 2003): two integers hold a column of the usual table, as the
    positions where it rises and falls. It takes one step per character of `b`, and the memory of
    one column.
    """
    if a == b:
        return 0
    if not a or not b:
        return len(a) or len(b)
    positions: dict[str, int] = {}
    for index, letter in enumerate(a):
        if not index % _CHARACTERS_AT_ONCE:
            check_deadline()
        positions[letter] = positions.get(letter, 0) | 1 << index
    column = (1 << len(a)) - 1
    last = 1 << len(a) - 1
    rises, falls, distance = column, 0, len(a)
    for index, letter in enumerate(b):
        if not index % _CHARACTERS_AT_ONCE:
            check_deadline()
        equal = positions.get(letter, 0)
        diagonal = ((equal & rises) + rises ^ rises) | equal
        right_rises = falls | column & ~(diagonal | rises)
        right_falls = rises & diagonal
        if right_rises & last:
            distance += 1
        elif right_falls & last:
            distance -= 1
        right_rises = right_rises << 1 | 1
        rises = column & (right_falls << 1 | ~(equal | falls | right_rises))
        falls = column & right_rises & (equal | falls)
    return distance
