"""The folder of result files: how those of a run are called, and how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from assay.model.run import MADE
from assay.model.run_result import RunResult
from assay.replacement import replacing, writing
from assay.settings import Settings, shown_path

#: How many bytes of a suite's name are in that of its result file.
_MAX_NAME = 200
#: How many bytes of a path may be there: a name has 255, and a number and a suffix follow.
_MAX_PATH = 240


def results_folder(settings: Settings) -> Path:
    """Where the result files of all runs of a project are."""
    return settings.root / ".assay" / "runs"


def folder_shown(files: Sequence[Path]) -> str:
    """The folder of result files as a report names it; empty when there are none."""
    return shown_path(files[0].parent) if files else ""


def files_of(result: RunResult, folder: Path) -> list[Path]:
    """Where the result files of a run are, one for each suite."""
    home = folder / result.id
    names: list[Path] = []
    for suite in result.suites:
        stem = _stem(suite.file)
        name = home / f"{stem}.json"
        number = 2
        while name in names:
            name = home / f"{stem}-{number}.json"
            number += 1
        names.append(name)
    return names


def _stem(file: str) -> str:
    """What the result file of a suite is called after: its file, else its name made safe."""
    if file.startswith(MADE):
        name = re.sub(r"[^\w.-]+", "-", file.removeprefix(MADE)).strip(".-")
        return name.encode()[:_MAX_NAME].decode(errors="ignore") or "suite"
    # `store:` is no name of a file
    return _shortened(file.replace("/", "--").removesuffix(":"), file)


def _shortened(name: str, file: str) -> str:
    """A name that a file can have: the beginning and the end of a long one, with a hash between."""
    data = os.fsencode(name)
    if len(data) <= _MAX_PATH:
        return name
    digest = sha256(os.fsencode(file)).hexdigest()[:12]
    kept = (_MAX_PATH - len(digest)) // 2 - 1
    begin, end = (part.decode(errors="ignore") for part in (data[:kept], data[-kept:]))
    return f"{begin}~{digest}~{end}"


def write_files(result: RunResult, folder: Path) -> list[Path]:
    """Write the result files; each is there whole, or not at all."""
    files = files_of(result, folder)
    for suite, file in zip(result.suites, files, strict=True):
        with writing(shown_path(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
            tail = chain(suite.tail(), (b"\n",))
            if suite.written is None or not suite.written.becomes(file, suite.head(), tail):
                with replacing(file) as stream:
                    stream.writelines(suite.chunks())
                    stream.write(b"\n")
    return files
