"""What a run leaves behind: its report on stdout, files by their suffix, and notes for CI."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import click

from assay.errors import StoreError, UsageError
from assay.model.run_result import RunResult
from assay.registry import reporters
from assay.replacing import replacing
from assay.settings import environment, shown_path

#: Names of reporters that are no suffix of a file.
_NO_SUFFIX = ("text", "github")


class Documents:
    """The documents that were asked for; what cannot be written is told before the run."""

    def __init__(self, files: tuple[str, ...], *, as_json: bool) -> None:
        self._as_json = as_json
        self._files = [(Path(name), _format(Path(name))) for name in files]

    def write(self, result: RunResult) -> None:
        """Print the report, write the files, and tell GitHub when it listens."""
        out = sys.stdout
        reporters.get("json" if self._as_json else "text").write(result, out)
        out.flush()
        for file, name in self._files:
            _write(file, name, result)
        self._tell_github(result)

    def _tell_github(self, result: RunResult) -> None:
        found = environment(["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"])
        if found.get("GITHUB_ACTIONS") != "true":
            return
        reporters.get("github").write(result, sys.stderr if self._as_json else sys.stdout)
        if summary := found.get("GITHUB_STEP_SUMMARY"):
            text = io.StringIO()
            reporters.get("md").write(result, text)
            with open(summary, "a", encoding="utf-8") as stream:
                stream.write(text.getvalue())


def _format(file: Path) -> str:
    """The reporter for a file, if it can be written."""
    suffix = file.suffix.removeprefix(".").lower()
    known = [name for name in reporters if name not in _NO_SUFFIX]
    if suffix not in known:
        endings = ", ".join(f".{name}" for name in sorted(known))
        raise UsageError(f"{shown_path(file)}: a report ends in one of {endings}")
    folder = file.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{shown_path(file)}: its folder is not there, or not writable")
    return suffix


def _write(file: Path, name: str, result: RunResult) -> None:
    """The whole file, or nothing."""
    try:
        with replacing(file) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            reporters.get(name).write(result, text)
            text.flush()
            text.detach()
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{shown_path(file)} cannot be written: {reason}") from None
    click.echo(f"wrote {shown_path(file)}", err=True)
