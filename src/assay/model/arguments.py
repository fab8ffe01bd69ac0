"""Expected arguments and results: literal values and conditions, compared by type.

`comparison` compiles the expected value to a function that appends the differences to a list.
The paths are built from the expected value, once and not for each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.score import TOLERANCE
from assay.model.values import MISSING, same, value_at
from assay.patterns import compile_pattern

#: Path, expected, actual.
Difference = tuple[str, Any, Any]
Comparison = Callable[[Any, list[Difference]], None]
Test = Callable[[Any], bool]
#: Names of arguments with the texts that they must equal.
Texts = tuple[tuple[str, str], ...]


def comparison(expected: Any, match: Any) -> Comparison | None:
    """How to compare arguments under an `args_match`; None if anything matches.

    The mapping of arguments itself is never a condition.
    """
    if expected is None or expected == "any" or match == "ignore":
        return None
    if isinstance(match, list):
        return _at_paths(expected, match)
    if isinstance(expected, dict):
        return _mapping(expected, match, "", or_none=True)
    return _value(expected, match, "")


def texts_only(expected: Any, match: Any) -> Texts | None:
    """The expected texts, if nothing else is expected of the arguments; otherwise None."""
    if expected is None or expected == "any" or match == "ignore":
        return ()
    if match != "superset" or not isinstance(expected, dict) or is_condition(expected):
        return None
    texts = tuple(expected.items())
    return texts if texts and all(type(value) is str for _, value in texts) else None


def result_comparison(expected: Any) -> Comparison | None:
    """How to compare the result of a call: like arguments, but it may itself be a condition."""
    if expected is None or expected == "any":
        return None
    return _value(expected, "superset", "output")


def as_dict(difference: Difference) -> dict[str, Any]:
    """The JSON of a difference."""
    path, expected, actual = difference
    if actual is MISSING:
        return {"path": path, "expected": expected, "actual": None, "absent": "actual"}
    if expected is MISSING:
        return {"path": path, "expected": None, "actual": actual, "absent": "expected"}
    return {"path": path, "expected": expected, "actual": actual}


def _value(expected: Any, match: str, path: str) -> Comparison:
    if is_condition(expected):
        return _condition(expected, path)
    if isinstance(expected, dict):
        return _mapping(expected, match, path)
    if isinstance(expected, list):
        return _sequence(expected, match, path)

    def scalar(actual: Any, found: list[Difference]) -> None:
        if actual is not expected and not same(actual, expected):
            found.append((path, expected, actual))

    return scalar


def _mapping(
    expected: dict[str, Any], match: str, path: str, *, or_none: bool = False
) -> Comparison:
    """With `or_none`, null counts as an empty mapping."""
    partial, closed = match == "subset", match in ("exact", "subset")
    # Most arguments are texts, for which `==` will do: that saves a function call for each.
    texts = [(k, v, _join(path, k)) for k, v in expected.items() if isinstance(v, str)]
    others = [
        (key, _value(item, match, _join(path, key)), partial and not _asks_for_presence(item))
        for key, item in expected.items()
        if not isinstance(item, str)
    ]

    def mapping(actual: Any, found: list[Difference]) -> None:
        if not isinstance(actual, dict):
            if actual is not None or not or_none:
                found.append((path, expected, actual))
                return
            actual = {}
        for key, text, place in texts:
            item = actual.get(key, MISSING)
            if item != text and not (partial and item is MISSING):
                found.append((place, text, item))
        for key, compare, may_be_absent in others:
            item = actual.get(key, MISSING)
            if item is not MISSING or not may_be_absent:
                compare(item, found)
        if closed:
            extra = ((key, item) for key, item in actual.items() if key not in expected)
            found.extend((_join(path, key), MISSING, item) for key, item in extra)

    return mapping


def _asks_for_presence(expected: Any) -> bool:
    return is_condition(expected) and "exists" in expected


def _sequence(expected: list[Any], match: str, path: str) -> Comparison:
    parts = [_value(item, match, _join(path, index)) for index, item in enumerate(expected)]

    def sequence(actual: Any, found: list[Difference]) -> None:
        if not isinstance(actual, (list, tuple)) or len(actual) != len(parts):
            found.append((path, expected, actual))
            return
        for compare, item in zip(parts, actual, strict=True):
            compare(item, found)

    return sequence


def _at_paths(expected: Any, paths: list[str]) -> Comparison:
    parts = [(path, _value(value_at(expected, path), "superset", path)) for path in paths]

    def at_paths(actual: Any, found: list[Difference]) -> None:
        for path, compare in parts:
            compare(value_at(actual, path), found)

    return at_paths


def _join(path: str, key: str | int) -> str:
    return f"{path}.{key}" if path else str(key)


# Conditions


def is_condition(value: Any) -> bool:
    """Are all its keys names of conditions? (Authors quote such a literal with `equals`.)"""
    return isinstance(value, dict) and bool(value) and CONDITIONS.issuperset(value)


def _condition(expected: dict[str, Any], path: str) -> Comparison:
    # null counts as absent, except where it is a value to compare with
    asked = {k for k, v in expected.items() if v is not None or k in ("contains", "equals")}
    tests = [make(expected, path) for key, make in _TESTS.items() if key in asked]
    present = expected.get("exists") is not False
    absent = not present and not tests

    def condition(actual: Any, found: list[Difference]) -> None:
        if not (absent if actual is MISSING else present and all(t(actual) for t in tests)):
            found.append((path, expected, actual))

    return condition


def _regex(expected: dict[str, Any], path: str) -> Test:
    text = expected["regex"]
    pattern = compile_pattern(text)

    def test(value: Any) -> bool:
        try:
            return isinstance(value, str) and pattern.search(value)
        except TimeoutError:
            message = f"the regular expression {text!r} took too long on the value of {path!r}"
            raise TimeoutError(message) from None

    return test


def _between(least: float | None, most: float | None) -> Test:
    def test(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (least is None or value >= least) and (most is None or value <= most)

    return test


def _approx(expected: dict[str, Any], path: str) -> Test:
    middle = expected["approx"]
    # 0.3 is within 0.1 of 0.4, despite float rounding
    margin = (expected.get("tolerance") or 0) + TOLERANCE * max(1.0, abs(middle))
    return _between(middle - margin, middle + margin)


def _contains(expected: dict[str, Any], path: str) -> Test:
    part = expected["contains"]

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(part, str) and part in value
        return isinstance(value, (list, tuple)) and any(same(item, part) for item in value)

    return test


def _type(expected: dict[str, Any], path: str) -> Test:
    return _TYPES[expected["type"]]


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: dict[str, Test] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: type(value) in (int, float),
    "integer": _is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, (list, tuple)),
    "null": lambda value: value is None,
}
_TESTS: dict[str, Callable[[dict[str, Any], str], Test]] = {
    "regex": _regex,
    "one_of": lambda expected, _: (
        lambda value: any(same(value, option) for option in expected["one_of"])
    ),
    "gte": lambda expected, _: _between(expected["gte"], None),
    "lte": lambda expected, _: _between(None, expected["lte"]),
    "approx": _approx,
    "contains": _contains,
    "type": _type,
    "equals": lambda expected, _: lambda value: same(value, expected["equals"]),
}
CONDITIONS = frozenset({*_TESTS, "tolerance", "exists"})
