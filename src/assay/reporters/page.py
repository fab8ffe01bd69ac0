"""Page: text, lists and tables in lines that fit the width of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from assay.redaction import current
from assay.redaction import cut as shortened
from assay.reporters.terminal import Terminal, safe, wrap
from assay.text import columns, cut, cut_middle

#: How many entries of a list are shown.
MAX_LISTED = 20
#: The most characters and lines of a text that is shown in full.
MAX_CHARACTERS, MAX_LINES = 20_000, 400
#: The narrowest column that is truncated.
_NARROWEST = 8
_DIFF_STYLES = {"=": (), "-": ("red", "struck"), "+": ("green",)}


class Page:
    """Writes lines that fit the width of the terminal. Untrusted text must be `safe`."""

    def __init__(self, out: TextIO, terminal: Terminal | None = None) -> None:
        self._out, self.terminal = out, terminal or Terminal.of(out)

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line, truncated to the width."""
        self.whole(cut(self.terminal.fit(text), self.terminal.width), *styles)

    def whole(self, text: str, *styles: str) -> None:
        """Write one line in full: it has a name or path to be copied."""
        self._out.write(self.terminal.paint(self.terminal.fit(text), *styles) + "\n")

    def prose(self, head: str, text: str, *styles: str, max_lines: int | None = None) -> None:
        """Write text that must be read, wrapped; beyond `max_lines` its middle is left out."""
        width = max(self.terminal.width, 40)
        if columns(head) > width // 2:  # it is a long name: it is wrapped with the text
            head, text = head[: len(head) - len(head.lstrip())], head.lstrip() + text
        width -= columns(head)
        text = self.terminal.fit(text)
        lines, room = wrap(text, width), width * (max_lines or 1)
        while max_lines is not None and _height(lines, width) > max_lines:
            lines = wrap(shortened(text, room, "both"), width)
            room -= width // 8
        for index, line in enumerate(lines):
            self.whole((" " * columns(head) if index else head) + line, *styles)

    def block(self, head: str, text: str, *styles: str, most: int = MAX_LINES) -> None:
        """Write untrusted text with its own line breaks and indentation, below its `head`."""
        for line in text_lines(text, most):
            inner = line.lstrip(" ")
            indent = " " * min(len(line) - len(inner), 20)
            self.prose(head + indent, safe(inner, MAX_CHARACTERS), *styles)
            head = " " * columns(head)

    def diff(self, indent: str, parts: Sequence[tuple[str, str]]) -> None:
        """Write a word diff in colours, wrapped at spaces."""
        width = max(self.terminal.width, 40) - len(indent)
        line: list[tuple[str, str]] = []
        room = width
        for sign, text in parts:
            for piece in re.split(r"(\n| +)", text.replace("\t", "    ")):
                if piece == "\n" or columns(piece) > room < width:
                    self._painted(indent, line)
                    line, room = [], width
                if piece == "\n" or (room == width and not piece.strip(" ")):
                    continue  # a line does not begin with a space at which it was broken
                piece = self.terminal.fit(safe(piece, MAX_CHARACTERS))
                line.append((sign, piece))
                room -= columns(piece)
        self._painted(indent, line)

    def _painted(self, indent: str, pieces: Sequence[tuple[str, str]]) -> None:
        """Write a line of a word diff."""
        groups = groupby(pieces, key=lambda piece: piece[0])
        texts = ((sign, "".join(text for _, text in group)) for sign, group in groups)
        painted = (self.terminal.paint(text, *_DIFF_STYLES[sign]) for sign, text in texts)
        self._out.write(f"{indent}{''.join(painted)}\n")

    def listed(self, texts: Sequence[str], indent: str) -> None:
        """Write the first texts as a list, and how many more there are."""
        for text in texts[:MAX_LISTED]:
            self.prose(f"{indent}- ", safe(text))
        if len(texts) > MAX_LISTED:
            self.line(f"{indent}and {len(texts) - MAX_LISTED:,} more")

    def table(
        self, rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), shrink: Sequence[int]
    ) -> None:
        """Write a table with a row of heads; columns of `shrink` are truncated if it is too wide.

        The numbers of the `right` columns are aligned on the right.
        """
        rows = [[self.terminal.fit(cell) for cell in row] for row in rows]
        widths = fitted(rows, self.terminal.width, shrink)
        for number, row in enumerate(rows):
            cells = []
            for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
                cell = cut_middle(cell, width)
                space = " " * (width - columns(cell))
                cells.append(space + cell if column in right else cell + space)
            self.whole("  ".join(cells).rstrip(), *(("bold",) if number == 0 else ()))


def _height(lines: Sequence[str], width: int) -> int:
    """How many lines a terminal shows, which breaks those that are too long."""
    return sum(max(-(-columns(line) // width), 1) for line in lines)


def table_width(rows: Sequence[Sequence[str]]) -> int:
    """The width of a table in which no cell is truncated."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


def fitted(rows: Sequence[Sequence[str]], width: int, shrink: Sequence[int]) -> list[int]:
    """The widths of the columns; the widest of `shrink` give way until the table fits."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    while excess > 0:
        widest = max(shrink, key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def text_lines(text: str, most: int = MAX_LINES) -> Iterator[str]:
    """The lines of an untrusted text; of a long one the middle is left out, which is counted."""
    start, end, left_out = text, "", 0
    if len(text) > MAX_CHARACTERS:
        half = MAX_CHARACTERS // 2
        start, end = current().start(text, half), current().end(text, half)
        left_out = len(text) - len(start) - len(end)
    lines = _split(start)
    if left_out:
        lines += [f"[... {left_out:,} characters left out ...]", *_split(end)]
    if len(lines) <= most:
        return iter(lines)
    head = most // 2
    middle = f"[... {len(lines) - most:,} lines left out ...]"
    return iter([*lines[:head], middle, *lines[len(lines) - (most - head) :]])


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
