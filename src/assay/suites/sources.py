"""Gets the data that a `Source` names: reads a file, calls a function or runs a program."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from assay.blocking import wait_for
from assay.documents import json as documents
from assay.documents.document import Document
from assay.documents.source import read_text
from assay.errors import AssayError, ConfigError, EvalFileErrors, cause_of, printable
from assay.functions import imported
from assay.model.source import Source
from assay.process import Limits, run
from assay.settings import Settings, environment_of_child, shown_path

Failure = type[AssayError]


def document_of(source: Source, settings: Settings, failure: Failure) -> Document:
    """What a source says, as JSON with places.

    A file that is wrong is a ConfigError; what a function or a program did wrong, a `failure`,
    and so is one that is not there, with the exit code of a wrong configuration.
    """
    if source.file is not None:
        return _of_file(source.file, settings)
    if source.callable is not None:
        text = _returned(source, settings, failure)
    else:
        text = _printed(source, settings, failure)
    try:
        document = documents.parse(text, source.label)
    except EvalFileErrors as error:
        raise failure(f"{source.label} gave no JSON: {_first(error.problems)}") from None
    if document.problems:
        raise failure(f"{source.label} gave no proper JSON: {_first(document.problems)}")
    return document


def _first(problems: Any) -> str:
    first = problems[0]
    place = f" (line {first.line}, column {first.column})" if first.line else ""
    return f"{first.message}{place}"


def _of_file(name: str, settings: Settings) -> Document:
    file = settings.root / name
    try:
        document = documents.parse(read_text(file, shown_path(file)), shown_path(file))
    except EvalFileErrors as error:
        raise ConfigError(error.problems) from None
    if document.problems:
        raise ConfigError(document.problems)
    return document


def _absent(failure: Failure, message: str) -> AssayError:
    """A function or program that is not there: the configuration is wrong, not what it asks."""
    error = failure(message)
    error.exit_code = ConfigError.exit_code
    return error


def _returned(source: Source, settings: Settings, failure: Failure) -> str:
    """What a function returns, as JSON."""
    settings.lead_path()
    function = imported(source.callable or "", partial(_absent, failure))
    value = _called(function, source, failure)
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise failure(f"{source.label} returned something that is not JSON: {error}") from None


def _called(function: Callable[[], Any], source: Source, failure: Failure) -> Any:
    """What the function returns, unless it takes too long: then it is left to itself."""
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            value = function()
            outcome.append((asyncio.run(_awaited(value)) if _is_late(value) else value, None))
        except BaseException as error:  # it is told in the thread that waits
            outcome.append((None, error))

    thread = threading.Thread(target=work, name="assay-source", daemon=True)
    thread.start()
    thread.join(source.timeout_seconds)
    if not outcome:
        raise failure(f"{source.label} took longer than {source.timeout_seconds:g} s")
    value, error = outcome[0]
    if error is not None:
        raise failure(f"{source.label} raised {printable(cause_of(error))}") from error
    return value


_is_late = inspect.isawaitable


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _printed(source: Source, settings: Settings, failure: Failure) -> str:
    """What a program prints."""
    limits = Limits(source.timeout_seconds, int(source.max_output_mb * 1024 * 1024))
    folder, env = str(settings.root / source.cwd), environment_of_child(source.env)
    done = wait_for(lambda: run(source.command or [], cwd=folder, env=env, limits=limits))
    if done.state == "not_started":
        raise _absent(failure, done.explained(f"{source.label}: {done.fault}"))
    if done.fault:
        raise failure(done.explained(f"{source.label}: {done.fault}"))
    try:
        return done.stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise failure(f"{source.label} printed something that is not UTF-8: {error}") from None
