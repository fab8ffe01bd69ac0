"""`jsonl`: one line of JSON per case."""

from __future__ import annotations

from typing import TextIO

import msgspec

from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.reporters.rows import rows


def write(run: RunResult, out: TextIO) -> None:
    encode = msgspec.json.Encoder().encode
    for row in rows(run):
        out.write(encode(row).decode() + "\n")


def write_group(group: GroupResult, out: TextIO) -> None:
    """The cases of all runs; each line names its target and its run."""
    for run in group.runs:
        write(run, out)
