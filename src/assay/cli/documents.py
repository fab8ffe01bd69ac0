"""What a run leaves behind: its report on stdout, files by their suffix, and notes for CI."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

import click

from assay.cli.completion import files
from assay.errors import UsageError
from assay.model.run_result import RunResult
from assay.registry import reporters
from assay.replacement import is_device, replacing, writing
from assay.service.report import report
from assay.settings import environment, shown_path
from assay.terminal import on_screen

#: Names of reporters that are no suffix of a file.
_NO_SUFFIX = ("text", "github")

store_option = click.option("--store", metavar="URL", help="Where runs are recorded.")


def output_option(*, required: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The files that reports go to."""
    return click.option(
        "-o",
        "--output",
        multiple=True,
        required=required,
        metavar="FILE",
        shell_complete=files,
        help="Write a report, by suffix: .json, .jsonl, .csv, .md, or .xml for JUnit.",
    )


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that ends with the report of a run."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    return output_option()(as_json(function))


class Documents:
    """The documents that were asked for; one that cannot be written is refused before the run."""

    def __init__(self, paths: tuple[str, ...], *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._files = [(Path(name), _format(Path(name))) for name in paths]

    def write(self, result: RunResult) -> None:
        """Print the report, write the files, and tell GitHub when it listens."""
        print_report(result, sys.stdout, as_json=self._as_json)
        self.write_files(result)
        self._tell_github(result)

    def write_files(self, result: RunResult) -> None:
        """Each file whole, or not at all."""
        for file, name in self._files:
            with written(file) as stream:
                report_to(stream, name, result)

    def _tell_github(self, result: RunResult) -> None:
        found = environment(["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"])
        if found.get("GITHUB_ACTIONS") != "true":
            return
        report(result, "github", sys.stderr if self._as_json else sys.stdout)
        if summary := found.get("GITHUB_STEP_SUMMARY"):
            text = io.StringIO()
            report(result, "md", text)
            with (
                writing(shown_path(Path(summary))),
                open(summary, "a", encoding="utf-8") as stream,
            ):
                stream.write(text.getvalue())


def print_report(result: RunResult, out: TextIO, *, as_json: bool) -> None:
    """The report for the terminal, or the JSON document."""
    if as_json and out.isatty():
        report_to(on_screen(out.buffer), "json", result)
    else:
        report(result, "json" if as_json else "text", out)
    out.flush()  # what is said on stderr comes after it


def report_to(stream: IO[bytes], name: str, result: RunResult) -> None:
    """Write a report to a stream of bytes, which stays open."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        report(result, name, text)
    finally:
        text.detach()  # which flushes


def _format(file: Path) -> str:
    """The reporter for a file, if it can be written."""
    suffix = file.suffix.removeprefix(".").lower()
    known = [name for name in reporters if name not in _NO_SUFFIX]
    if suffix not in known:
        endings = ", ".join(f".{name}" for name in sorted(known))
        raise UsageError(f"{shown_path(file)}: the name of a report ends in one of {endings}")
    writable(file)
    reporters.get(suffix)  # one that is broken is told before the run, not after it
    return suffix


def writable(file: Path) -> None:
    """Refuse a file that could not be written, before anything is done for it."""
    folder = file.parent
    if is_device(file):
        if not os.access(file, os.W_OK):
            raise UsageError(f"{shown_path(file)} is not writable")
    elif not folder.is_dir():
        raise UsageError(f"{shown_path(file)}: the folder {shown_path(folder)} does not exist")
    elif not os.access(folder, os.W_OK):
        raise UsageError(f"{shown_path(file)}: the folder {shown_path(folder)} is not writable")
    if file.is_dir():
        raise UsageError(f"{shown_path(file)} is a folder, not a file")


@contextmanager
def written(file: Path) -> Iterator[IO[bytes]]:
    """A stream that becomes the file; says so at the end."""
    with writing(shown_path(file)), replacing(file) as stream:
        yield stream
    with suppress(OSError):  # nobody listens any more; the file is there
        click.echo(f"wrote {shown_path(file)}", err=True)
