"""What a reader of documents makes of texts: the document, or its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from assay.errors import EvalFileErrors
from assay.problems import Problem
from assay.wire.document import DocPath, Document


@dataclass(frozen=True)
class Texts:
    """The texts of one file, read by one parser."""

    parse: Callable[[str, str], Document]
    file: str

    def read(self, text: str) -> Document:
        """The document of a text without any problem."""
        document = self.parse(text, self.file)
        assert document.problems == []
        return document

    def noted(self, text: str) -> list[str]:
        """The places of the problems that do not stop the reader."""
        return [place(problem) for problem in self.parse(text, self.file).problems]

    def refused(self, text: str) -> Problem:
        """The problem that stops the reader."""
        with pytest.raises(EvalFileErrors) as caught:
            self.parse(text, self.file)
        (problem,) = caught.value.problems
        assert (problem.file, problem.severity) == (self.file, "error")
        return problem


def place(problem: Problem) -> str:
    return f"{problem.line}:{problem.column} {problem.code}"


def paths(value: Any, path: DocPath = ()) -> Iterator[tuple[DocPath, Any]]:
    """Every part of the data with its path."""
    yield path, value
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for step, item in items:
            yield from paths(item, (*path, step))
