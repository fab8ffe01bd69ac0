"""Gets the data that a `Source` names: reads a file, calls a function or runs a program."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any

from assay.blocking import wait_for
from assay.errors import AssayError, ConfigError, EvalFileErrors, cause_of
from assay.model.source import Source
from assay.problems import Problem
from assay.process.child import Limits, run
from assay.registry import imported
from assay.settings import Settings, environment_of_child, shown_path
from assay.text import printable
from assay.threads import call_in_thread
from assay.wire import json as documents
from assay.wire.document import Document
from assay.wire.text_files import read_text

Failure = type[AssayError]


def document_of(source: Source, settings: Settings, failure: Failure) -> Document:
    """The JSON data of a source, with positions.

    Raises ConfigError for an invalid file, and `failure` when a function or a program fails. If
    it does not exist, the `failure` has the exit code of a ConfigError.
    """
    if source.file is not None:
        return _read_file(source.file, settings)
    if source.callable is not None:
        text = _call_function(source, settings, failure)
    else:
        text = _run_program(source, settings, failure)
    try:
        document = documents.parse(text, source.label)
    except EvalFileErrors as error:
        raise failure(f"{source.label} gave no JSON: {_first(error.problems)}") from None
    if document.problems:
        raise failure(f"{source.label} gave no proper JSON: {_first(document.problems)}")
    return document


def _first(problems: Sequence[Problem]) -> str:
    first = problems[0]
    place = f" (line {first.line}, column {first.column})" if first.line else ""
    return f"{first.message}{place}"


def _read_file(name: str, settings: Settings) -> Document:
    file = settings.root / name
    try:
        document = documents.parse(read_text(file, shown_path(file)), shown_path(file))
    except EvalFileErrors as error:
        raise ConfigError(error.problems) from None
    if document.problems:
        raise ConfigError(document.problems)
    return document


def _missing(failure: Failure, message: str) -> AssayError:
    """A missing function or program is an error of the configuration, not of the source."""
    error = failure(message)
    error.exit_code = ConfigError.exit_code
    return error


def _call_function(source: Source, settings: Settings, failure: Failure) -> str:
    """The JSON of what a function returns."""
    settings.prepend_to_sys_path()
    function = imported(source.callable or "", partial(_missing, failure))
    value = _call(function, source, failure)
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise failure(f"{source.label} returned something that is not JSON: {error}") from None


def _call(function: Callable[[], Any], source: Source, failure: Failure) -> Any:
    """Call the function in a thread, which is abandoned if it takes too long."""

    def work() -> Any:
        value = function()
        return asyncio.run(_await(value)) if inspect.isawaitable(value) else value

    call = call_in_thread(work)
    wait([call], source.timeout_seconds)
    if not call.done():
        raise failure(f"{source.label} took longer than {source.timeout_seconds:g} s")
    if (error := call.exception()) is not None:
        raise failure(f"{source.label} raised {printable(cause_of(error))}") from error
    return call.result()


async def _await(value: Awaitable[Any]) -> Any:
    return await value


def _run_program(source: Source, settings: Settings, failure: Failure) -> str:
    """The output of a program."""
    limits = Limits(source.timeout_seconds, int(source.max_output_mb * 1024 * 1024))
    folder, env = str(settings.root / source.cwd), environment_of_child(source.env)
    done = wait_for(lambda: run(source.command or [], cwd=folder, env=env, limits=limits))
    if done.state == "not_started":
        raise _missing(failure, done.explained(f"{source.label}: {done.fault}"))
    if done.fault:
        raise failure(done.explained(f"{source.label}: {done.fault}"))
    try:
        return done.stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise failure(
            f"{source.label} printed something that is not UTF-8: {error.reason}"
        ) from None
