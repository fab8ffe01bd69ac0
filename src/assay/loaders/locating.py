"""Where the parts of a case stand in its file, found when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.documents.checking import written_path
from assay.documents.document import DocPath, Document
from assay.documents.json import Reader
from assay.model.case import Origin


@dataclass(frozen=True, slots=True)
class Locator:
    """Finds the parts of the case at `path` of a document."""

    document: Document
    path: DocPath

    def __call__(self, steps: Sequence[str | int]) -> Origin:
        document = self.document
        path = written_path(document, (*self.path, *steps))
        if steps and steps[0] == "evaluators":
            path = self._evaluator(tuple(steps))
        return Origin(document.file, *document.position(path))

    def _evaluator(self, steps: DocPath) -> DocPath:
        """The list of evaluators may be the case's, in its `execution`, or the suite's."""
        for base in (self.path, (*self.path, "execution"), ("execution",)):
            path = written_path(self.document, (*base, *steps))
            if _exists(self.document.data, path[: len(base) + 1]):
                return path
        return self.path


def _exists(data: Any, path: DocPath) -> bool:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


@dataclass(frozen=True, slots=True)
class LineLocator:
    """Finds the parts of a case on a line of JSONL; it keeps the text and parses it again."""

    file: str
    number: int
    text: str

    def __call__(self, steps: Sequence[str | int]) -> Origin:
        document = Reader(self.file).parse(self.text, self.number)
        return Locator(document, ())(steps)
