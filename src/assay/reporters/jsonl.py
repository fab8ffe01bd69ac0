"""`jsonl`: one line of JSON per case."""

from __future__ import annotations

from typing import TextIO

import msgspec

from assay.model.run_result import RunResult
from assay.reporters.rows import rows


def write(run: RunResult, out: TextIO) -> None:
    encode = msgspec.json.Encoder().encode
    for row in rows(run):
        out.write(encode(row).decode() + "\n")
