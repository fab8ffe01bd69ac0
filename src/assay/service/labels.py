"""Label files: people's verdicts on answers, one case per line, in CSV or JSONL."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay.atomic_files import writing
from assay.errors import UsageError, unreadable
from assay.settings import shown_path
from assay.wire.csv_formulas import neutralised, restored

SUFFIXES = (".csv", ".jsonl")
COLUMNS = ("suite", "id", "label", "run")
#: The accepted spellings of a verdict.
PASSES = ("pass", "passed", "true", "yes", "1", "good")
FAILURES = ("fail", "failed", "false", "no", "0", "bad")


class Label(NamedTuple):
    """A person's verdict on the answer to a case; `suite` may be empty.

    `run` has the answer; if it is empty, the label is about any answer to the case.
    """

    suite: str
    id: str
    passed: bool
    line: int = 0
    run: str = ""


def check_file(file: Path) -> None:
    """Raise UsageError unless the suffix is that of a known format."""
    if file.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{shown_path(file)}: the name of a label file must end in .csv or .jsonl")


def read(file: Path) -> list[Label]:
    """All labels of a file; none if it does not exist yet."""
    found: dict[tuple[str, str, str], Label] = {}
    for line, row in rows(file, "label"):
        label = _label(row, line, file)
        first = found.setdefault((label.suite, label.id, label.run), label)
        if first.passed != label.passed:
            message = f"{label.id!r} has a different label on line {first.line}"
            raise wrong_line(file, line, f"{message}: keep one of them")
    return list(found.values())


def rows(file: Path, verdict: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a label file with their lines; none if it does not exist yet.

    `verdict` is the key of the label.
    """
    check_file(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return iter(())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown_path(file)} cannot be read: {unreadable(error)}") from None
    of_format = _csv_rows if file.suffix.lower() == ".csv" else _jsonl_rows
    return of_format(text, file, verdict)


def append(file: Path, label: Label) -> None:
    """Add a label; it is on disk when this returns."""
    check_file(file)
    word = PASSES[0] if label.passed else FAILURES[0]
    row = dict(zip(COLUMNS, (label.suite, label.id, word, label.run), strict=True))
    with writing(shown_path(file)):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            stream.write(_encode(row, file, stream.tell(), _lacks_newline(file)))
            stream.flush()
            os.fsync(stream.fileno())


def _lacks_newline(file: Path) -> bool:
    """Does the last line lack its newline?"""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 1, 0))
        return stream.read(1) not in (b"", b"\n")


def _encode(row: dict[str, str], file: Path, size: int, lacks_newline: bool) -> bytes:
    separator = b"\n" if lacks_newline else b""
    if file.suffix.lower() == ".jsonl":
        return separator + msgspec.json.encode(row) + b"\n"
    columns = _header(file) if size else list(COLUMNS)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if not size:
        writer.writerow(columns)
    writer.writerow([neutralised(row.get(column, "")) for column in columns])
    return separator + out.getvalue().encode()


def _header(file: Path) -> list[str]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return [column.strip().lower() for column in next(csv.reader(stream), [])]


def _csv_rows(text: str, file: Path, verdict: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        header = [column.strip().lower() for column in next(reader, [])]
        if not {"id", verdict} <= set(header):
            found = ", ".join(map(repr, header)) or "missing"
            raise wrong_line(file, 1, f"the columns are {found}; 'id' and {verdict!r} are needed")
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, dict(zip(header, map(restored, row), strict=False))
    except csv.Error as error:
        raise wrong_line(file, reader.line_num, str(error)) from None


def _jsonl_rows(text: str, file: Path, verdict: str) -> Iterator[tuple[int, dict[str, Any]]]:
    # Not splitlines: JSON strings may contain unescaped line breaks such as U+2028.
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            value = msgspec.json.decode(row)
        except msgspec.DecodeError as error:
            raise wrong_line(file, line, f"is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise wrong_line(file, line, f"is not an object with 'id' and {verdict!r}")
        yield line, value


def _label(row: dict[str, Any], line: int, file: Path) -> Label:
    suite, case_id = case_of(row, line, file)
    verdict = str(row.get("label")).strip().lower()
    if verdict not in (*PASSES, *FAILURES):
        message = f"the label of {case_id!r} is {row.get('label')!r}"
        raise wrong_line(file, line, f"{message}; write 'pass' or 'fail'")
    run = str(row.get("run") or "").strip()
    return Label(suite, case_id, verdict in PASSES, line, run)


def case_of(row: dict[str, Any], line: int, file: Path) -> tuple[str, str]:
    """The suite of a row, which may be empty, and the id of its case."""
    case_id, suite = row.get("id"), row.get("suite") or ""
    if not isinstance(case_id, str) or not case_id.strip() or not isinstance(suite, str):
        raise wrong_line(file, line, f"the id is {case_id!r}; it must be that of a case")
    return suite.strip(), case_id.strip()


def wrong_line(file: Path, line: int, message: str) -> UsageError:
    """The error about a line."""
    return UsageError(f"{shown_path(file)}:{line}: {message}")
