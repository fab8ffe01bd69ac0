"""JSON values: when two of them are the same."""

from __future__ import annotations

from typing import Any


def same(a: Any, b: Any) -> bool:
    """Equal by type and value at every depth: 1 is 1.0, but neither true nor "1"."""
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        return all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return False
        return all(map(same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)
