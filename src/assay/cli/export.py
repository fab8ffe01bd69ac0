"""`assay export`: results, observations or test cases, for other tools."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from assay.cli.completion import files, filters
from assay.cli.report_output import check_writable, open_output, report_to, store_option
from assay.errors import NotInStore, UsageError
from assay.model.case_filter import parse_filter
from assay.model.comparison import CaseRef
from assay.reporters.terminal import escaping
from assay.service import history
from assay.service.result import Run
from assay.service.showing import matching, narrowed
from assay.service.test_cases import FORMATS as TEST_CASE_FORMATS
from assay.service.test_cases import export_test_cases
from assay.text import count, printable

FORMATS = ("jsonl", "csv", "yaml", "observations")


@click.command("export")
@click.argument("names", nargs=-1, metavar="[FORMAT] [RUN [FILTER]]", shell_complete=filters)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Results as JSONL (the default) or CSV (the default for *.csv), or observations as lines"
    " of a replay file.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="Write to a file in place of stdout.",
)
@click.option(
    "--test-cases", is_flag=True, help="Export the test cases in the store instead of a run."
)
@click.option(
    "--raw", is_flag=True, help="Leave formulas in the CSV of test cases as they are written."
)
@click.option("--tag", metavar="TAG", help="Only test cases with a tag that contains this.")
@store_option
def command(
    names: tuple[str, ...],
    form: str | None,
    output: str | None,
    test_cases: bool,
    raw: bool,
    tag: str | None,
    store: str | None,
) -> None:
    """Export the results or the observations of a recorded run, or test cases.

    RUN is an id, the start of one, the name of a baseline, or `latest`, the default.
    FORMAT is that of --format; alone it is one unless a baseline has its name. With a FILTER only
    the cases that match are exported: see docs/filters.md.
    Observations have one line a trial, repeats in order; `--target replay:FILE` grades them.

    \b
    Examples:
      assay export main > results.jsonl
      assay export latest -o results.csv
      assay export latest 'outcome:failed tag:billing' -o failed.jsonl
      assay export observations -o seen.jsonl
      assay export --test-cases --tag geography -o geography.yaml
    """
    file = None if output is None else Path(output)
    if file is not None:
        check_writable(file)
    run, where, form = _parse_names(names, form)
    parse_filter(where or "")  # before the run is read
    if test_cases and form is None and run in FORMATS:
        run, form = None, run
    if test_cases:
        if run is not None:
            raise UsageError(f"--test-cases exports no run: leave {run!r} out")
        _export_test_cases(form, file, tag=tag, store=store, raw=raw)
        return
    if tag is not None:
        raise UsageError("--tag chooses among test cases: give --test-cases too")
    if raw:
        hint = "export the results as jsonl, where no text is changed"
        raise UsageError(f"--raw is an option of --test-cases: {hint}")
    found, form = _find_run(run or "latest", form, store, _suffix(file))
    refs = None if where is None else matching(found.store, found.record, where)
    with _open_output(file) as stream:
        _write(found, form, stream, refs)
    if form == "observations":
        _warn_about_shared_ids(found)


def _parse_names(
    names: tuple[str, ...], form: str | None
) -> tuple[str | None, str | None, str | None]:
    """The run, the filter and the format. A single name is the run, although it may be a format."""
    rest = names
    if len(names) > 1 and names[0] in FORMATS and form in (None, names[0]):
        rest, form = names[1:], names[0]
    run, where = (*rest, None, None)[:2]
    if len(rest) > 2 or where in (*FORMATS, "latest") or (where is not None and run in FORMATS):
        found, known = " ".join(map(repr, names)), ", ".join(FORMATS)
        hint = f"name one run, after one of {known} or nothing, and a filter in quotes"
        raise UsageError(f"{found}: {hint}")
    return run, where, form


def _find_run(run: str, form: str | None, store: str | None, suffix: str) -> tuple[Run, str]:
    """The run and the format. A format that names no run stands for the latest run."""
    _refuse_yaml(form)
    default = "csv" if suffix == "csv" else "jsonl"
    try:
        return history.show(run, store=store), form or default
    except NotInStore:
        if form is not None or run not in FORMATS:
            raise
    _refuse_yaml(run)
    return history.show(store=store), run


def _refuse_yaml(form: str | None) -> None:
    if form == "yaml":
        raise UsageError("only test cases are written as YAML: give --test-cases too")


@contextmanager
def _open_output(file: Path | None) -> Iterator[IO[bytes]]:
    """The file, or stdout if there is none."""
    if file is None:
        out = sys.stdout.buffer
        yield escaping(out) if sys.stdout.isatty() else out
        out.flush()
    else:
        with open_output(file) as stream:
            yield stream


def _suffix(file: Path | None) -> str:
    """The format that the name of a file ends with; empty if it has no suffix."""
    suffix = "" if file is None else file.suffix.removeprefix(".").lower()
    return "yaml" if suffix == "yml" else suffix


def _export_test_cases(form: str | None, file: Path | None, **options: Any) -> None:
    form = form or _suffix(file) or "jsonl"
    if form not in TEST_CASE_FORMATS:
        known = ", ".join(TEST_CASE_FORMATS)
        raise UsageError(f"test cases are not written as {form!r}: choose from {known}")
    with _open_output(file) as stream:
        for piece in export_test_cases(form, **options):
            stream.write(piece.encode())


def _write(run: Run, form: str, out: IO[bytes], refs: Set[CaseRef] | None) -> None:
    if form != "observations":
        report_to(out, form, run if refs is None else narrowed(run, refs))
        return
    for observation in run.observations(refs):
        out.write(observation + b"\n")


def _warn_about_shared_ids(run: Run) -> None:
    """Warn about ids that several suites have: a replay file knows cases by their id only."""
    if len(run.suites) < 2:
        return
    counts = Counter(hash(trial.case_id) for trial in run.store.facts(run.id) if not trial.repeat)
    if shared := sum(1 for count in counts.values() if count > 1):
        ids = count(shared, "id is", "ids are")
        click.echo(printable(f"{ids} in more than one suite: a replay mixes their lines"), err=True)
