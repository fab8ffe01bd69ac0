"""Text of messages and reports: counts with their nouns, percentages, escaped characters."""

from __future__ import annotations

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


def printable(text: str) -> str:
    """Escape what would move the cursor, ring a bell or reverse the text of a terminal."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )
