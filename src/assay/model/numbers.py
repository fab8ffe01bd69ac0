"""Numbers as messages show them."""

from __future__ import annotations

import math
from decimal import Decimal

#: Decimal places of doubles are exhausted here.
_MAX_DIGITS = 17
#: Units that have no plural.
_ABBREVIATIONS = ("ms", "USD")


def rounded(value: float, unlike: float | None = None, digits: int = 4) -> str:
    """The number with `digits` significant digits: `671.9`, `12,346`, `0.0512`.

    It gets more digits where it would look like `unlike`, the limit that it misses. The digits
    before the decimal point are never rounded away.
    """
    text = _with_digits(value, digits)
    if unlike is None or value == unlike or digits >= _MAX_DIGITS:
        return text
    return text if text != _with_digits(unlike, digits) else rounded(value, unlike, digits + 1)


def amount(number: str, unit: str) -> str:
    """`1 call`, `1,200 calls`, `671.9 ms`; the unit is given in the singular."""
    return f"{number} {unit}" if number == "1" or unit in _ABBREVIATIONS else f"{number} {unit}s"


def _with_digits(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) < 1:
        return f"{Decimal(f'{value:.{digits}g}'):f}"
    decimals = max(digits - len(str(int(abs(value)))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
