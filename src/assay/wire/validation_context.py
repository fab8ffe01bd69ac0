"""The context in which the data of one file is validated."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import msgspec

from assay.caching import ReuseCache
from assay.problems import Severity


class Note(msgspec.Struct, frozen=True):
    """A problem with a key of a raw container, whose position the loader finds by identity."""

    container: object
    key: str
    severity: Severity
    code: str
    message: str
    hint: str = ""


def _no_finder(name: str) -> Any:
    raise LookupError(name)  # pragma: no cover - the shape has no files or evaluators


class ValidationContext(msgspec.Struct):
    """The context in which the data of one file is validated, and the notes that are collected.

    The finders are only needed for shapes with files or evaluators.
    """

    find_file: Callable[[str], Path] = _no_finder
    find_folder: Callable[[str], Path] = _no_finder
    find_evaluator: Callable[[str], type[Any]] = _no_finder
    evaluators: Container[str] = ()
    notes: list[Note] = []
    #: the validators of evaluator types that were found before
    validators: dict[str, Callable[..., Any]] = {}
    #: whether lists of evaluators are validated entry by entry, as something in them is invalid
    one_by_one: bool = False
    #: a cache of entries by content, so that equal ones are one object, prepared once
    known: ReuseCache[bytes, Any] = msgspec.field(default_factory=ReuseCache)
