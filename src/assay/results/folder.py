"""The folder of result files: their names, and how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from assay.atomic_files import replacing, writing
from assay.model.run import PYTHON_SUITE
from assay.model.run_result import RunResult
from assay.settings import Settings, shown_path

#: The most bytes of a suite's name in the name of its result file.
_MAX_NAME = 200
#: The same for the path of its file: a file name has up to 255, and a number and a suffix follow.
_MAX_PATH = 240


def results_folder(settings: Settings) -> Path:
    """The folder for the result files of all runs of a project."""
    return settings.root / ".assay" / "runs"


def folder_shown(files: Sequence[Path]) -> str:
    """The folder of the result files, as shown in reports; empty if there are none."""
    return shown_path(files[0].parent) if files else ""


def files_of(result: RunResult, folder: Path) -> list[Path]:
    """The paths of the result files of a run, one per suite."""
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
    """The name of a result file without suffix: from the suite's file, or its name in Python."""
    if file.startswith(PYTHON_SUITE):
        name = re.sub(r"[^\w.-]+", "-", file.removeprefix(PYTHON_SUITE)).strip(".-")
        return name.encode()[:_MAX_NAME].decode(errors="ignore") or "suite"
    # The suite of the store has `store:` in place of a file.
    return _shortened(file.replace("/", "--").removesuffix(":"), file)


def _shortened(name: str, file: str) -> str:
    """The name; one that is too long for a file is cut to its beginning, a hash and its end."""
    data = os.fsencode(name)
    if len(data) <= _MAX_PATH:
        return name
    digest = sha256(os.fsencode(file)).hexdigest()[:12]
    kept = (_MAX_PATH - len(digest)) // 2 - 1
    begin, end = (part.decode(errors="ignore") for part in (data[:kept], data[-kept:]))
    return f"{begin}~{digest}~{end}"


def write_files(result: RunResult, folder: Path) -> list[Path]:
    """Write the result files, each atomically."""
    files = files_of(result, folder)
    for suite, file in zip(result.suites, files, strict=True):
        with writing(shown_path(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as stream:
                stream.writelines(suite.chunks())
                stream.write(b"\n")
    return files
