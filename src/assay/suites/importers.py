"""Reads test cases from our own exports, and from files of promptfoo and of OpenAI's evals.

| File | Recognised by |
|---|---|
| our export, as YAML, JSONL or CSV | entries with only the fields of a test case |
| a promptfoo config | `prompts`, or `tests` with `vars` |
| samples of OpenAI's evals, one per line | `ideal` |

Any other file is an eval file, which a loader reads. What a test case cannot express is refused,
entry by entry.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import EvalFileErrors
from assay.model.suite import CASES_KEYS
from assay.model.values import MISSING, parse_json
from assay.problems import Problem
from assay.settings import Settings, shown_path
from assay.suites import promptfoo
from assay.wire import yaml
from assay.wire.csv_formulas import restored
from assay.wire.document import DocPath, Document
from assay.wire.json import Reader
from assay.wire.text_files import read_text

FIELDS = ("id", "input", "expected_output", "description", "tags")
_TAG_SEPARATOR = re.compile("[,;]")


class ImportedCase(msgspec.Struct, frozen=True):
    """A future test case: what a file says, not validated, and where."""

    file: str
    line: int
    name: str
    input: Any
    expected_output: Any
    description: Any = None
    tags: Any = ()

    def problem(self, code: str, message: str, hint: str = "") -> Problem:
        return Problem(self.file, self.line, 1 if self.line else 0, "error", code, message, hint)


class ImportedCases(msgspec.Struct):
    """The test cases of a file, how many entries were refused, and why."""

    found: list[ImportedCase] = []
    refused: int = 0
    problems: list[Problem] = []

    def refuse(self, *problems: Problem) -> None:
        """Count an entry that is not imported."""
        self.refused += 1
        self.problems += problems

    def __iadd__(self, other: ImportedCases) -> ImportedCases:
        self.found += other.found
        self.refused += other.refused
        self.problems += other.problems
        return self


def read_importable(file: Path, settings: Settings, *, raw: bool = False) -> ImportedCases | None:
    """The test cases of a file; None when it is an eval file. Raises EvalFileErrors.

    In a `raw` CSV file, an apostrophe before a formula is part of the text.
    """
    name = shown_path(file)
    if file.suffix == ".jsonl":
        return _from_jsonl(read_text(file, name), name)
    if file.suffix == ".csv":
        return _from_csv(read_text(file, name), name, raw=raw)
    if file.suffix in (".yaml", ".yml"):
        return _from_document(yaml.parse(read_text(file, name), name), file, settings)
    if file.suffix == ".json" and not re.search(r"\.\w+\.json\Z", file.name):
        found = _from_document(Reader(name).parse(read_text(file, name)), file, settings)
        if found is None:
            message = (
                "the file is not a promptfoo config, and JSON eval files are named differently"
            )
            raise EvalFileErrors([Problem(name, 1, 1, "error", "unknown-format", message)])
        return found
    return None


def _from_jsonl(text: str, file: str) -> ImportedCases | None:
    """The entries of the lines; one that cannot be parsed is refused, and the others are read."""
    imported_cases, reader = ImportedCases(), Reader(file)
    entries: list[tuple[int, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = reader.parse(line, number)
        except EvalFileErrors as error:
            imported_cases.refuse(*error.problems)
            continue
        if any(problem.severity == "error" for problem in document.problems):
            imported_cases.refuse(*document.problems)
        else:
            entries.append((number, document.data))
    if entries and any(isinstance(data, dict) and "ideal" in data for _, data in entries):
        for number, data in entries:
            _add_sample(imported_cases, data, file, number)
        return imported_cases
    if not all(_is_test_case(data) for _, data in entries) or not (
        entries or imported_cases.refused
    ):
        return None
    imported_cases.found = [_imported_case(data, file, number) for number, data in entries]
    return imported_cases


def _from_csv(text: str, file: str, *, raw: bool) -> ImportedCases | None:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    imported_cases = ImportedCases()
    try:
        header = next(rows, [])
        if not {"input", "expected_output"} <= set(header) <= set(FIELDS):
            return None
        for cells in rows:
            if cells and len(cells) != len(header):
                message = f"the row has {len(cells)} cells, and the header {len(header)}"
                imported_cases.refuse(
                    Problem(file, rows.line_num, 1, "error", "csv-syntax", message)
                )
            elif cells:
                cells = cells if raw else list(map(restored, cells))
                entry: dict[str, Any] = dict(zip(header, cells, strict=True))
                entry["tags"] = _tags(entry.get("tags", ""))
                entry["description"] = entry.get("description") or None
                imported_cases.found.append(_imported_case(entry, file, rows.line_num))
    except csv.Error as error:  # broken quotes: the rows after them cannot be split
        imported_cases.refuse(Problem(file, rows.line_num, 1, "error", "csv-syntax", str(error)))
    return imported_cases


def _tags(cell: str) -> Any:
    """The tags in a cell: a JSON array, or separated by commas or semicolons."""
    if cell.startswith("["):
        tags = parse_json(cell)
        if tags is not MISSING:
            return tags
    return [tag.strip() for tag in _TAG_SEPARATOR.split(cell) if tag.strip()]


def _from_document(document: Document, file: Path, settings: Settings) -> ImportedCases | None:
    data = document.data
    if isinstance(data, dict) and promptfoo.is_config(data):
        imported_cases = ImportedCases()
        _check_syntax(document)
        for row in promptfoo.read_config(document, file, settings):
            if row.problem is not None:
                imported_cases.refuse(row.problem)
            else:
                texts = row.input, row.expected_output, row.description
                imported_cases.found.append(ImportedCase(row.file, row.line, row.name, *texts))
        return imported_cases
    cases: Any = data
    path: DocPath = ()
    if isinstance(data, dict):
        key = next((key for key in CASES_KEYS if key in data), None)
        if key is None or len(data) > 1:
            return None
        cases, path = data[key], (key,)
    if not isinstance(cases, list) or not cases or not all(map(_is_test_case, cases)):
        return None
    _check_syntax(document)
    places = [document.position((*path, index))[0] for index in range(len(cases))]
    return ImportedCases(
        [_imported_case(c, document.file, n) for c, n in zip(cases, places, strict=True)]
    )


def _check_syntax(document: Document) -> None:
    """Raise the errors of a document, as nothing says which of its entries they are in."""
    if any(problem.severity == "error" for problem in document.problems):
        raise EvalFileErrors(document.problems)


def _is_test_case(entry: Any) -> bool:
    """Has it only the fields of a test case, and all that are required?"""
    if not isinstance(entry, dict) or not set(entry) <= set(FIELDS):
        return False
    return all(isinstance(entry.get(name), str) for name in ("input", "expected_output"))


def _imported_case(entry: Mapping[str, Any], file: str, line: int) -> ImportedCase:
    name = str(entry.get("id") or f"line-{line}")
    texts = entry["input"], entry["expected_output"], entry.get("description")
    return ImportedCase(file, line, name, *texts, entry.get("tags", ()))


def _add_sample(imported_cases: ImportedCases, sample: Any, file: str, line: int) -> None:
    """Samples have an `input`, a text or messages, and an `ideal`, one text or several."""
    entry = sample if isinstance(sample, dict) else {}
    ideals = entry.get("ideal")
    ideals = ideals if isinstance(ideals, list) else [ideals]
    asked = _join_texts(entry.get("input"))
    imported_case = ImportedCase(file, line, f"line-{line}", asked, ideals[0] if ideals else None)
    if "ideal" not in entry:
        imported_cases.refuse(imported_case.problem("missing-key", "the key 'ideal' is missing"))
    elif len(set(map(json.dumps, ideals))) > 1:
        message = "'ideal' has several texts, each of which is right; a test case expects one"
        hint = "write it as a case of an eval file, with a regex or a python evaluator"
        imported_cases.refuse(imported_case.problem("not-importable", message, hint))
    elif asked is None:
        message = "'input' is neither a text nor a list of messages of the system and the user"
        imported_cases.refuse(imported_case.problem("wrong-type", message))
    else:
        imported_cases.found.append(imported_case)


def _join_texts(asked: Any) -> str | None:
    """The joined texts of messages; None if any is from an assistant or a tool."""
    if isinstance(asked, str):
        return asked
    if not isinstance(asked, list) or not all(isinstance(m, dict) for m in asked):
        return None
    texts = [m.get("content") for m in asked if m.get("role") in ("system", "user", "developer")]
    if len(texts) != len(asked) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n\n".join(str(text) for text in texts)
