"""The diff of a trajectory as text, the same for every reporter.

An entry is `{status, expected?, actual?, differences?}`. A difference is `{path, expected,
actual}`; a side without a value is null, and `absent` names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from assay.redaction import cut
from assay.text import printable

SIGNS = {"matched": "=", "missing": "-", "unexpected": "+", "wrong_args": "~"}
#: The maximum length of a value and of a call.
MAX_VALUE, MAX_CALL = 60, 120


def render_diff(diff: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines for a terminal: one per entry, followed by its differences."""
    lines = []
    for entry in diff:
        call = entry["actual"] if "actual" in entry else entry["expected"]
        lines.append(f"  {SIGNS[entry['status']]} {call_text(call)}")
        lines += ["      " + difference_text(item) for item in entry.get("differences", ())]
    return lines


#: Created once: `json.dumps` would create an encoder for every value.
_as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def call_text(call: Mapping[str, Any]) -> str:
    """`search(query="x")`; alternatives are joined with "or"."""
    if "any_of" in call:
        return " or ".join(call_text(option) for option in call["any_of"])
    args = call.get("args")
    if args is None or args == "any":
        return cut(printable(call["tool"]), MAX_CALL)
    if isinstance(args, dict):
        inside = ", ".join(f"{key}={value_text(value)}" for key, value in args.items())
    else:
        inside = value_text(args)
    return cut(printable(f"{call['tool']}({inside}"), MAX_CALL - 1) + ")"


def difference_text(difference: Mapping[str, Any]) -> str:
    """`query is "y", not "x"`."""
    path = printable(difference["path"]) or "the value"
    expected, actual = value_text(difference["expected"]), value_text(difference["actual"])
    absent = difference.get("absent")
    if absent == "actual":
        return f"{path} is missing, expected {expected}"
    return f"{path} is {actual}, " + ("not expected" if absent else f"not {expected}")


def value_text(value: Any) -> str:
    """A value as JSON, truncated."""
    if isinstance(value, str):
        value = cut(value, MAX_VALUE + 1)  # it may be huge, and escapes may hide a secret
    return cut(printable(_as_json(value)), MAX_VALUE)
