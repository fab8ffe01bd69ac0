"""The difference between two texts, word by word."""

from __future__ import annotations

import re
from difflib import Match, SequenceMatcher
from typing import Literal

from assay.redaction import cut

#: The longest text that is compared; of a longer one the middle is left out.
MAX_CHARACTERS = 20_000
#: More pairs of words than this are not aligned: that would take too long.
_MAX_PAIRS = 2_000_000
#: After a search among this many pairs in all, what is left is taken as different.
_MAX_SEARCHED = 10_000_000
#: Texts with a smaller common share than this have little in common.
_LITTLE = 0.3
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")

Sign = Literal["=", "-", "+"]


class _Matcher(SequenceMatcher[str]):
    """Gives up in time: repeated words match so often that the work is cubic."""

    _searched = 0

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        if ahi is not None and bhi is not None:  # as `get_opcodes` calls it
            self._searched += (ahi - alo) * (bhi - blo)
        if self._searched > _MAX_SEARCHED:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def marked(before: str, now: str) -> list[tuple[Sign, str]]:
    """The difference, or nothing if the texts share no word: marking all would help nobody."""
    parts = word_diff(before, now)
    return parts if any(sign == "=" for sign, _ in parts) else []


def word_diff(before: str, now: str) -> list[tuple[Sign, str]]:
    """Parts of both texts in order: in both (`=`), only in the first (`-`) or the second (`+`).

    Texts with little in common are one part each: a mixture of them could not be read.
    """
    old, new = (_WORDS.findall(cut(text, MAX_CHARACTERS, "both")) for text in (before, now))
    whole: list[tuple[Sign, str]] = [("-", "".join(old)), ("+", "".join(new))]
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if (len(old) - start - end) * (len(new) - start - end) > _MAX_PAIRS:
        return whole
    matcher = _Matcher(None, old, new, autojunk=False)
    parts: list[tuple[Sign, str]] = []
    removed = added = ""
    for tag, i, j, k, m in matcher.get_opcodes():
        same = "".join(old[i:j])
        if tag != "equal":
            removed, added = removed + same, added + "".join(new[k:m])
        elif (removed or added) and j < len(old) and not _WORD.search(same):
            removed, added = removed + same, added + same  # only space or a comma in between
        else:
            parts += [("-", removed), ("+", added), ("=", same)]
            removed = added = ""
    parts += [("-", removed), ("+", added)]
    common = sum(len(text) for sign, text in parts if sign == "=")
    if common < _LITTLE * max(len(before), len(now)):
        parts = whole
    return [part for part in parts if part[1]]
