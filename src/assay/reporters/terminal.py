"""What a stream can display, and text made safe for terminals and build logs."""

from __future__ import annotations

import io
import os
import re
from typing import IO, Any, BinaryIO, TextIO, cast

import msgspec

from assay import redaction
from assay.settings import environment
from assay.text import columns, cut, fitting, printable

#: The width when the output is not a terminal.
WIDTH = 100

_STYLES = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2", "struck": "9"}
#: Commands that build servers execute: `##[error]`, `##vso[...]`, `::error::` at the line start.
_LOG_COMMAND = re.compile(r"#(?=#\w*\[)|^ *:(?=:)")
#: Characters that a terminal interprets. Of these, JSON strings may contain C1 controls, line
#: separators and bidirectional marks unescaped.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")


class Terminal(msgspec.Struct, frozen=True):
    """What a stream can display. `live` means that a line can be redrawn."""

    live: bool = False
    colour: bool = False
    width: int = WIDTH
    encoding: str = "utf-8"

    @classmethod
    def of(cls, out: TextIO) -> Terminal:
        """What this stream can display; a file or pipe has no colour and the default width."""
        encoding = getattr(out, "encoding", None) or "utf-8"
        if not out.isatty():
            return cls(encoding=encoding)
        variables = environment(["NO_COLOR", "TERM"])
        live = variables.get("TERM") != "dumb"
        return cls(live, live and not variables.get("NO_COLOR"), _width(out), encoding)

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles, if there is colour."""
        if not (self.colour and styles and text):
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def fit(self, text: str) -> str:
        """The text with characters escaped that the stream's encoding lacks."""
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)


def _width(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError):  # a terminal whose size is not known
        return WIDTH


def safe(text: str, limit: int = 1000) -> str:
    """Untrusted text as one line that neither a terminal nor a build server takes for commands."""
    # Truncated first: the text may be huge, and what follows looks at every character.
    short = printable(redaction.cut(text, limit + 1))
    return cut(_LOG_COMMAND.sub(r"\g<0> ", short), limit)


def escape_controls(text: str) -> str:
    """The text with control characters escaped, except for line ends and tabs."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_controls_in_json(text: str) -> str:
    """The same JSON with control characters escaped: they occur only in its strings."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaping(out: BinaryIO) -> IO[bytes]:
    """A stream that writes JSON to a terminal with control characters escaped."""
    return cast("IO[bytes]", _Escaping(out))


class _Escaping(io.RawIOBase):
    """Escapes control characters on the way."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """`data` must consist of whole characters, as callers write complete texts."""
        self._out.write(escape_controls_in_json(bytes(data).decode()).encode())
        return len(data)

    def flush(self) -> None:
        if not self.closed:
            self._out.flush()


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces.

    A longer word is not broken, so that it can be copied, except between wide characters, as
    languages that use them have no spaces. No line is a build server command, though a break may
    put `::` at the start of one.
    """
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        # A long word of wide characters begins on the same line.
        if line and columns(longer) > width and not _break(longer, width, len(line) + 1):
            lines.append(line)
            longer = word
        while columns(longer) > width and (kept := _break(longer, width)):
            lines.append(longer[:kept])
            longer = longer[kept:]
        line = longer
    return [_LOG_COMMAND.sub(r"\g<0> ", line) for line in (*lines, line)]


def _break(text: str, width: int, start: int = 0) -> int:
    """The last place within `width`, after `start`, before or after a wide character; else 0."""
    if text.isascii():
        return 0
    for place in range(fitting(text, width), start, -1):
        if columns(text[place - 1]) == 2 or columns(text[place : place + 1]) == 2:
            return place
    return 0


def pointed(text: str, column: int, width: int) -> tuple[str, str]:
    """The text, and a caret below its column, counted from 1; a long text is cut around it."""
    room = max(width - 2, 20)
    before, after = printable(text[: column - 1]), printable(text[column - 1 :])
    while columns(before) > room // 2:
        before = before[1:]
    return f"  {before}{cut(after, room - columns(before))}", "  " + " " * columns(before) + "^"
