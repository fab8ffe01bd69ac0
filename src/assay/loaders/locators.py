"""Finds the positions of parts of a case in its file, on demand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from assay.model.case import Origin
from assay.model.suite import CaseFile
from assay.wire.document import DocPath, Document
from assay.wire.json import Reader, line_text
from assay.wire.shape import Shape
from assay.wire.validation import written_path


class Locator(msgspec.Struct):
    """Finds the parts of the case at `path` of a document.

    `shape` has their aliases; `suite` is the document with the keys of the suite, if another
    one, and `suite_path` the path of its `execution`.
    """

    document: Document
    path: DocPath
    shape: type[Shape] = CaseFile
    suite: Document | None = None
    suite_path: DocPath = ("execution",)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the parts that concern this case, not the whole file."""
        suite = (self.suite or self.document).part(self.suite_path)
        return Locator, (self.document.part(self.path), (), self.shape, suite, ())

    def __call__(self, steps: Sequence[str | int]) -> Origin:
        document, base = self.document, self.path
        if steps and steps[0] == "evaluators":
            document, base, steps = self._evaluator(steps)
        path = written_path(document, base, steps, self.shape)
        return Origin(document.file, *document.position(path))

    def _evaluator(
        self, steps: Sequence[str | int]
    ) -> tuple[Document, DocPath, Sequence[str | int]]:
        """The list is in the case, its `execution`, or the suite; inline blocks come after it."""
        candidates: list[tuple[Document, DocPath]] = [
            (self.document, self.path),
            (self.document, (*self.path, "execution")),
            (self.suite or self.document, self.suite_path),
        ]
        listed = 0
        for document, base in candidates:
            found = document.get(written_path(document, base, ("evaluators",), self.shape))
            if isinstance(found, list):
                if len(steps) < 2 or _index(steps[1]) < len(found):
                    return document, base, steps
                listed = len(found)
                break
        case = self.document.get(self.path)
        inline = [key for key in _INLINE if isinstance(case, dict) and case.get(key) is not None]
        index = _index(steps[1]) - listed if len(steps) > 1 else 0
        if index < len(inline):
            key, rest = inline[index], steps[2:]
            if key != "expect" and rest and rest[0] == "rubrics":
                rest = rest[1:]  # in the case, `rubrics` is the list itself
            return self.document, self.path, (key, *rest)
        return self.document, self.path, ()


def _index(step: str | int) -> int:
    """The index in a path; a text that is not a number is beyond every list."""
    return int(step) if str(step).isdecimal() else sys.maxsize


#: The keys of a case that add an evaluator, in the order of the evaluators.
_INLINE = ("rubrics", "rubric", "expect")


class LineLocator(msgspec.Struct):
    """Finds the parts of a case on a line of JSONL, which is parsed again on demand."""

    file: str
    number: int
    data: bytes
    sidecar: Document | None
    document: Document | None = None

    def __call__(self, steps: Sequence[str | int]) -> Origin:
        if not steps:  # the case itself, which is in every result
            return Origin(self.file, self.number, self._column())
        if self.document is None:
            self.document = Reader(self.file).line(self.data, self.number)
        return Locator(self.document, (), suite=self.sidecar)(steps)

    def _column(self) -> int:
        """The column where the case starts."""
        if self.data.startswith(b"{"):
            return 1
        text = line_text(self.data, self.file, self.number)
        return len(text) - len(text.lstrip()) + 1
