"""Regular expressions that cannot hang: google-re2, else `regex` with a time limit.

RE2 answers in linear time. What it cannot do (look-around, back-references) goes to
`regex`, made to mean the same: ASCII classes, `$` only at the very end, and a time
limit on every search.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from assay.errors import BadPattern

#: Seconds that one search of the backtracking engine may take.
TIME_LIMIT = 1.0


class Pattern(Protocol):
    """A compiled expression; `search` may raise TimeoutError."""

    def search(self, text: str) -> bool: ...


class _Linear:
    __slots__ = ("compiled",)

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def search(self, text: str) -> bool:
        return self.compiled.search(text) is not None


class _Backtracking:
    __slots__ = ("compiled",)

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def search(self, text: str) -> bool:
        return self.compiled.search(text, timeout=TIME_LIMIT) is not None


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Compile an expression; raises BadPattern with the engine's reason."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return _Linear(re2.compile(pattern, options))
    except re2.error:
        return _backtracking(pattern)


def _backtracking(pattern: str) -> Pattern:
    import regex

    try:
        flags = regex.VERSION0 | regex.ASCII
        return _Backtracking(regex.compile(_absolute_end(pattern), flags))
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise BadPattern(str(error)) from None


def _absolute_end(pattern: str) -> str:
    """`$` outside classes becomes `\\Z`: in `regex` it would also match before a final newline."""
    result: list[str] = []
    in_class = escaped = False
    for character in pattern:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "[":
            in_class = True
        elif character == "]":
            in_class = False
        elif character == "$" and not in_class:
            character = r"\Z"
        result.append(character)
    return "".join(result)
