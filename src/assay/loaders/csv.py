"""CSV suites: a header row, then one case per row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from assay.errors import EvalFileErrors, nearest
from assay.loaders.cases import CaseReader
from assay.loaders.locators import Locator
from assay.loaders.sidecars import SuiteKeys
from assay.loaders.suite import suite_of
from assay.model.case import EvalCase, EvalSuite
from assay.model.suite import CaseFile, SuiteFile
from assay.problems import Problem, Problems
from assay.settings import Settings, shown_path
from assay.wire.csv_formulas import restored
from assay.wire.document import MAX_SCALAR, Document, LineIndex, Marks, TextMark, problem_at
from assay.wire.text_files import read_text

#: Columns that are keys of the case; there may be `metadata.*` columns as well.
COLUMNS = (
    "id",
    "description",
    "input",
    "expected_output",
    "expected_outcome",
    "outcome",
    "criteria",
    "conversation_id",
    "cluster",
    "skip",
    "tags",
)


def load(file: Path, settings: Settings) -> EvalSuite:
    """Load the suite of a file; raises EvalFileErrors with all of its problems."""
    return suite_of(file, SuiteFile(), *cases_of(file, settings, SuiteKeys(SuiteFile())))


def cases_of(
    file: Path, settings: Settings, suite: SuiteKeys
) -> tuple[Sequence[EvalCase], Problems]:
    """The cases of a file, and its problems with those of the suite's keys."""
    name = shown_path(file)
    rows = _rows(read_text(file, name), name)
    reader = suite.reader(file, settings)
    reader.problems += suite.problems
    header = _header(rows, name, reader.problems)
    # An unknown column may be the one that a row seems to lack.
    reader.incomplete = reader.problems.errors > 0
    cases: list[EvalCase] = []
    try:
        if not reader.incomplete or {"id", "input"}.issubset(header):
            cases.extend(_cases(rows, header, reader, suite))
    except EvalFileErrors as error:  # broken quotes: the rows after them cannot be split
        reader.problems += error.problems
    if not reader.problems.errors and not cases:
        message, hint = "there is no row below the header", "one row is one case"
        reader.problems.append(Problem(name, 1, 1, "error", "no-cases", message, hint))
    return tuple(cases), reader.problems


def recognises(file: Path) -> str:
    """A CSV file in a directory must be named `*.eval.csv`."""
    return "" if ".eval." in file.name else "not named *.eval.csv"


class _Row(NamedTuple):
    """One row: its cells, and its text, to find their positions when there are problems."""

    cells: list[str]
    line: int
    text: str

    def marks(self) -> list[TextMark]:
        """Where each cell starts."""
        lines = LineIndex(self.text, self.line)
        return [lines.mark(m.start()) for m in _CELL.finditer(self.text)][: len(self.cells)]


# Possessive quantifiers: no backtracking into a cell, however many quotes it has.
_CELL = re.compile(r'(?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z)|[^,\r\n]*+)(?:,|\r\n|\r|\n|\Z)')


#: Cells, then a quoted one that is followed by something other than a comma.
_TEXT_AFTER_QUOTES = re.compile(
    r'(?:(?:"[^"]*+(?:""[^"]*+)*+"|[^",\r\n][^,\r\n]*+|),)*+"[^"]*+(?:""[^"]*+)*+"(?=[^,\r\n])'
)


def _rows(text: str, file: str) -> Iterator[_Row]:
    """The rows that are not blank."""
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            consumed.append(line)
            yield line

    # The limit is global, and is not lowered again: another thread may be reading.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_SCALAR))
    reader = csv.reader(lines(), strict=True)
    try:
        for cells in reader:
            if cells:
                if max(map(len, cells)) > MAX_SCALAR:  # the limit of the process may be higher
                    raise csv.Error("field larger than field limit")
                yield _Row(cells, reader.line_num - len(consumed) + 1, "".join(consumed))
            consumed.clear()
    except csv.Error as error:
        line = max(reader.line_num - len(consumed) + 1, 1)
        raise EvalFileErrors([_syntax_problem(file, line, "".join(consumed), str(error))]) from None


def _syntax_problem(file: str, line: int, text: str, message: str) -> Problem:
    """The problem of a row, starting on this line, that the parser refused."""
    for cell in _CELL.finditer(text):
        if len(cell[0]) > MAX_SCALAR:
            mark = LineIndex(text, line).mark(cell.start())
            message = f"a cell of more than {MAX_SCALAR:,} characters"
            return problem_at(file, mark, "too-large", message)
    if match := _TEXT_AFTER_QUOTES.match(text):
        mark = LineIndex(text, line).mark(match.end())
        return problem_at(file, mark, "csv-syntax", "text after the closing quote of a cell")
    hint = "the quote at the start of a cell is never closed" if "end of data" in message else ""
    return Problem(file, line, 1, "error", "csv-syntax", message, hint)


def _header(rows: Iterator[_Row], file: str, problems: Problems) -> list[str]:
    """The names of the columns, empty for ignored ones; adds to the problems."""
    row = next(rows, None)
    if row is None:
        problems.append(Problem(file, 1, 1, "error", "no-cases", "the file is empty"))
        return []
    names = [cell.strip() for cell in row.cells]
    marks = row.marks()
    if len(names) == 1 and re.search("[;\t|]", names[0]):
        message = f"the header {names[0]!r} is one column"
        hint = "separate the columns by commas"
        problems.append(problem_at(file, marks[0], "csv-syntax", message, hint))
        return [""]
    seen: set[str] = set()
    for index, name in enumerate(names):
        if problems.full:
            break
        code, message, hint = "", "", ""
        if name in seen:
            code, message = "duplicate-key", f"the column {name!r} appears twice"
        elif name not in COLUMNS and not name.startswith(("metadata.", "vars.", "x-")):
            code, message = "unknown-key", f"the column {name!r} is not known"
            hint = _meant(name) or "other data goes into 'metadata.<name>' columns"
        seen.add(name)
        if code:
            problems.append(problem_at(file, marks[index], code, message, hint))
        if code or name.startswith("x-"):
            names[index] = ""
    if "input" not in names and not any(_meant(cell) == _meant("input") for cell in row.cells):
        message = "there is no 'input' column"
        problems.append(Problem(file, row.line, 1, "error", "missing-key", message))
    return names


def _meant(name: str) -> str:
    """A hint with the column that was meant; empty when none is near."""
    meant = CaseFile.key_names.mistaken.get(name.strip().lower(), name.strip())
    return nearest(meant, COLUMNS)


def _cases(
    rows: Iterator[_Row], header: list[str], reader: CaseReader, suite: SuiteKeys
) -> Iterator[EvalCase]:
    file, seen = reader.problems.file, dict[str, int]()
    for row in rows:
        if reader.problems.full:
            break
        if len(row.cells) != len(header):
            message = f"the row has {len(row.cells)} cells; the header has {len(header)}"
            reader.problems.append(Problem(file, row.line, 1, "error", "csv-syntax", message))
            continue
        data = _raw_case(header, row.cells)
        document = Document(
            file, data, [], partial(_marks, data, header, row), TextMark(row.line - 1, 0, 0)
        )
        locate = Locator(document, (), suite=suite.document)
        for case in reader.read_all(document, (), locate=locate):
            case_id = data.get("id") if case is None else case.id
            if case_id in seen:
                message = f"the id {case_id!r} is taken by the case on line {seen[case_id]}"
                place = document.position(("id",))
                reader.problems.append(Problem(file, *place, "error", "duplicate-id", message))
            elif case_id:
                seen[case_id] = row.line
            if case is not None:
                yield case
    reader.report_unused()


def _raw_case(header: list[str], cells: list[str]) -> dict[str, Any]:
    """The row as a raw case; an empty cell is a key that is not given.

    The apostrophe that keeps a spreadsheet from running a formula is not part of a text.
    """
    raw: dict[str, Any] = {}
    for name, cell in zip(header, map(restored, cells), strict=True):
        if not name or not cell.strip():
            continue
        if name == "tags":
            raw["tags"] = [tag.strip() for tag in re.split("[,;]", cell) if tag.strip()]
        elif name.startswith("metadata."):
            raw.setdefault("metadata", {})[name.removeprefix("metadata.")] = cell
        elif name.startswith("vars."):
            raw.setdefault("vars", [{}])[0][name.removeprefix("vars.")] = cell
        else:
            raw[name] = cell.strip() if name == "id" else cell
    if "skip" not in raw:
        raw.setdefault("input", "")  # reported as an empty cell, not as a missing key
    return raw


def _marks(data: dict[str, Any], header: list[str], row: _Row) -> Marks:
    """Marks that mirror the data; those of a key and its value are that of the cell."""
    places = dict(zip(header, row.marks(), strict=False))
    marks: list[Any] = [TextMark(row.line - 1, 0, 0)]
    for key, value in data.items():
        if key == "metadata":
            inner: list[Any] = [marks[0]]
            for name in value:
                inner += [places[f"metadata.{name}"]] * 2
            marks += [marks[0], inner]
        elif key == "vars":
            inner = [marks[0]]
            for name in value[0]:
                inner += [places[f"vars.{name}"]] * 2
            marks += [marks[0], [marks[0], inner]]
        elif isinstance(value, list):
            marks += [places[key], [places[key]] * (len(value) + 1)]
        else:
            marks += [places[key]] * 2
    return marks
