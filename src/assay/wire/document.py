"""A parsed document: plain data, and the line and column of every part of it.

Marks mirror the data. A scalar's mark is one `Mark`; a container's is a list that starts
with the container's own mark, followed by those of its children: for a sequence one entry
per item, for a mapping two entries per pair, the mark of the key and that of the value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from assay.errors import EvalFileErrors
from assay.problems import Problem

DocPath = tuple[str | int, ...]
Marks = Any  # recursive: Mark | list[Mark | Marks]

MAX_DEPTH = 100
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_SCALAR = 10 * 1024 * 1024
#: The longest line of JSONL, in bytes.
MAX_LINE = 4 * MAX_SCALAR
#: From this many problems or keys on, a linear search for each would take too long.
MANY = 100


class Mark(Protocol):
    """A position in a text, counted from 0; PyYAML's marks qualify."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def index(self) -> int: ...


class TextMark(NamedTuple):
    """Our own mark; `index` is the offset in characters."""

    line: int
    column: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not needed here


class Document:
    """The data of one file or line, its marks, and the problems in its syntax."""

    __slots__ = ("_key_indexes", "_marks", "_start", "data", "file", "problems")

    def __init__(
        self,
        file: str,
        data: Any,
        problems: list[Problem],
        marks: Marks | Callable[[], Marks],
        start: Mark | None = None,
    ) -> None:
        self.file, self.data, self.problems = file, data, problems
        self._marks, self._start = marks, start
        self._key_indexes: dict[int, dict[Any, int]] = {}  # of large mappings, by id()

    @classmethod
    def unplaced(cls, name: str, data: Any) -> Document:
        """Data without a text: its problems have a name but no line."""
        return cls(name, data, [], TextMark(-1, -1, 0))

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.file, self.data, self.problems, self.marks, self._start)

    def part(self, path: DocPath) -> Document:
        """The part at `path` as a document of its own; empty when there is none."""
        data, marks = self.data, self.marks
        for step in path:
            index = self._child_index(data, step)
            if index is None or not isinstance(marks, list):
                return Document(self.file, None, [], _own_mark(marks))
            data, marks = data[step], marks[index]
        return Document(self.file, data, [], marks)

    def with_data(self, data: Any) -> Document:
        """Other data at the same places: what its structure lacks has that of what encloses it."""
        return Document(self.file, data, [], lambda: self.marks, self._start)

    @property
    def marks(self) -> Marks:
        """The marks; for JSON, a second scan finds them on first use."""
        if callable(self._marks):
            self._marks = self._marks()
        return self._marks

    def mark(self, path: Iterable[str | int], *, key: bool = False) -> Mark:
        """The mark of the value at `path` or of its key, else of the nearest part that exists."""
        path = tuple(path)
        if not path and self._start is not None:
            return self._start
        data, marks, found = self.data, self.marks, None
        for step in path:
            index = self._child_index(data, step)
            if index is None or not isinstance(marks, list):
                return _own_mark(marks)
            found = marks[index - 1] if isinstance(data, dict) else None
            data, marks = data[step], marks[index]
        return found if key and found is not None else _own_mark(marks)

    def _child_index(self, data: Any, step: str | int) -> int | None:
        """The index of a child's mark in the marks of its container."""
        if isinstance(data, dict) and step in data:
            if len(data) < MANY:
                return 2 * list(data).index(step) + 2
            if id(data) not in self._key_indexes:
                self._key_indexes[id(data)] = {key: 2 * i + 2 for i, key in enumerate(data)}
            return self._key_indexes[id(data)][step]
        if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data):
            return step + 1
        return None

    def get(self, path: Iterable[str | int]) -> Any:
        """The value at `path`; None when there is none."""
        data = self.data
        for step in path:
            try:
                data = data[step]
            except (KeyError, IndexError, TypeError):
                return None
        return data

    def position(self, path: Iterable[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column, counted from 1, of the value at `path` or of its key."""
        mark = self.mark(path, key=key)
        return mark.line + 1, mark.column + 1

    def place(self, path: Iterable[str | int]) -> tuple[str, int, int]:
        """The file, the line and the column of the value at `path`."""
        return self.file, *self.position(path)

    def problem(
        self, path: Iterable[str | int], code: str, message: str, hint: str = ""
    ) -> Problem:
        """An error about the value at `path`."""
        return Problem(self.file, *self.position(path), "error", code, message, hint)

    def warning(
        self, path: Iterable[str | int], code: str, message: str, hint: str = ""
    ) -> Problem:
        """A warning about the key at `path`."""
        return Problem(self.file, *self.position(path, key=True), "warning", code, message, hint)

    def paths_of(self, containers: Iterable[object], below: DocPath = ()) -> dict[int, DocPath]:
        """The paths of containers below a path, by id(); those not found are left out."""
        wanted = {id(container) for container in containers}
        found: dict[int, DocPath] = {}
        pending: list[tuple[DocPath, Any]] = [(below, self.get(below))]
        seen: set[int] = set()
        while pending and len(found) < len(wanted):
            path, node = pending.pop()
            if id(node) in seen or not isinstance(node, (dict, list)):
                continue
            seen.add(id(node))
            if id(node) in wanted:
                found[id(node)] = path
            items = node.items() if isinstance(node, dict) else enumerate(node)
            pending += [((*path, k), v) for k, v in items if isinstance(v, (dict, list))]
        return found


def _own_mark(marks: Marks) -> Mark:
    mark: Mark = marks[0] if isinstance(marks, list) else marks
    return mark


def problem_at(file: str, mark: Mark, code: str, message: str, hint: str = "") -> Problem:
    return Problem(file, mark.line + 1, mark.column + 1, "error", code, message, hint)


def fail(file: str, mark: Mark, code: str, message: str, hint: str = "") -> EvalFileErrors:
    """The error to raise when a document cannot be read any further."""
    return EvalFileErrors([problem_at(file, mark, code, message, hint)])


def bad_number(text: str, key: str | None) -> str:
    """The message about a number that JSON does not have, and the key that it is the value of."""
    shown = text if len(text) <= 40 else f"{text[:20]}... ({len(text):,} characters)"
    if key is None:
        return f"{shown} is not a finite number that fits 64 bits"
    return f"{key!r} is {shown}; it must be a finite number that fits 64 bits"


class LineIndex:
    """Converts character offsets to marks; lines end with \\n, \\r\\n or \\r."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\r\n|\r|\n", text))]
        self.first_line = first_line

    def mark(self, index: int) -> TextMark:
        line = bisect_right(self.starts, index) - 1
        return TextMark(line + self.first_line - 1, index - self.starts[line], index)


def too_deep(data: Any) -> bool:
    """Is `data` nested deeper than MAX_DEPTH? Goes level by level, without recursion."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def measure(data: Any, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The number of nodes and the depth of `data`; aliases count each time they are used.

    `known` caches containers by id(), so that an alias bomb is measured in linear time.
    """
    if not isinstance(data, (dict, list)):
        return 1, 0
    pending = [data]
    while pending:
        node = pending[-1]
        children = node.values() if isinstance(node, dict) else node
        nested = [child for child in children if isinstance(child, (dict, list))]
        waiting = [child for child in nested if id(child) not in known]
        if waiting:
            pending.extend(waiting)
            continue
        measures = [known[id(child)] for child in nested]
        size = 1 + len(node) - len(nested) + sum(size for size, _ in measures)
        known[id(node)] = size, 1 + max((depth for _, depth in measures), default=0)
        pending.pop()
    return known[id(data)]
