"""Regular expressions that cannot hang: google-re2, else `regex` with a timeout.

RE2 runs in linear time. Patterns that it does not support (look-around, back-references) go to
`regex`, set up to mean the same (ASCII classes, `$` only at the very end), with a timeout on
every search.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Protocol

from assay.deadlines import DeadlineExceeded, time_left
from assay.errors import BadPattern

#: The largest size of a pattern for the backtracking engine, with counted repeats written out.
MAX_EXPANDED = 100_000
#: The timeout of one search with the backtracking engine, in seconds.
TIME_LIMIT = 1.0


class Pattern(Protocol):
    """A compiled pattern; `search` may raise TimeoutError, unless it takes `linear` time."""

    linear: bool

    def search(self, text: str) -> bool: ...


class _Linear:
    __slots__ = ("find",)
    linear = True

    def __init__(self, compiled: Any) -> None:
        self.find = compiled.search

    def search(self, text: str) -> bool:
        """Searches bytes: for text RE2 would also compute where each character is."""
        try:
            data = text.encode()
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not have
            data = text.encode("utf-8", "replace")
        return self.find(data) is not None


class _Backtracking:
    __slots__ = ("compiled",)
    linear = False

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def search(self, text: str) -> bool:
        left = time_left()
        try:
            return self.compiled.search(text, timeout=min(left, TIME_LIMIT)) is not None
        except TimeoutError:
            if left < TIME_LIMIT:
                raise DeadlineExceeded from None
            raise


def literal(text: str) -> str:
    """A pattern that finds exactly this text."""
    return re.sub(r"[\\.^$*+?()\[\]{}|]", r"\\\g<0>", text)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern; raises BadPattern with the engine's reason."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return _Linear(re2.compile(pattern, options))
    except re2.error:
        return _backtracking(pattern)


def _backtracking(pattern: str) -> Pattern:
    import regex

    if _expanded_size(pattern) > MAX_EXPANDED:
        raise BadPattern(f"its counted repeats expand to more than {MAX_EXPANDED:,} parts")
    try:
        flags = regex.VERSION0 | regex.ASCII
        return _Backtracking(regex.compile(_anchor_end(pattern), flags))
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise BadPattern(str(error)) from None


#: A character class, an escape, a counted repeat, a parenthesis, `$`, or any other character.
_PART = re.compile(
    r"(?P<klass>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])|(?P<escape>\\.)"
    r"|\{(?P<least>\d*),?(?P<most>\d*)\}|(?P<open>\()|(?P<close>\))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)


def _expanded_size(pattern: str) -> int:
    """The size of the pattern once the engine has written out its counted repeats."""
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


def _anchor_end(pattern: str) -> str:
    """`$` outside classes becomes `\\Z`: in `regex` it would also match before a final newline.

    A pattern with the flag `m`, where `$` is the end of a line, is left as it is.
    """
    groups = (part.start() for part in _PART.finditer(pattern) if part.lastgroup == "open")
    if any(_MULTILINE.match(pattern, start) for start in groups):
        return pattern
    return _PART.sub(lambda part: r"\Z" if part.lastgroup == "end" else part[0], pattern)


_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
