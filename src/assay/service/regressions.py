"""The verbs of the regression ledger."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from assay.errors import LedgerError, UsageError, error_for
from assay.service.eval_files import Paths, as_paths, load_file
from assay.service.project import find_settings, working_directory
from assay.settings import shown_path
from assay.suites import ledger
from assay.suites.discovery import discover
from assay.wire.text_files import is_absent


def lock(paths: Paths) -> dict[str, list[str]]:
    """Lock the unlocked cases of all regression files; returns their ids by file."""
    return {shown_path(file): ledger.lock(file) for file in _files(paths)}


def add(
    folder: str | os.PathLike[str],
    tool: str,
    bug: ledger.Bug,
    today: date,
    verify: ledger.Verify = lambda block: None,
) -> tuple[Path, str]:
    """Add a locked case for a bug to the regression file of a tool; returns file and id.

    `verify` is given the block of the new case, and may raise before anything is written.
    """
    if not re.fullmatch(r"[^\s./\\:][^\s/\\:]*", tool) or not tool.isprintable():
        raise UsageError(
            f"{tool!r} is not a valid tool name: the regression file is named after the tool"
        )
    file = working_directory() / folder / f"{tool}{ledger.SUFFIX}"
    if not is_absent(file):
        problems = load_file(file, find_settings().for_file(file))[1]
        if error := error_for(problems):
            raise error
    return file, ledger.add(file, bug, today, verify)


def archive(identity: str, paths: Paths) -> Path:
    """Move a case to the archive of its file, which is found among the paths."""
    files = _files(paths)
    holders = [
        f
        for f in files
        if any(e.id == identity and e.status != "archived" for e in ledger.entries(f))
    ]
    if len(holders) > 1:
        names = ", ".join(shown_path(file) for file in holders)
        raise LedgerError(f"{identity!r} is in more than one file: {names}; name the file")
    return ledger.archive(holders[0] if holders else files[0], identity)


def entries(paths: Paths) -> dict[str, list[ledger.LedgerEntry]]:
    """All regression cases with their status, by file."""
    return {shown_path(file): ledger.entries(file) for file in _files(paths)}


def _files(paths: Paths) -> Sequence[Path]:
    """The regression files among the paths; each loads, or is missing but has a lock."""
    settings = find_settings()
    found = discover(as_paths(paths), settings)
    files = [file for file in found.files if file.name.endswith(ledger.SUFFIX)]
    problems = list(found.problems)
    for file in files:
        problems += load_file(file, settings.for_file(file))[1]
    if error := error_for(problems):
        raise error
    if not files and not found.lost:
        raise UsageError("the given paths contain no *.regression.json file")
    return [*files, *found.lost]
