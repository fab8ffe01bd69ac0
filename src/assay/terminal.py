"""What a stream can show: colour, width, characters. And text that cannot harm a terminal."""

from __future__ import annotations

import io
import os
import re
import unicodedata
from typing import IO, Any, BinaryIO, TextIO, cast

import msgspec

from assay.errors import printable
from assay.settings import environment

#: The width where there is no terminal to ask.
WIDTH = 100

_STYLES = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
#: `##[error]`, `##vso[...]`, and `::error::` where it begins a line: build servers obey these.
_LOG_COMMAND = re.compile(r"#(?=#\w*\[)|^ *:(?=:)")
#: What a terminal obeys although JSON allows it: C1, line separators, marks that turn a line.
_OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")


class Terminal(msgspec.Struct, frozen=True):
    """What a stream can show. `live` says that a line can be drawn anew."""

    live: bool = False
    colour: bool = False
    width: int = WIDTH
    encoding: str = "utf-8"

    @classmethod
    def of(cls, out: TextIO) -> Terminal:
        """The stream as it is now; a file or pipe has no colour and the usual width."""
        encoding = getattr(out, "encoding", None) or "utf-8"
        if not out.isatty():
            return cls(encoding=encoding)
        variables = environment(["NO_COLOR", "TERM"])
        live = variables.get("TERM") != "dumb"
        return cls(live, live and not variables.get("NO_COLOR"), _width(out), encoding)

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles, where there is colour."""
        if not (self.colour and styles and text):
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def fit(self, text: str) -> str:
        """The text with escapes for characters that the stream's encoding does not have."""
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)


def _width(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError):  # it says that it is a terminal, and cannot be asked
        return WIDTH


def safe(text: str, limit: int = 1000) -> str:
    """What a model or user wrote, in one line that neither terminal nor build server obeys."""
    # The text may be huge, so it is cut before it is looked at character by character.
    return cut(_LOG_COMMAND.sub(r"\g<0> ", printable(text[: limit + 1])), limit)


def harmless(text: str) -> str:
    """A document with escapes for what a terminal would obey; lines and tabs stay."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def harmless_json(text: str) -> str:
    """The same JSON in other letters: such characters stand in its strings only."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def on_screen(out: BinaryIO) -> IO[bytes]:
    """A terminal to write documents to as they are, but for what it would obey."""
    return cast("IO[bytes]", _Screen(out))


class _Screen(io.RawIOBase):
    """Escapes on the way what a terminal would obey."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Whole characters, as whoever writes text gives them."""
        self._out.write(harmless_json(bytes(data).decode()).encode())
        return len(data)

    def flush(self) -> None:
        if not self.closed:
            self._out.flush()


def cut(text: str, width: int) -> str:
    """The text in at most so many columns; `...` stands for what is left out."""
    if len(text) <= width and text.isascii():
        return text
    if columns(text) <= width:
        return text
    return text[: _fitting(text, width - 3)] + "..."[: max(width, 0)]


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most so many columns, broken at spaces where there are any.

    No line is a command to a build server: these read on where a line was broken.
    """
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and columns(longer) > width >= columns(word):
            lines.append(line)
            longer = word
        while columns(longer) > width:  # a word as long as a line is broken where it stands
            kept = max(_fitting(longer, width), 1)
            lines.append(longer[:kept])
            longer = longer[kept:]
        line = longer
    return [_LOG_COMMAND.sub(r"\g<0> ", line) for line in (*lines, line)]


def _fitting(text: str, room: int) -> int:
    """How many characters from the start of the text fit."""
    kept = 0
    for char in text:
        room -= columns(char)
        if room < 0:
            break
        kept += 1
    return kept


def columns(text: str) -> int:
    """How many columns a terminal needs for the text."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
