"""Comparing numbers within a tolerance, and dates in different formats."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from assay.model.values import quoted

#: A longer text is neither a date nor a number.
_MAX_LENGTH = 64
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED_MONTH = re.compile(r"([0-9]{1,2})[- ]([A-Za-z]{3})[- ]([0-9]{4})\Z")
_AMBIGUOUS = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2[0-9]{4}\Z")


class Incomparable(Exception):
    """The values cannot be compared, through no fault of the answer."""


class Unreadable(Exception):
    """The value in the answer has the wrong form; the message completes `which is ...`."""


def near(wanted: Any, found: Any, tolerance: float, relative: bool) -> bool:
    """Is the difference within the tolerance, absolute or as a share of the wanted number?

    For a wanted number of 0 the tolerance is absolute: a share of 0 would allow no difference.
    """
    exact, other = read_number(wanted), read_number(found)
    if exact is None:
        raise Incomparable(f"the expected value {quoted(wanted)} is not a number")
    if other is None:
        raise Unreadable("not a number")
    allowed = Decimal(str(tolerance))
    return abs(exact - other) <= (allowed * abs(exact) if relative and exact else allowed)


def read_number(value: Any) -> Decimal | None:
    """The number as it is written, without float rounding; also one that is written as text."""
    if isinstance(value, str):
        value = value.strip()
        if len(value) > _MAX_LENGTH or not _NUMBER.match(value):
            return None
        return Decimal(value) if math.isfinite(float(value)) else None
    if isinstance(value, float):
        return Decimal(str(value)) if math.isfinite(value) else None
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return Decimal(str(value)) if is_integer else None


def same_date(wanted: Any, found: Any, formats: Sequence[str]) -> bool:
    """Do two texts mean the same day? The expected one may also be in a default format."""
    day = read_date(wanted, formats) or read_date(wanted, ())
    if day is None:
        raise Incomparable(f"the expected value {quoted(wanted)} is not a date")
    other = read_date(found, formats)
    if other is None:
        raise Unreadable(f"not a date as {' or '.join(formats)}" if formats else "not a date")
    return other == day


def read_date(text: Any, formats: Sequence[str]) -> date | None:
    """The day, parsed by the first format that fits; the default is ISO 8601 or `5 Jan 2025`."""
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        return None
    text = text.strip()
    if formats:
        return next((day for form in formats if (day := _by_format(text, form))), None)
    parts = _AMBIGUOUS.match(text)
    if parts and int(parts[1]) != int(parts[3]) and max(int(parts[1]), int(parts[3])) <= 12:
        raise Incomparable(f"{text!r} is ambiguous: it can be two different days; set 'formats'")
    try:
        if parts := _NAMED_MONTH.match(text):
            month = _MONTHS.index(parts[2].lower()) + 1
            return date(int(parts[3]), month, int(parts[1]))
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _by_format(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, directives(form)).date()
    except (ValueError, re.error):
        return None


#: The letters of a format such as `DD-MMM-YYYY`, as directives; the longest come first.
_LETTERS = {
    **dict.fromkeys(("YYYY", "yyyy"), "%Y"),
    **dict.fromkeys(("YY", "yy"), "%y"),
    "MMMM": "%B",
    "MMM": "%b",
    **dict.fromkeys(("MM", "M"), "%m"),
    **dict.fromkeys(("DD", "D", "dd", "d"), "%d"),
    **dict.fromkeys(("HH", "H"), "%H"),
    "mm": "%M",
    "ss": "%S",
    "T": "T",
    "Z": "%z",
}
#: The pattern of formats in JSON Schema; it accepts some that `directives` rejects.
FORMAT_PATTERN = rf"^(?=.*[DMYdmy])([^A-Za-z%]|{'|'.join(_LETTERS)})+$|%[dmbByYjxcG]"
_LETTER_RUN = re.compile(r"([A-Za-z])\1*")
_DIRECTIVE = re.compile(r"%(.)")
_MIXED = re.compile(r"YYYY|yyyy|MMM+|MM|DD|dd")
#: The directives for parts of a date.
_OF_A_DAY = frozenset("dmbByYjxcG")


@lru_cache(maxsize=256)
def directives(form: str) -> str:
    """A date format for `strptime`; raises ValueError if it is not one."""
    if "%" not in form:
        # `mm` are minutes after hours; elsewhere the author means months.
        form = _LETTER_RUN.sub(_directive, form if "H" in form else form.replace("mm", "MM"))
    elif mixed := _MIXED.search(_DIRECTIVE.sub("", form)):
        raise ValueError(f"it has both {mixed[0]!r} and directives with %")
    if _OF_A_DAY.isdisjoint(_DIRECTIVE.findall(form)):
        raise ValueError("it has no day, month or year")
    try:
        datetime.strptime("", form)
    except (ValueError, re.error) as error:
        if "does not match format" not in str(error):
            raise ValueError(str(error)) from None
    return form


def _directive(run: re.Match[str]) -> str:
    try:
        return _LETTERS[run[0]]
    except KeyError:
        raise ValueError(f"{run[0]!r} is not a letter code for a part of a date") from None
