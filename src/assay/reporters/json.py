"""`json`: the document that `assay run --json` prints."""

from __future__ import annotations

from typing import TextIO

from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult


def write(run: RunResult, out: TextIO) -> None:
    _write(run, out)


def write_group(group: GroupResult, out: TextIO) -> None:
    """`{"groupId", "runs", "comparison", "exitCode"}`; each run is as its own document."""
    _write(group, out)


def _write(found: RunResult | GroupResult, out: TextIO) -> None:
    for chunk in found.chunks():
        out.write(chunk.decode())
    out.write("\n")
