"""Makes several cases of one that has `vars` or `vars_from`; shared by all loaders."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from assay.errors import EvalFileErrors
from assay.model.case import EvalCase
from assay.model.parameters import (
    MAX_ROWS,
    REPLACED,
    Parameters,
    Row,
    check_name,
    check_row,
    names_in,
    row_of,
    substituted,
    unknown_name,
)
from assay.problems import Problem, Problems
from assay.settings import shown_path
from assay.wire.csv_formulas import restored
from assay.wire.document import DocPath, Document
from assay.wire.json import Reader
from assay.wire.text_files import read_text
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import problem

KEYS = ("vars", "vars_from")
#: Reads a case of a document whose names are replaced.
ReadCase = Callable[[Document, DocPath], EvalCase | None]
#: A file, a line and a column.
Place = tuple[str, int, int]
#: The rows of a file, and where each is.
FileRows = tuple[list[dict[str, Any]], list[Place]]
ReadFile = Callable[[Path], FileRows]


def _item(places: list[Place], index: int) -> Place:
    return places[index]


class Declared(msgspec.Struct):
    """Rows, where each was written, and which of their names were used."""

    rows: Sequence[Row]
    place: Callable[[int], Place]
    declared_at: Place
    #: whether they belong to one case: then each of its names must be used in it
    own: bool = True
    used: set[str] = msgspec.field(default_factory=set)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.values))

    def unused(self) -> Iterator[Problem]:
        """An error for each name that no case used; an id is always a label."""
        for name in self.names:
            if name not in self.used and name != "id":
                message = f"'vars' declares {name!r}, which nothing uses"
                hint = f"write {{{{{name}}}}} in the input or what is expected, or remove it"
                yield Problem(*self.declared_at, "error", "unused-name", message, hint)


def declares(raw: Any) -> bool:
    """Does this raw case or suite declare values?"""
    return type(raw) is dict and (raw.get("vars") is not None or raw.get("vars_from") is not None)


def declared(
    document: Document,
    path: DocPath,
    context: ValidationContext,
    problems: Problems,
    read_file: ReadFile,
) -> Declared | None:
    """The rows of a case or a suite; None if they are invalid, which is a problem."""
    raw = document.get(path)
    keys, found = check(Parameters, document, path, {k: raw[k] for k in KEYS if k in raw}, context)
    if keys is None or found:
        problems += found
        return None
    key = "vars" if keys.vars is not None else "vars_from"
    at = (document.file, *document.position((*path, key), key=True))
    if keys.vars is not None:
        rows, place = keys.vars, partial(_place_in, document, path)
    else:
        try:
            rows, places = read_file(context.find_file(keys.vars_from or ""))
        except PydanticCustomError as error:
            context_of = error.context or {}
            code, hint = str(context_of["slug"]), str(context_of["hint"])
            problems.append(document.problem((*path, key), code, error.message(), hint))
            return None
        except EvalFileErrors as error:
            problems += error.problems
            return None
        place = partial(_item, places)
    made = [row_of(row, number) for number, row in enumerate(rows, 1)]
    return _labelled(Declared(made, place, at), problems)


def _place_in(document: Document, path: DocPath, index: int) -> Place:
    """Where a row of `vars` is: an item of its list, or of the list of its only name."""
    written = document.get((*path, "vars"))
    steps = (index,) if isinstance(written, list) else (*written, index)
    return document.file, *document.position((*path, "vars", *steps))


def _labelled(found: Declared, problems: Problems) -> Declared | None:
    """The rows, unless two have the same label."""
    seen: dict[str, int] = {}
    valid = True
    for index, row in enumerate(found.rows):
        first = seen.setdefault(row.label, index)
        if first != index:
            valid = False
            where = "row" if found.place(first)[0] == found.place(index)[0] else "file row"
            message = f"the label {row.label!r} is that of {where} {first + 1}, too"
            hint = "give the rows different values of 'id'"
            problems.append(Problem(*found.place(index), "error", "duplicate-id", message, hint))
    return found if valid else None


def expanded(
    document: Document,
    path: DocPath,
    rows: Declared,
    read: ReadCase,
    problems: Problems,
    *,
    default_id: str = "",
    only: int | None = None,
) -> Iterator[EvalCase]:
    """A case for each row, or `only` for one; none after the first that is invalid."""
    raw = document.get(path)
    replaced = {key: value for key, value in raw.items() if key in REPLACED}
    found = dict.fromkeys(name for _, name in names_in(replaced))
    if not _check_names(document, path, replaced, rows, problems):
        return
    part = document.part(path)
    base = raw.get("id", default_id)
    numbers = range(len(rows.rows))
    for index in numbers if only is None else numbers[only : only + 1]:
        row = rows.rows[index]
        if missing := [name for name in found if name not in row.values]:
            message = f"the row {row.label!r} has no value for {missing[0]!r}"
            problems.append(Problem(*rows.place(index), "error", "missing-key", message))
            return
        data = {**raw, **dict.fromkeys(KEYS & raw.keys())}
        data |= {key: substituted(value, row.values) for key, value in replaced.items()}
        if isinstance(base, str):
            data["id"] = f"{base}[{row.label}]"
        case = read(part.with_data(data), ())
        if case is None:
            return
        yield case.replace(
            tags=tuple(dict.fromkeys((*case.tags, *row.tags))),
            metadata={**case.metadata, **row.metadata},
            description=row.description(case.description),
        )


def _check_names(
    document: Document, path: DocPath, replaced: Any, rows: Declared, problems: Problems
) -> bool:
    """Report names that are not declared, or of a case's own rows not used."""
    names, valid = rows.names, True
    for steps, name in names_in(replaced):
        rows.used.add(name)
        if name not in names and steps[-1:] != ("prompt",):
            message, hint = unknown_name(name, names)
            problems.append(document.problem((*path, *steps), "bad-token", message, hint))
            valid = False
    if rows.own and (unused := [*rows.unused()]):
        problems += unused
        valid = False
    return valid


def uses_names(raw: Any) -> bool:
    """Does a raw case have names between braces, so that rows of its suite make a difference?"""
    return type(raw) is dict and any(
        True for key in REPLACED if key in raw for _ in names_in(raw[key])
    )


def rows_of_file(file: Path) -> FileRows:
    """The rows of a CSV or JSONL file, and where each is; raises EvalFileErrors."""
    name = shown_path(file)
    if file.suffix not in (".csv", ".jsonl"):
        message = f"{file.name!r} is not a file of rows"
        raise problem("unknown-format", message, "its name must end with .csv or .jsonl")
    text = read_text(file, name)
    lines = _csv_rows(text, name) if file.suffix == ".csv" else _jsonl_rows(text, name)
    rows: list[dict[str, Any]] = []
    places: list[Place] = []
    for line, row in lines:
        place = (name, line, 1)
        if len(rows) == MAX_ROWS:
            message = f"the file has more than {MAX_ROWS:,} rows"
            raise EvalFileErrors([Problem(*place, "error", "too-large", message)])
        try:
            check_row(row)
        except (PydanticCustomError, ValidationError) as error:
            raise EvalFileErrors([_row_problem(error, place)]) from None
        rows.append(row)
        places.append(place)
    if not rows:
        message, hint = "the file has no row", "each row makes a case"
        raise EvalFileErrors([Problem(name, 1, 1, "error", "no-cases", message, hint)])
    return rows, places


def _row_problem(error: Any, place: Place) -> Problem:
    if isinstance(error, ValidationError):
        fault: Any = error.errors(include_url=False)[0]
        found = fault["ctx"]
    else:
        found = error.context
    text = found["text"]
    message = f"the row {text}" if text.startswith("is ") else text
    return Problem(*place, "error", found["slug"], message, found["hint"])


def _jsonl_rows(text: str, name: str) -> Iterator[tuple[int, Any]]:
    reader = Reader(name)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, reader.line(line.encode(), number).data


def _csv_rows(text: str, name: str) -> Iterator[tuple[int, Any]]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        for key in header:
            check_name(key)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                message = f"the row has {len(cells)} cells; the header has {len(header)}"
                place = (name, reader.line_num, 1)
                raise EvalFileErrors([Problem(*place, "error", "csv-syntax", message)])
            values = dict(zip(header, map(restored, cells), strict=True))
            yield reader.line_num, _csv_row(values)
    except csv.Error as error:
        place = (name, reader.line_num, 1)
        raise EvalFileErrors([Problem(*place, "error", "csv-syntax", str(error))]) from None
    except ValidationError as error:
        raise EvalFileErrors([_row_problem(error, (name, 1, 1))]) from None


def _csv_row(values: dict[str, str]) -> dict[str, Any]:
    """A row whose empty cells are not given; tags are separated by commas or semicolons."""
    row: dict[str, Any] = {key: cell for key, cell in values.items() if cell.strip()}
    if "tags" in row:
        tags = row["tags"].replace(";", ",").split(",")
        row["tags"] = [tag.strip() for tag in tags if tag.strip()]
    return row
