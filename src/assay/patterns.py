"""Regular expressions that cannot hang: google-re2, else `regex` with a time limit.

RE2 answers in linear time. What it cannot do (look-around, back-references) goes to
`regex`, made to mean the same: ASCII classes, `$` only at the very end, and a time
limit on every search.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from pydantic_core import SchemaValidator, core_schema

from assay.errors import BadPattern

#: How many parts a pattern of the backtracking engine may expand to.
MAX_EXPANDED = 100_000
#: Seconds that one search of the backtracking engine may take.
TIME_LIMIT = 1.0


class Pattern(Protocol):
    """A compiled expression; `search` may raise TimeoutError."""

    def search(self, text: str) -> bool: ...


class _Linear:
    """Calls RE2 itself: its Python wrapper also finds groups, which takes ten times as long."""

    __slots__ = ("anywhere", "match")

    def __init__(self, compiled: Any, anywhere: Any) -> None:
        self.match, self.anywhere = compiled._regexp.Match, anywhere

    def search(self, text: str) -> bool:
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, a character that RE2 cannot know
            data = text.encode("utf-8", "replace")
        start, _ = self.match(self.anywhere, data, 0, len(data))[0]
        return bool(start >= 0)


class _Backtracking:
    __slots__ = ("compiled",)

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def search(self, text: str) -> bool:
        return self.compiled.search(text, timeout=TIME_LIMIT) is not None


def quick_search(pattern: str) -> Callable[[str | bytes], bool]:
    """Whether an expression is somewhere in UTF-8, at the speed of a substring search.

    The Rust engine inside pydantic looks for the literals that it begins with.
    """
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Compile an expression; raises BadPattern with the engine's reason."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return _Linear(re2.compile(pattern, options), re2._Anchor.UNANCHORED)
    except re2.error:
        return _backtracking(pattern)


def _backtracking(pattern: str) -> Pattern:
    import regex

    if _expanded(pattern) > MAX_EXPANDED:
        raise BadPattern(f"its counted repeats expand to more than {MAX_EXPANDED:,} parts")
    try:
        flags = regex.VERSION0 | regex.ASCII
        return _Backtracking(regex.compile(_absolute_end(pattern), flags))
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise BadPattern(str(error)) from None


#: A class, an escape, a counted repeat, a group's start with its flags, or any character.
_PART = re.compile(
    r"(?P<klass>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])|(?P<escape>\\.)"
    r"|\{(?P<least>\d*),?(?P<most>\d*)\}|(?P<open>\()|(?P<close>\))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)


def _expanded(pattern: str) -> int:
    """How many parts the engine makes of the pattern: it writes counted repeats out."""
    sizes, last = [0], 0
    for part in _PART.finditer(pattern):
        kind = part.lastgroup
        if kind == "open":
            sizes.append(0)
        elif kind == "close" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif part["least"] is not None:
            count = max(int(part["least"][:9] or 0), int(part["most"][:9] or 0), 1)
            sizes[-1] += last * (count - 1)
            last *= count
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def _absolute_end(pattern: str) -> str:
    """`$` outside classes becomes `\\Z`: in `regex` it would also match before a final newline.

    Not with the flag `m`, under which `$` is the end of a line.
    """
    groups = (part.start() for part in _PART.finditer(pattern) if part.lastgroup == "open")
    if any(_MULTILINE.match(pattern, start) for start in groups):
        return pattern
    return _PART.sub(lambda part: r"\Z" if part.lastgroup == "end" else part[0], pattern)


_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
