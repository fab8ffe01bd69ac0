"""The verbs of eval files: load, validate, lint."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from assay.errors import AssayError, EvalFileErrors, UsageError, cause_of, error_for
from assay.model.case import EvalSuite
from assay.problems import Problem
from assay.service.project import find_settings, import_plugins
from assay.service.suite import Suite
from assay.settings import Settings, shown_path
from assay.suites import ledger
from assay.suites.discovery import discover, loader_for
from assay.suites.missing_programs import missing_programs

#: Smaller files are loaded whole, even if they could be streamed.
STREAMED_BYTES = 4 * 1024 * 1024
#: With more new objects than this, garbage collection takes noticeable time.
MANY_OBJECTS = 100_000
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Loaded(msgspec.Struct, frozen=True):
    """The valid suites, all problems, and the skipped files with the reason."""

    suites: tuple[EvalSuite, ...]
    problems: tuple[Problem, ...]
    skipped_files: tuple[tuple[str, str], ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "error")


def load(paths: Paths) -> list[Suite]:
    """The suites in files and directories; raises one EvalFileErrors with all problems.

    Warnings do not raise: they are in each suite's `warnings`.
    """
    loaded = load_all(paths)
    if error := error_for(loaded.problems):
        raise error
    return [Suite.of(suite) for suite in loaded.suites]


def validate(paths: Paths) -> Loaded:
    """Load everything, and look for the programs that evaluators run.

    A missing program is a warning: the file is valid, and another machine may have the program.
    """
    loaded = load_all(paths)
    return replace(loaded, problems=(*loaded.problems, *missing_programs(loaded.suites)))


def load_all(paths: Paths, *, stream: bool = False, settings: Settings | None = None) -> Loaded:
    """Load everything: all valid suites, and the problems of all files.

    `stream` reads the cases of large files only when they are used, if the loader can.
    `settings` is given for another project than that of the working directory.
    """
    settings = settings or find_settings()
    broken_plugins = import_plugins(settings)
    suites: list[EvalSuite] = []
    with _gc_paused():
        found = discover(as_paths(paths), settings)
        problems = list(found.problems)
        for file in found.files:
            suite, new = load_file(file, settings.for_file(file), stream=stream)
            if suite is not None and suite.tier == "regression":
                suite, new = _check_ledger(file, suite)
            problems += new
            if suite is not None:
                suites.append(suite)
        for file in found.lost:
            problems += _check_ledger(file, None)[1]
    if broken_plugins:  # an unknown evaluator may be one of theirs
        known = [p for p in problems if p.code != "unknown-evaluator"]
        problems = [*broken_plugins, *known]
    passed = tuple((shown_path(file), reason) for file, reason in found.skipped_files)
    # A broken seed manifest is a problem of every file that needs it, and is reported once.
    return Loaded(tuple(suites), tuple(dict.fromkeys(problems)), passed)


def lint(paths: Paths) -> Loaded:
    """As `validate`, with warnings about weak cases."""
    from assay.suites.lint import find_weak_cases  # keeps `validate` fast to start

    loaded = validate(paths)
    return replace(loaded, problems=(*loaded.problems, *find_weak_cases(loaded.suites)))


def load_file(
    file: Path, settings: Settings, *, stream: bool = False
) -> tuple[EvalSuite | None, list[Problem]]:
    """The suite of a file, or None, and its problems."""
    loader = loader_for(file)
    if loader is None:  # unlikely, as discovery found one
        raise UsageError(f"no loader for {shown_path(file)}")
    try:
        later = getattr(loader, "stream", None) if stream else None
        if later is not None and file.stat().st_size >= STREAMED_BYTES:
            suite = later(file, settings)
        else:
            suite = loader.load(file, settings)
    except EvalFileErrors as error:
        return None, list(error.problems)
    except OSError as error:  # while it was being read
        return None, [_problem(file, "unreadable", error.strerror or str(error))]
    except AssayError:
        raise
    except Exception as error:  # a plugin's loader may raise anything
        return None, [_problem(file, "plugin-failed", f"its loader failed: {cause_of(error)}")]
    if not isinstance(suite, EvalSuite):
        message = f"its loader returned {type(suite).__name__}, not a Suite"
        return None, [_problem(file, "plugin-failed", message)]
    return suite, list(suite.warnings)


def _problem(file: Path, code: str, message: str) -> Problem:
    return Problem(shown_path(file), 0, 0, "error", code, message)


def _check_ledger(file: Path, suite: EvalSuite | None) -> tuple[EvalSuite | None, list[Problem]]:
    """The suite with the warnings of the ledger added, and all problems; None without a suite."""
    try:
        found = ledger.check(file)
    except EvalFileErrors as error:
        return None, list(error.problems)
    if suite is None:
        return None, found
    warnings = (*suite.warnings, *(p for p in found if p.severity == "warning"))
    errors = [p for p in found if p.severity == "error"]
    return replace(suite, warnings=warnings), [*warnings, *errors]


def as_paths(paths: Paths) -> list[Path]:
    one = isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable)
    listed: list[Any] = [paths] if one else list(cast("Iterable[Any]", paths))
    for path in listed:
        if not isinstance(path, (str, os.PathLike)):
            found = type(path).__name__
            raise UsageError(f"{found} is not a path: name one eval file or folder, or several")
        if not os.fspath(path):
            raise UsageError("a path is empty")
    return [Path(path) for path in listed]


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pauses garbage collection, which would take half the time of a big load and find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > MANY_OBJECTS:
                # Moves what was loaded to the oldest generation, so that the next collection does
                # not scan it all. Only for many objects, as other new garbage is moved uncounted.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
