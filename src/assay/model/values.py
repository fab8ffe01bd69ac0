"""JSON values: equality, access by path, and finding them in texts.

The texts come from models, so nothing here may take long or recurse deeply, for any text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from assay.model.tokens import MISSING as MISSING
from assay.model.tokens import value_at as value_at
from assay.redaction import cut

#: Values that are nested deeper are not JSON here; eval files have the same limit.
MAX_DEPTH = 100
#: How many positions of a text are tried before giving up.
MAX_TRIES = 250
#: Longer integers become floats: by default Python converts no more digits.
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
    """A value as quoted in messages, redacted and truncated."""
    if isinstance(value, str):
        return repr(cut(value, limit))
    return cut(json.dumps(value, ensure_ascii=False, default=str), limit)


def from_json(text: str) -> Any:
    """Parse a text that is JSON as a whole; raises ValueError."""
    text = text.strip(" \t\r\n")
    value, end = _decode(text, 0)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_json(text: str) -> Any:
    """Parse a text that is JSON as a whole; MISSING when it is not."""
    try:
        return from_json(text)
    except ValueError:
        return MISSING


def find_json(text: str, kind: type = object) -> Any:
    """The first JSON value in a text, of a type (dict, list) if given; MISSING without one."""
    return next((value for value in json_values(text) if isinstance(value, kind)), MISSING)


_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
#: The possible start of an object or list: followed by a first member or the end.
_OPENING = re.compile(r'\[(?=\s*+["\[{\]\-0-9tfn])|\{(?=\s*+["}])')
#: The tokens that matter for nesting; strings are one, so that brackets in them do not count.
_NESTING_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]|NaN|Infinity', re.DOTALL)


def json_values(text: str) -> Iterator[Any]:
    """The JSON values in a text: the text as a whole, else those in code blocks, then in prose."""
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

    Everything before a syntax error is valid: what was closed by then is a value, and what was
    still open cannot become one. Only what was taken for a string is searched again, because quotes
    in prose are not those of JSON.
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
            stop, closed, bracket_in_string = _survey(text, start, getattr(fault, "pos", len(text)))
            effort -= stop - start
            position = bracket_in_string or stop
            for inner in closed:
                with suppress(ValueError):
                    yield _decode(text, inner)[0]
        else:
            yield value


def _survey(text: str, start: int, end: int) -> tuple[int, list[int], int]:
    """How far a text is valid, where the outermost values closed by then start, and where the
    first bracket inside a string is, or 0."""
    still_open: list[int] = []
    closed: list[int] = []
    bracket_in_string = 0
    for match in _NESTING_TOKEN.finditer(text, start, end):
        token = match[0]
        if token in "[{":
            if len(still_open) == MAX_DEPTH:
                return match.start(), closed, bracket_in_string
            still_open.append(match.start())
        elif token in "]}" and still_open:
            opened = still_open.pop()
            while closed and closed[-1] > opened:
                closed.pop()
            closed.append(opened)
        elif token[0] != '"':
            return match.start(), closed, bracket_in_string
        elif not bracket_in_string and (
            bracket := _OPENING.search(text, match.start(), match.end())
        ):
            bracket_in_string = bracket.start()
    return max(end, start + 1), closed, bracket_in_string


def _parse_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key appears twice")
    return result


_DECODER = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse_constant)
#: Refuses duplicate keys.
UNIQUE_KEYS = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_int=_parse_int, parse_constant=_refuse_constant
)


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Parse the value that starts there; returns it and its end, or raises ValueError."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    brackets = text.count("[", start, end) + text.count("{", start, end)
    if brackets > MAX_DEPTH and _survey(text, start, end)[0] < end:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return value, end
