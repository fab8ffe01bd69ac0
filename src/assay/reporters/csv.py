"""`csv`: one row per case, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, TextIO

from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.reporters.rows import COLUMNS, rows
from assay.reporters.terminal import escape_controls
from assay.wire.csv_formulas import neutralised


def write(run: RunResult, out: TextIO) -> None:
    _write([run], out)


def write_group(group: GroupResult, out: TextIO) -> None:
    """The cases of all runs under one head; each row names its target and its run."""
    _write(group.runs, out)


def _write(runs: Iterable[RunResult], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\r\n")  # so cells with either are quoted
    writer.writerow(COLUMNS)
    for run in runs:
        for row in rows(run):
            writer.writerow([_cell(row[column]) for column in COLUMNS])


def _cell(value: Any) -> Any:
    """Join lists as lines, and neutralise formulas."""
    if isinstance(value, list):
        value = "\n".join(value)
    if not isinstance(value, str):
        return value
    return escape_controls(neutralised(value))
