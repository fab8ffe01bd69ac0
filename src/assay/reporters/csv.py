"""`csv`: one row for each case, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from typing import Any, TextIO

from assay.model.run_result import RunResult
from assay.reporters.rows import COLUMNS, rows
from assay.terminal import escape_controls

#: A spreadsheet takes a cell that begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write(run: RunResult, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\r\n")  # with it, every cell that has either is quoted
    writer.writerow(COLUMNS)
    for row in rows(run):
        writer.writerow([_cell(row[column]) for column in COLUMNS])


def _cell(value: Any) -> Any:
    """Lists are lines; a text that would be a formula gets an apostrophe before it."""
    if isinstance(value, list):
        value = "\n".join(value)
    if not isinstance(value, str):
        return value
    return escape_controls(f"'{value}" if value.startswith(FORMULA) else value)
