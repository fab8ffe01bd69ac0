"""JSON values: are two the same, what is at a path, which one is in a text.

The texts come from models, so nothing here may take long or go deep, whatever they hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from assay.model.tokens import MISSING as MISSING
from assay.model.tokens import reach as reach

#: Values nested deeper are not taken for answers; eval files have the same limit.
MAX_DEPTH = 100
#: How many places of a text are tried before it is said to hold no JSON.
MAX_TRIES = 250
#: Longer whole numbers become floats: Python converts no more digits by default.
_MAX_DIGITS = 4300


def same(a: Any, b: Any) -> bool:
    """JSON equality: types count, so 1 is not "1" and not true, but 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)):
        return isinstance(b, (int, float)) and a == b
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        return all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return False
        return all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def quoted(value: Any, limit: int = 80) -> str:
    """A value as a message shows it, cut to size."""
    if isinstance(value, str):
        return repr(cut(value, limit))
    return cut(json.dumps(value, ensure_ascii=False, default=str), limit)


def cut(text: str, limit: int) -> str:
    """The text in at most so many characters; `...` stands for what is left out."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def from_json(text: str) -> Any:
    """The value that the whole text is; ValueError says why it is no JSON."""
    text = text.strip(" \t\r\n")
    value, end = _decode(text, 0)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_json(text: str) -> Any:
    """The value that the whole text is; MISSING when it is no JSON."""
    try:
        return from_json(text)
    except ValueError:
        return MISSING


def find_json(text: str, kind: type = object) -> Any:
    """The JSON value in a text, of a kind (dict, list) if that is known; MISSING without one."""
    return next((value for value in json_values(text) if isinstance(value, kind)), MISSING)


_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
#: Where an object or a list may start: what follows could be its first member or its end.
_OPENING = re.compile(r'\[(?=\s*+["\[{\]\-0-9tfn])|\{(?=\s*+["}])')
#: What matters for nesting; strings are one part, so that brackets in them do not count.
_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]|NaN|Infinity', re.DOTALL)


def json_values(text: str) -> Iterator[Any]:
    """The JSON values in a text: the text itself, else those in code blocks, then in prose."""
    whole = parse_json(text)
    if whole is not MISSING:
        yield whole
        return
    for block in islice(_FENCED.finditer(text), MAX_TRIES):
        inside = parse_json(block[1])
        if inside is not MISSING:
            yield inside
    yield from _values_in_prose(text)


def _values_in_prose(text: str) -> Iterator[Any]:
    """Objects and lists, outermost first.

    Where reading fails, everything before that place was right: what was closed by then is
    a value, and what was still open cannot become one. Only what was taken for a string is
    read again, because quotes in prose are not those of JSON.
    """
    position, effort = 0, 10 * len(text)
    for _ in range(MAX_TRIES):
        opening = _OPENING.search(text, position)
        if opening is None or effort < 0:
            return
        start = opening.start()
        try:
            value, position = _decode(text, start)
        except ValueError as fault:
            stop, closed, quotation = _survey(text, start, getattr(fault, "pos", len(text)))
            effort -= stop - start
            position = quotation or stop
            for inner in closed:
                with suppress(ValueError):
                    yield _decode(text, inner)[0]
        else:
            yield value


def _survey(text: str, start: int, end: int) -> tuple[int, list[int], int]:
    """How far a text can be read, where the outermost values closed by then start, and where
    the first bracket inside a string stands, or 0."""
    still_open: list[int] = []
    closed: list[int] = []
    quotation = 0
    for part in _PART.finditer(text, start, end):
        sign = part[0]
        if sign in "[{":
            if len(still_open) == MAX_DEPTH:
                return part.start(), closed, quotation
            still_open.append(part.start())
        elif sign in "]}" and still_open:
            begin = still_open.pop()
            while closed and closed[-1] > begin:
                closed.pop()
            closed.append(begin)
        elif sign[0] != '"':
            return part.start(), closed, quotation
        elif not quotation and (hidden := _OPENING.search(text, part.start(), part.end())):
            quotation = hidden.start()
    return max(end, start + 1), closed, quotation


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key appears twice")
    return result


_DECODER = json.JSONDecoder(parse_int=_whole_number, parse_constant=_no_number)
#: Refuses an object that has a key twice.
UNIQUE_KEYS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole_number, parse_constant=_no_number
)


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The value that starts there, and where it ends; raises ValueError."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    brackets = text.count("[", start, end) + text.count("{", start, end)
    if brackets > MAX_DEPTH and _survey(text, start, end)[0] < end:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return value, end
