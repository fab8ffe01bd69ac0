"""Prints the problems of eval files, for every command that reports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from assay.cli.completion import files
from assay.cli.json import echo_json
from assay.errors import AssayError, ConfigError
from assay.problems import Problem
from assay.redaction import redacted
from assay.service.eval_files import Loaded, Paths
from assay.text import count, printable

paths_argument = click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", shell_complete=files
)


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that report problems."""
    strict = click.option("--strict", is_flag=True, help="Treat warnings as errors.")
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print the problems as a JSON list."
    )
    return strict(as_json(function))


def report(
    verb: Callable[[Paths], Loaded], paths: Sequence[str], as_json: bool, strict: bool
) -> NoReturn:
    """Call the verb, print the problems it found, and exit with 0 or 2."""
    try:
        loaded = verb(paths)
    except ConfigError as error:
        loaded = Loaded((), error.problems)
    except AssayError as error:  # nothing could be checked; LazyGroup prints why
        if as_json:
            _echo_json(error.problems)
        raise
    if as_json:
        _echo_json(loaded.problems)
    else:
        for problem in loaded.problems:
            echo_problem(problem)
    for file, reason in loaded.skipped_files:
        click.echo(printable(f"passed over {file}: {reason}"), err=True)
    click.echo(_summary(loaded), err=True)
    failed = loaded.errors or (strict and loaded.problems)
    raise SystemExit(2 if failed else 0)


def _echo_json(problems: Sequence[Problem]) -> None:
    echo_json([p.to_dict() | {"message": redacted(p.message)} for p in problems])


def echo_problem(problem: Problem, *, err: bool = False) -> None:
    """Print one problem, its severity in colour on a terminal, its hint on a second line."""
    colour = "red" if problem.severity == "error" else "yellow"
    label = click.style(f"{problem.severity}[{problem.code}]", fg=colour, bold=True)
    message = printable(redacted(problem.message))
    click.echo(f"{printable(problem.place)}: {label}: {message}", err=err)
    if problem.hint:
        click.echo(f"    {printable(redacted(problem.hint))}", err=err)


def _summary(loaded: Loaded) -> str:
    cases = sum(len(suite.cases) for suite in loaded.suites)
    errors = len(loaded.errors)
    warnings = len(loaded.problems) - errors
    return (
        f"{count(len(loaded.suites), 'suite')} with {count(cases, 'case')} loaded; "
        f"{count(errors, 'error')}, {count(warnings, 'warning')}"
    )
