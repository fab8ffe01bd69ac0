"""A parsed document: plain data, and the line and column of every part of it.

Marks mirror the data. A scalar's mark is one `Mark`; a container's is a list that starts
with the container's own mark and goes on with its children's: for a sequence one entry an
item, for a mapping two entries a pair, the key's mark and the value's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from assay.errors import EvalFileErrors, Problem

DocPath = tuple[str | int, ...]
Marks = Any  # recursive: Mark | list[Mark | Marks]

MAX_DEPTH = 100
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_SCALAR = 10 * 1024 * 1024
#: Of a line of JSONL, in bytes.
MAX_LINE = 4 * MAX_SCALAR
#: After so many problems in one place, what they say is kept cheap.
MANY = 100


class Mark(Protocol):
    """A place in a text, counted from 0; PyYAML's marks fit."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def index(self) -> int: ...


class TextMark(NamedTuple):
    """A mark made by us; `index` is the character's offset."""

    line: int
    column: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which no one needs here


class Document:
    """The data of one file or one line, with what was wrong in its syntax."""

    __slots__ = ("_marks", "_places", "_start", "data", "file", "problems")

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
        self._places: dict[int, dict[Any, int]] = {}  # of large mappings, by identity

    @classmethod
    def unplaced(cls, name: str, data: Any) -> Document:
        """Data that stands in no text: problems with it name it, and no line."""
        return cls(name, data, [], TextMark(-1, -1, 0))

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.file, self.data, self.problems, self.marks, self._start)

    def part(self, path: DocPath) -> Document:
        """What stands at `path` as a document of its own; empty when nothing does."""
        data, marks = self.data, self.marks
        for step in path:
            index = self._child(data, step)
            if index is None or not isinstance(marks, list):
                return Document(self.file, None, [], _own(marks))
            data, marks = data[step], marks[index]
        return Document(self.file, data, [], marks)

    @property
    def marks(self) -> Marks:
        """The marks; for JSON they are found by a second scan when first asked for."""
        if callable(self._marks):
            self._marks = self._marks()
        return self._marks

    def mark(self, path: Iterable[str | int], *, key: bool = False) -> Mark:
        """The mark of the value at `path` (or of its key); of the nearest part that exists."""
        path = tuple(path)
        if not path and self._start is not None:
            return self._start
        data, marks, found = self.data, self.marks, None
        for step in path:
            index = self._child(data, step)
            if index is None or not isinstance(marks, list):
                return _own(marks)
            found = marks[index - 1] if isinstance(data, dict) else None
            data, marks = data[step], marks[index]
        return found if key and found is not None else _own(marks)

    def _child(self, data: Any, step: str | int) -> int | None:
        """Index of a child's mark among its container's marks."""
        if isinstance(data, dict) and step in data:
            if len(data) < MANY:
                return 2 * list(data).index(step) + 2
            if id(data) not in self._places:
                self._places[id(data)] = {key: 2 * i + 2 for i, key in enumerate(data)}
            return self._places[id(data)][step]
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
        """Where containers stand below a path, by identity; those that do not are left out."""
        wanted = {id(container) for container in containers}
        found: dict[int, DocPath] = {}
        todo: list[tuple[DocPath, Any]] = [(below, self.get(below))]
        seen: set[int] = set()
        while todo and len(found) < len(wanted):
            path, node = todo.pop()
            if id(node) in seen or not isinstance(node, (dict, list)):
                continue
            seen.add(id(node))
            if id(node) in wanted:
                found[id(node)] = path
            items = node.items() if isinstance(node, dict) else enumerate(node)
            todo += [((*path, k), v) for k, v in items if isinstance(v, (dict, list))]
        return found


def _own(marks: Marks) -> Mark:
    mark: Mark = marks[0] if isinstance(marks, list) else marks
    return mark


def problem_at(file: str, mark: Mark, code: str, message: str, hint: str = "") -> Problem:
    return Problem(file, mark.line + 1, mark.column + 1, "error", code, message, hint)


def fail(file: str, mark: Mark, code: str, message: str, hint: str = "") -> EvalFileErrors:
    """The error to raise when a document cannot be read any further."""
    return EvalFileErrors([problem_at(file, mark, code, message, hint)])


class LineIndex:
    """Character offsets of a text to marks; lines end with \\n, \\r\\n or \\r."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\r\n|\r|\n", text))]
        self.first_line = first_line

    def mark(self, index: int) -> TextMark:
        line = bisect_right(self.starts, index) - 1
        return TextMark(line + self.first_line - 1, index - self.starts[line], index)


def too_deep(data: Any) -> bool:
    """Is `data` nested deeper than the limit? Walks level by level, without recursion."""
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
    """How many nodes `data` is and how deep, aliases counted as often as they are used.

    `known` remembers containers by identity: an alias bomb is measured in linear time.
    """
    if not isinstance(data, (dict, list)):
        return 1, 0
    todo = [data]
    while todo:
        node = todo[-1]
        children = node.values() if isinstance(node, dict) else node
        nested = [child for child in children if isinstance(child, (dict, list))]
        waiting = [child for child in nested if id(child) not in known]
        if waiting:
            todo.extend(waiting)
            continue
        measures = [known[id(child)] for child in nested]
        size = 1 + len(node) - len(nested) + sum(size for size, _ in measures)
        known[id(node)] = size, 1 + max((depth for _, depth in measures), default=0)
        todo.pop()
    return known[id(data)]
