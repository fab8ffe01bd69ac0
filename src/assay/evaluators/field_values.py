"""Comparing numbers within a tolerance, and dates in different formats."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from assay.model.values import quoted

#: A longer text is not a date.
_MAX_LENGTH = 64
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED_MONTH = re.compile(r"([0-9]{1,2})[- ]([A-Za-z]{3})[- ]([0-9]{4})\Z")
_AMBIGUOUS = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2[0-9]{4}\Z")


class Incomparable(Exception):
    """The values cannot be compared, through no fault of the answer."""


def near(wanted: Any, found: Any, tolerance: float, relative: bool) -> bool:
    """Is the difference within the tolerance, absolute or as a share of the wanted number?"""
    if not _is_number(wanted):
        raise Incomparable(f"the expected value {quoted(wanted)} is not a number")
    if not _is_number(found):
        return False
    # Decimals compare the numbers as written, without float rounding.
    exact, other, allowed = (Decimal(str(value)) for value in (wanted, found, tolerance))
    return abs(exact - other) <= (allowed * abs(exact) if relative else allowed)


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def same_date(wanted: Any, found: Any, formats: Sequence[str]) -> bool:
    """Do two texts mean the same day? The expected one may also be in a default format."""
    day = read_date(wanted, formats) or read_date(wanted, ())
    if day is None:
        raise Incomparable(f"the expected value {quoted(wanted)} is not a date")
    return read_date(found, formats) == day


def read_date(text: Any, formats: Sequence[str]) -> date | None:
    """The day, parsed by the first format that fits; the default is ISO 8601 or `5 Jan 2025`."""
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        return None
    text = text.strip()
    if formats:
        return next((day for form in formats if (day := _by_format(text, form))), None)
    parts = _AMBIGUOUS.match(text)
    if parts and int(parts[1]) != int(parts[3]) and max(int(parts[1]), int(parts[3])) <= 12:
        raise Incomparable(f"{text!r} may be two different days; say which with 'formats'")
    try:
        if parts := _NAMED_MONTH.match(text):
            month = _MONTHS.index(parts[2].lower()) + 1
            return date(int(parts[3]), month, int(parts[1]))
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _by_format(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, form).date()
    except (ValueError, re.error):
        return None
