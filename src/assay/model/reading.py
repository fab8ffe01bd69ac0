"""Reading: what validating one file needs beyond the data, and what it notes on the way."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import Severity
from assay.memory import Remembered


class Note(msgspec.Struct, frozen=True):
    """Something to tell about one key of one raw container; the loader finds its position."""

    container: object
    key: str
    severity: Severity
    code: str
    message: str
    hint: str = ""


def _unnamed(name: str) -> Any:
    raise LookupError(name)  # pragma: no cover - the shape names no file or evaluator


class Reading(msgspec.Struct):
    """What validating one file needs beyond the data, and what it notes on the way.

    Shapes that name no files or evaluators need nothing to find them.
    """

    find_file: Callable[[str], Path] = _unnamed
    find_folder: Callable[[str], Path] = _unnamed
    find_evaluator: Callable[[str], type[Any]] = _unnamed
    evaluators: Container[str] = ()
    notes: list[Note] = []
    #: how the types of evaluators that were met are validated, so that none is looked for twice
    validators: dict[str, Callable[..., Any]] = {}
    #: whether lists of evaluators are looked at entry by entry, as something in them is wrong
    careful: bool = False
    #: entries that were met before, by their content; equal ones are one object, prepared once
    known: Remembered[bytes, Any] = msgspec.field(default_factory=Remembered)
