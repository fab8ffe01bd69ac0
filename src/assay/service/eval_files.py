"""The verbs of eval files. Command line, Python API and other doors call nothing deeper.

What one verb needs and `validate` does not is imported by that verb: validating starts fast.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from assay import registry
from assay.documents.source import is_absent
from assay.errors import (
    AssayError,
    ConfigError,
    EvalFileErrors,
    LedgerError,
    Problem,
    UsageError,
    cause_of,
    refusal_of,
)
from assay.model.case import EvalCase, Suite
from assay.registry import Registered
from assay.seeds import Seeds
from assay.settings import Settings, shown_path
from assay.suites import ledger
from assay.suites.discovery import discover, loader_for

if TYPE_CHECKING:
    from assay.model.result import EvalCaseResult
    from assay.ports import Target

#: Smaller files are loaded whole, even when they could be read as a stream.
STREAMED_BYTES = 4 * 1024 * 1024
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Loaded(msgspec.Struct, frozen=True):
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
    if refusal := refusal_of(loaded.problems):
        raise refusal
    return list(loaded.suites)


def validate(paths: Paths, *, stream: bool = False, settings: Settings | None = None) -> Loaded:
    """Load everything and keep going: all suites, and all problems of all files.

    `stream` leaves the cases of large files for whoever reads them, as far as loaders can.
    `settings` are those of another project than the one of the working directory.
    """
    settings = settings or _settings()
    broken_plugins = _import_plugins(settings)
    suites: list[Suite] = []
    with _garbage_later():
        found = discover(as_paths(paths), settings)
        problems = list(found.problems)
        for file in found.files:
            suite, new = _load_file(file, settings.for_file(file), stream=stream)
            if suite is not None and suite.tier == "regression":
                suite, new = _check_ledger(file, suite)
            problems += new
            if suite is not None:
                suites.append(suite)
        for file in found.lost:
            problems += _check_ledger(file, None)[1]
    if broken_plugins:  # an evaluator that nobody knows may be one of theirs
        known = [p for p in problems if p.code != "unknown-evaluator"]
        problems = [*broken_plugins, *known]
    passed = tuple((shown_path(file), reason) for file, reason in found.passed_over)
    # A seed manifest that is broken is a problem of every file that needs it, and told once.
    return Loaded(tuple(suites), tuple(dict.fromkeys(problems)), passed)


def lint(paths: Paths) -> Loaded:
    """As `validate`, and what makes the cases that load weak."""
    from assay.suites.quality import weaknesses

    loaded = validate(paths)
    return replace(loaded, problems=(*loaded.problems, *weaknesses(loaded.suites)))


def _load_file(
    file: Path, settings: Settings, *, stream: bool = False
) -> tuple[Suite | None, list[Problem]]:
    """The suite of a file, or None, and its problems."""
    loader = loader_for(file)
    if loader is None:  # discovery let it through, so a loader was there
        raise UsageError(f"no loader for {shown_path(file)}")
    try:
        later = getattr(loader, "stream", None) if stream else None
        if later is not None and file.stat().st_size >= STREAMED_BYTES:
            suite = later(file, settings)
        else:
            suite = loader.load(file, settings)
    except EvalFileErrors as error:
        return None, list(error.problems)
    except OSError as error:  # it broke while it was being read
        return None, [_refused(file, "unreadable", error.strerror or str(error))]
    except AssayError:
        raise
    except Exception as error:  # whatever a stranger's loader does
        return None, [_refused(file, "plugin-failed", f"its loader failed: {cause_of(error)}")]
    if not isinstance(suite, Suite):
        message = f"its loader returned {type(suite).__name__}, not a Suite"
        return None, [_refused(file, "plugin-failed", message)]
    return suite, list(suite.warnings)


def _refused(file: Path, code: str, message: str) -> Problem:
    return Problem(shown_path(file), 0, 0, "error", code, message)


def _check_ledger(file: Path, suite: Suite | None) -> tuple[Suite | None, list[Problem]]:
    """The suite with what the ledger warns of, and all of its problems; None when it is gone."""
    try:
        found = ledger.check(file)
    except EvalFileErrors as error:
        return None, list(error.problems)
    if suite is None:
        return None, found
    warnings = (*suite.warnings, *(p for p in found if p.severity == "warning"))
    errors = [p for p in found if p.severity == "error"]
    return replace(suite, warnings=warnings), [*warnings, *errors]


def start_project(folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Write a small project to start from; the files that were written."""
    from assay.service.scaffold import write_project

    return write_project(working_directory() / folder)


def schema_names() -> tuple[str, ...]:
    """What there is a JSON Schema of."""
    from assay.service.schema import NAMES

    return tuple(NAMES)


def describe(name: str) -> dict[str, Any]:
    """The JSON Schema of one of `schema_names`."""
    from assay.service.schema import schema

    return schema(name)


def evaluate(
    case: EvalCase, observation: Any, *, judge: str | Target | None = None
) -> EvalCaseResult:
    """Grade one recorded observation of a case; nothing is asked but judges.

    The observation has any shape that docs/observations.md names. `judge` is a target or the
    name of one; without it the project's judge is asked.
    """
    from assay.blocking import wait_for

    return wait_for(lambda: aevaluate(case, observation, judge=judge))


async def aevaluate(
    case: EvalCase, observation: Any, *, judge: str | Target | None = None
) -> EvalCaseResult:
    """`evaluate` in a running event loop."""
    # Loading and validating need none of these, and must start fast.
    from assay.engine.grading import Preparation
    from assay.model.shape import shown
    from assay.observations.reading import read
    from assay.ports import Resources
    from assay.roster.targets import Roster

    if not isinstance(case, EvalCase):
        told = f"the case is {shown(case)}, not an EvalCase; `assay.load` gives the cases of files"
        raise UsageError(told)
    observed = read(observation)
    settings = project().for_file(Path(case.origin.file))
    settings.lead_path()
    async with Roster(settings, judge) as roster:
        resources = Resources(roster.judge, {"seed": Seeds(settings).data})
        result = await Preparation(resources).grader(case).graded(observed)
    # Full marks are shared by all results of an evaluator; the caller may change what he gets.
    own = tuple(replace(score, details=dict(score.details)) for score in result.scores)
    return replace(result, scores=own)


def plugins() -> list[Registered]:
    """Everything that is registered, and why what cannot be used cannot."""
    settings = _settings()
    modules = [_plugin(name, settings) for name in settings.config.plugins]
    kinds = (
        *(registry.loaders, registry.evaluators, registry.targets),
        *(registry.stores, registry.reporters, registry.executors),
    )
    return [*modules, *(entry for kind in kinds for entry in kind.listed())]


def _plugin(module: str, settings: Settings) -> Registered:
    """Run a module under `plugins`, whose evaluators register themselves."""
    settings.lead_path()
    fault = ""
    try:
        import_module(module)
    # whatever a project's module does when it is imported
    except (Exception, SystemExit) as error:
        fault = cause_of(error)
    return Registered("plugin", module, "config", fault)


def lock_regressions(paths: Paths) -> dict[str, list[str]]:
    """Lock the unlocked cases of all regression files; which ones, by file."""
    return {shown_path(file): ledger.lock(file) for file in regression_files(paths)}


def add_regression(
    folder: str | os.PathLike[str], tool: str, bug: ledger.Bug, today: date
) -> tuple[Path, str]:
    """Add a locked case for a bug to the regression file of a tool; the file and the new id."""
    if not re.fullmatch(r"[^\s./\\:][^\s/\\:]*", tool) or not tool.isprintable():
        raise UsageError(f"{tool!r} is not the name of a tool that a file can be called after")
    file = working_directory() / folder / f"{tool}{ledger.SUFFIX}"
    if not is_absent(file):
        problems = _load_file(file, _settings().for_file(file))[1]
        if refusal := refusal_of(problems):
            raise refusal
    return file, ledger.add(file, bug, today)


def archive_regression(identity: str, paths: Paths) -> Path:
    """Move one case to its archive, wherever below the paths it is."""
    files = regression_files(paths)
    holders = [
        f
        for f in files
        if any(e.id == identity and e.status != "archived" for e in ledger.entries(f))
    ]
    if len(holders) > 1:
        names = ", ".join(shown_path(file) for file in holders)
        raise LedgerError(f"{identity!r} is in more than one file: {names}; name the file")
    return ledger.archive(holders[0] if holders else files[0], identity)


def list_regressions(paths: Paths) -> dict[str, list[ledger.LedgerEntry]]:
    """Every regression case with its state, by file."""
    return {shown_path(file): ledger.entries(file) for file in regression_files(paths)}


def regression_files(paths: Paths) -> Sequence[Path]:
    """The regression files among the paths; each loads, or is gone and its lock is not."""
    settings = _settings()
    found = discover(as_paths(paths), settings)
    files = [file for file in found.files if file.name.endswith(ledger.SUFFIX)]
    problems = list(found.problems)
    for file in files:
        problems += _load_file(file, settings.for_file(file))[1]
    if refusal := refusal_of(problems):
        raise refusal
    if not files and not found.lost:
        raise UsageError("there is no *.regression.json in the paths given")
    return [*files, *found.lost]


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


def _settings() -> Settings:
    """The settings of the project that the working directory is in."""
    return Settings.find(working_directory())


def project() -> Settings:
    """The settings, with the plugins imported; never those of the project of a foreign file."""
    settings = _settings()
    if problems := _import_plugins(settings):
        raise ConfigError(problems)
    return settings


def _import_plugins(settings: Settings) -> list[Problem]:
    """Import the modules under `plugins`; a problem for each that cannot be."""
    problems: list[Problem] = []
    if settings.document is None:
        return problems
    for index, name in enumerate(settings.config.plugins):
        if fault := _plugin(name, settings).fault:
            message = f"the plugin {name!r} could not be imported: {fault}"
            place = ("plugins", index)
            problems.append(settings.document.problem(place, "plugin-failed", message))
    return problems


def working_directory() -> Path:
    try:
        return Path.cwd()
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
