"""`json`: the document that `assay run --json` prints."""

from __future__ import annotations

from typing import TextIO

from assay.model.run_result import RunResult


def write(run: RunResult, out: TextIO) -> None:
    for chunk in run.chunks():
        out.write(chunk.decode())
    out.write("\n")
