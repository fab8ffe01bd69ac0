"""Text of messages and reports: counts, percentages, money, durations, and what fits a width."""

from __future__ import annotations

import unicodedata
from typing import Literal


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 case`, `1,000 cases`; `plural` is for nouns that do not just add an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """`83.3 %`; never rounded to 100 % or 0 %, which mean all and none."""
    text = f"{100 * share:.1f}"
    if text == "100.0" and share < 1:
        text = "99.9"
    elif text == "0.0" and share > 0:
        text = "0.1"
    return text.removesuffix(".0") + " %"


def exact_percent(share: float) -> str:
    """A share that the user gave, with all its digits."""
    return f"{exact_points(share)} %"


def points(difference: float, sign: Literal["+", "-"] = "-") -> str:
    """A difference of two shares in points: `1.5`; with the sign `+`: `+1.5`."""
    return f"{100 * difference:{sign}.1f}"


def exact_points(difference: float) -> str:
    """A difference that the user gave, with all its digits."""
    return f"{100 * difference:.12g}"


def money(usd: float) -> str:
    """`$0.0123`, `$12.34`."""
    if 0 < usd < 0.0001:
        return "under $0.0001"
    return f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.4f}"


def duration(milliseconds: float) -> str:
    """`850 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def printable(text: str) -> str:
    """Escape what would move the cursor, ring a bell or reverse the text of a terminal."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )


def cut(text: str, width: int) -> str:
    """The text truncated to `width` columns, with `...` at its end if it was."""
    if len(text) <= width and text.isascii():
        return text
    if columns(text) <= width:
        return text
    return text[: fitting(text, width - 3)] + "..."[: max(width, 0)]


def cut_middle(text: str, width: int) -> str:
    """The text truncated to `width` columns, with `...` in its middle if it was."""
    if columns(text) <= width:
        return text
    if width < 8:
        return cut(text, width)
    end = text[len(text) - fitting(text[::-1], (width - 3) // 2) :]
    return text[: fitting(text, width - 3 - columns(end))] + "..." + end


def fitting(text: str, room: int) -> int:
    """How many characters from the start of the text fit into `room` columns."""
    kept = 0
    for char in text:
        room -= columns(char)
        if room < 0:
            break
        kept += 1
    return kept


def columns(text: str) -> int:
    """How many columns the text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
