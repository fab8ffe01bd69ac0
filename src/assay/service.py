"""The verbs. Command line, Python API and other doors call these and nothing deeper."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from assay import ledger
from assay.discovery import Discovery, discover, loader_for
from assay.errors import EvalFileErrors, LedgerError, Problem, UsageError
from assay.model.case import Suite
from assay.quality import weaknesses
from assay.settings import Settings, shown

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading: suites that are right, everything that is not, what was skipped."""

    suites: tuple[Suite, ...]
    problems: tuple[Problem, ...]
    passed_over: tuple[tuple[str, str], ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "error")


def load(paths: Paths) -> list[Suite]:
    """The suites in files and directories; raises one EvalFileErrors with every problem.

    Warnings do not raise: they are in each suite's `warnings`.
    """
    loaded = validate(paths)
    if loaded.errors:
        raise EvalFileErrors(loaded.problems)
    return list(loaded.suites)


def validate(paths: Paths) -> Loaded:
    """Load everything and keep going: all suites, and all problems of all files."""
    settings = _settings()
    suites: list[Suite] = []
    with _garbage_later():
        found = discover(_as_paths(paths))
        problems = list(found.problems)
        for file in found.files:
            suite, new = _load_file(file, settings.for_file(file))
            problems += new
            if suite is not None:
                suites.append(suite)
    passed = tuple((shown(file), reason) for file, reason in found.passed_over)
    return Loaded(tuple(suites), tuple(problems), passed)


def lint(paths: Paths) -> Loaded:
    """As `validate`, and what makes the cases that load weak."""
    loaded = validate(paths)
    return replace(loaded, problems=(*loaded.problems, *weaknesses(loaded.suites)))


def _load_file(file: Path, settings: Settings) -> tuple[Suite | None, list[Problem]]:
    loader = loader_for(file)
    if loader is None:  # discovery let it through, so a loader was there
        raise UsageError(f"no loader for {shown(file)}")
    try:
        suite = loader.load(file, settings)
        extra = ledger.check(file) if suite.tier == "regression" else []
    except EvalFileErrors as error:
        return None, list(error.problems)
    except OSError as error:  # it broke while it was being read
        reason = error.strerror or str(error)
        return None, [Problem(shown(file), 0, 0, "error", "unreadable", reason)]
    suite = replace(
        suite, warnings=(*suite.warnings, *(p for p in extra if p.severity == "warning"))
    )
    return suite, [*suite.warnings, *(p for p in extra if p.severity == "error")]


def lock_regressions(paths: Paths) -> dict[str, list[str]]:
    """Lock the unlocked cases of all regression files; which ones, by file."""
    return {shown(file): ledger.lock(file) for file in regression_files(paths)}


def archive_regression(identity: str, paths: Paths) -> Path:
    """Move one case to its archive, wherever below the paths it is."""
    files = regression_files(paths)
    holders = [
        f
        for f in files
        if any(e.id == identity and e.status != "archived" for e in ledger.entries(f))
    ]
    if len(holders) > 1:
        names = ", ".join(shown(file) for file in holders)
        raise LedgerError(f"{identity!r} is in more than one file: {names}; name the file")
    return ledger.archive(holders[0] if holders else files[0], identity)


def list_regressions(paths: Paths) -> dict[str, list[ledger.LedgerEntry]]:
    """Every regression case with its state, by file."""
    return {shown(file): ledger.entries(file) for file in regression_files(paths)}


def regression_files(paths: Paths) -> Sequence[Path]:
    """The regression files among the paths, each of which loads."""
    settings = _settings()
    found: Discovery = discover(_as_paths(paths))
    files = [file for file in found.files if file.name.endswith(ledger.SUFFIX)]
    problems = list(found.problems)
    for file in files:
        loader = loader_for(file)
        try:
            if loader is not None:
                loader.load(file, settings.for_file(file))
        except EvalFileErrors as error:
            problems += error.problems
    if any(p.severity == "error" for p in problems):
        raise EvalFileErrors(problems)
    if not files:
        raise UsageError("there is no *.regression.json in the paths given")
    return files


def _as_paths(paths: Paths) -> list[Path]:
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not all(os.fspath(path) for path in listed):
        raise UsageError("a path is empty")
    return [Path(path) for path in listed]


def _settings() -> Settings:
    """The settings of the project that the working directory is in."""
    try:
        return Settings.find(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists") from None


@contextmanager
def _garbage_later() -> Iterator[None]:
    """Half the time of a big load would go to looking for garbage that is not there."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # What was loaded joins the oldest objects; the next collection does not scan it all.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
