"""The reports of a run: on stdout, in files by suffix, and for GitHub Actions."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

import click

from assay.atomic_files import is_device, replacing, writing
from assay.cli.completion import files
from assay.errors import PluginError, StoreError, UsageError
from assay.ports import Reporter
from assay.registry import reporters
from assay.reporters.terminal import escaping
from assay.service.report import Reported, report, writing_groups
from assay.settings import environment, shown_path

store_option = click.option("--store", metavar="URL", help="Where runs are recorded.")


def output_options(*, required: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--output`: the files to write reports to; and `--html-size`."""
    output = click.option(
        "-o",
        "--output",
        multiple=True,
        required=required,
        metavar="FILE",
        shell_complete=files,
        help="Write a report; the suffix chooses its format, such as .html, .md or .xml (JUnit).",
    )
    size = click.option(
        "--html-size",
        type=click.FloatRange(min=0),
        metavar="MB",
        default=20,
        show_default=True,
        help="The size up to which an HTML report has details; all cases are listed anyway.",
    )
    return lambda command: output(size(command))


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that end with the report of a run."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    detail = click.option(
        "-v",
        "--verbose",
        "detail",
        flag_value="answers",
        help="Show the answer and the calls of each failed case.",
    )
    quiet = click.option(
        "-q", "--quiet", "detail", flag_value="verdict", help="Show the verdict only."
    )
    return output_options()(as_json(detail(quiet(function))))


class ReportOutput:
    """The requested reports. Creating it fails if one could not be written: before the run.

    `for_group` is for reports about several targets, which not every reporter can write.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        html_size: float,
        *,
        as_json: bool = False,
        detail: str | None = None,
        for_group: bool = False,
    ) -> None:
        self._as_json, self._detail = as_json, detail or "reasons"
        self._options = {"html": {"html_size": html_size}}
        self._files = [(Path(path), _reporter_for(Path(path))) for path in paths]
        for name in self.formats if for_group else ():
            writing_groups(name)

    def write(self, result: Reported) -> None:
        """Write the files, print the report, and annotate the job when run by GitHub Actions.

        The files come first: if one cannot be written, no verdict is printed that the exit code
        would contradict.
        """
        in_github = environment(["GITHUB_ACTIONS"]).get("GITHUB_ACTIONS") == "true"
        try:
            self.write_files(result)
            if in_github:
                _append_to_step_summary(result)
        except (PluginError, StoreError) as error:
            again = f"`assay report {result.id} -o FILE` writes a report of it"
            raise type(error)(f"{error}\nthe run is recorded: {again}") from error
        print_report(result, sys.stdout, as_json=self._as_json, detail=self._detail)
        if in_github:
            report(result, "github", sys.stderr if self._as_json else sys.stdout)

    @property
    def quiet(self) -> bool:
        """Is only the verdict shown?"""
        return self._detail == "verdict"

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of the files, by the names of their reporters."""
        return tuple(reporter for _, reporter in self._files)

    @property
    def has_files(self) -> bool:
        """Is any report written to a file?"""
        return bool(self._files)

    def write_files(self, result: Reported) -> None:
        """Write each file atomically."""
        for file, reporter in self._files:
            with open_output(file) as stream:
                report_to(stream, reporter, result, **self._options.get(reporter, {}))


def _append_to_step_summary(result: Reported) -> None:
    if summary := environment(["GITHUB_STEP_SUMMARY"]).get("GITHUB_STEP_SUMMARY"):
        text = io.StringIO()
        report(result, "md", text)
        with writing(shown_path(Path(summary))), open(summary, "a", encoding="utf-8") as stream:
            stream.write(text.getvalue())


def print_report(result: Reported, out: TextIO, *, as_json: bool, detail: str = "reasons") -> None:
    """Print the report for people, or the JSON document."""
    if as_json and out.isatty():
        report_to(escaping(out.buffer), "json", result)
    elif as_json:
        report(result, "json", out)
    else:
        report(result, "text", out, detail=detail)
    out.flush()  # so that later output on stderr comes after it


def report_to(stream: IO[bytes], name: str, result: Reported, **options: Any) -> None:
    """Write a report to a binary stream, and leave that open."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        report(result, name, text, **options)
    finally:
        text.detach()  # also flushes


def _reporter_for(file: Path) -> str:
    """The name of the reporter for a file; raises UsageError if it could not be written."""
    suffix = file.suffix.removeprefix(".").lower()
    # A broken plugin is reported before the run, not after it.
    if suffix not in reporters or not _writes_files(reporters.get(suffix)):
        known = (name for name, reporter in reporters.usable().items() if _writes_files(reporter))
        endings = ", ".join(f".{name}" for name in known)
        raise UsageError(f"{shown_path(file)}: the name of a report ends in one of {endings}")
    check_writable(file)
    return suffix


def _writes_files(reporter: Reporter) -> bool:
    return getattr(reporter, "writes_files", True)


def check_writable(file: Path) -> None:
    """Raise UsageError for a file that could not be written, before any work is done for it."""
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
def open_output(file: Path) -> Iterator[IO[bytes]]:
    """A stream that replaces the file when it is closed, and then says so."""
    with writing(shown_path(file)), replacing(file) as stream:
        yield stream
    with suppress(OSError):  # stderr was closed, but the file is written
        click.echo(f"wrote {shown_path(file)}", err=True)
