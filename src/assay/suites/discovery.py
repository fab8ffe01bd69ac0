"""Finds the eval files among the paths that a user names, in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from assay.errors import EvalFileErrors, PluginError, nearest, wrap_errors
from assay.model.suite import CASES_KEYS, INPUT_KEYS
from assay.problems import Problem
from assay.registry import loaders
from assay.settings import CONFIG_FILES, Settings, shown_path
from assay.suites.ledger import SUFFIX, archive_file, lock_file, locked_file
from assay.wire import yaml
from assay.wire.text_files import is_absent, read_text

if TYPE_CHECKING:
    from assay.ports import Loader

#: The suffixes of a sidecar, which has the suite-level keys of a JSONL file.
_SIDECAR_SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})


class Discovery(msgspec.Struct):
    """The eval files, those that were passed over and why, and problems with paths.

    `lost` are missing regression files whose lock file exists.
    """

    files: list[Path] = []
    lost: list[Path] = []
    skipped_files: list[tuple[Path, str]] = []
    problems: list[Problem] = []


def discover(paths: Iterable[Path], settings: Settings) -> Discovery:
    """The eval files that the paths name, and those in the directories that they name."""
    found = Discovery()
    for path in paths:
        if os.path.isdir(path):
            before = len(found.files) + len(found.lost) + len(found.problems)
            own = settings.for_folder(path)
            for file in _walk(path, own, found):
                with _noting_plugin_errors(file, found):
                    _add_walked(file, own, found)
            if len(found.files) + len(found.lost) + len(found.problems) == before:
                hint = "eval files have names such as weather.eval.yaml or get_weather.golden.json"
                message = "there is no eval file in this directory"
                _note(found, path, "no-eval-files", message, hint)
        elif reason := _unreachable(path):
            _note(found, path, "unreadable", reason)
        elif os.path.lexists(path):
            with _noting_plugin_errors(path, found):
                _add_named(path, settings.for_file(path), found)
        else:
            _note(found, path, "not-found", "there is no such file or directory", _near_miss(path))
    found.files, found.lost = _unique(_with_utf8_names(found, settings.root)), _unique(found.lost)
    _skip_named_cases(found, settings)
    return found


def cases_file(file: Path, settings: Settings) -> Path | None:
    """The file of cases that an eval file names, if its loader knows of such."""
    find = getattr(loader_for(file), "cases_file", None)
    named: Path | None = None if find is None else find(file, settings)
    return named


def _skip_named_cases(found: Discovery, settings: Settings) -> None:
    """Files of cases are loaded with the suite that names them."""
    suites: dict[str, Path] = {}
    naming: set[Path] = set()  # these are not files of cases, even if another one names them
    for file in found.files:
        with _noting_plugin_errors(file, found):
            named = cases_file(file, settings.for_file(file))
            if named is not None:
                suites.setdefault(os.path.realpath(named), file)
                naming.add(file)
    if suites:
        files, found.files = found.files, []
        for file in files:
            suite = suites.get(os.path.realpath(file))
            if suite is None or file in naming:
                found.files.append(file)
            else:
                found.skipped_files.append((file, f"it has the cases of {suite.name}"))


@contextmanager
def _noting_plugin_errors(file: Path, found: Discovery) -> Iterator[None]:
    """Reports a broken loader as a problem of the file."""
    try:
        yield
    except PluginError as error:
        _note(found, file, "plugin-failed", str(error))


def _add_named(file: Path, settings: Settings, found: Discovery) -> None:
    """Classify a file that was named, maybe by a glob that matches its companions too."""
    if _leaves_bounds(file, settings, found) or _is_orphaned_lock(file, found):
        return
    if reason := _companion_kind(file, settings):
        found.skipped_files.append((file, reason))
    elif loader_for(file) is not None:
        found.files.append(file)
    else:
        message = "this is not an eval file that Assay can load"
        _note(found, file, "unknown-format", message, _formats())


def _unique(files: list[Path]) -> list[Path]:
    """The first path of each file."""
    return [*{os.path.realpath(file): file for file in reversed(files)}.values()][::-1]


def _with_utf8_names(found: Discovery, root: Path) -> list[Path]:
    """The files whose paths in the project are UTF-8, as results need; others are problems."""
    valid = []
    for file in found.files:
        path = Path(os.path.abspath(file))
        try:
            str(path.relative_to(root) if path.is_relative_to(root) else path).encode()
            valid.append(file)
        except UnicodeEncodeError:
            message = "the name of this file, or of a folder it is in, is not UTF-8"
            _note(found, file, "encoding", message, "rename it")
    return valid


def _is_orphaned_lock(file: Path, found: Discovery) -> bool:
    """Is it the lock of a missing regression file? Then that file is noted as lost."""
    regression = locked_file(file)
    if regression is None or not is_absent(regression):
        return False
    found.lost.append(regression)
    return True


def _unreachable(path: Path) -> str:
    """Why it is unknown whether the path exists; empty when it is known."""
    try:
        os.lstat(path)
    except PermissionError as error:
        return error.strerror or str(error)
    except (OSError, ValueError):  # missing, too long to exist, or with a NUL
        return ""
    return ""


def loader_for(file: Path) -> Loader | None:
    """The loader whose suffix matches the file's name; the longest suffix wins."""
    suffixes = [suffix for suffix in loaders if file.name.endswith(f".{suffix}")]
    return loaders.get(max(suffixes, key=len)) if suffixes else None


def _companion_kind(file: Path, settings: Settings) -> str:
    """What a file beside eval files is, if it cannot be one itself; else empty."""
    for part in ("lock", "archive"):
        tool = file.name.removesuffix(f".regression.{part}.json")
        if tool != file.name:
            return f"it is the {part} of {tool}.regression.json"
    if file.name in CONFIG_FILES:
        return "it is the configuration"
    if file.name.endswith(".schema.json"):
        return "it is a JSON Schema"
    if os.path.realpath(file) == os.path.realpath(settings.seed_manifest):
        return "it is the seed manifest"
    return f"it is the sidecar of {file.stem}.jsonl" if _is_sidecar(file) else ""


def _is_sidecar(file: Path) -> bool:
    """Has it suite-level keys only, and a JSONL file of the same name beside it?"""
    if file.suffix not in _SIDECAR_SUFFIXES or not file.with_suffix(".jsonl").is_file():
        return False
    try:
        data = yaml.parse(read_text(file, shown_path(file)), shown_path(file)).data
    except EvalFileErrors:  # reported when it is loaded
        return False
    if data is None:
        return True
    return isinstance(data, dict) and data.keys().isdisjoint((*CASES_KEYS, *INPUT_KEYS))


def _add_walked(file: Path, settings: Settings, found: Discovery) -> None:
    """Classify a file that was found in a directory."""
    loader = loader_for(file)
    if file.name in CONFIG_FILES or (loader is None and locked_file(file) is None):
        return
    if _leaves_bounds(file, settings, found) or _is_orphaned_lock(file, found) or loader is None:
        return
    try:
        # A pipe with such a name is added: loading it reports the problem.
        reason = _reason_to_skip(loader, file) if stat.S_ISREG(os.stat(file).st_mode) else ""
    except OSError:
        reason = ""
    except EvalFileErrors as error:
        reason = error.problems[0].message
    if reason:
        found.skipped_files.append((file, reason))
    else:
        found.files.append(file)


def _reason_to_skip(loader: Loader, file: Path) -> str:
    with wrap_errors("its loader failed", PluginError, OSError):
        reason: object = loader.recognises(file)
    if not isinstance(reason, str):
        found = type(reason).__name__
        raise PluginError(f"'recognises' of its loader returned {found}, not a reason or ''")
    return reason


def _walk(folder: Path, settings: Settings, found: Discovery) -> Iterator[Path]:
    """All files below a folder, sorted. Linked folders are visited once, loops are problems."""
    visited: set[str] = set()
    start = Path(os.path.realpath(folder))
    todo: list[tuple[Path, frozenset[str]]] = [(folder, frozenset())]
    while todo:
        here, above = todo.pop()
        real = os.path.realpath(here)
        if real in above or (here != folder and start.is_relative_to(real)):
            _note(found, here, "symlink-loop", "this link leads back to a folder it is in")
            continue
        if here.is_symlink() and here != folder and not settings.permits(Path(real)):
            root, hint = settings.permitted_root()
            _note(found, here, "outside-root", f"this link leaves {root}", hint)
            continue
        if real in visited:
            continue
        visited.add(real)
        try:
            names = sorted(os.listdir(here))
        except OSError as error:
            _note(found, here, "unreadable", error.strerror or str(error))
            continue
        folders: list[tuple[Path, frozenset[str]]] = []
        for name in names:
            if not os.path.isdir(here / name):
                yield here / name
            elif not _is_skipped(here, name):
                folders.append((here / name, above | {real}))
        todo.extend(reversed(folders))


def _leaves_bounds(file: Path, settings: Settings, found: Discovery) -> bool:
    """Is it, or a file loaded with it, a link out of the served root? Adds a problem if so."""
    if settings.bounds is None:
        return False
    for each in (file, *_loaded_with(file)):
        if not settings.permits(Path(os.path.realpath(each))):
            _note(found, each, "outside-root", f"this link leaves {settings.permitted_root()[0]}")
            return True
    return False


def _loaded_with(file: Path) -> list[Path]:
    """The files that are read when an eval file is loaded, besides itself."""
    if file.suffix == ".jsonl":
        return [file.with_suffix(suffix) for suffix in _SIDECAR_SUFFIXES]
    regression = locked_file(file) or file
    if regression.name.endswith(SUFFIX):
        return [regression, lock_file(regression), archive_file(regression)]
    return []


def _is_skipped(folder: Path, name: str) -> bool:
    """Is it a dot folder, a folder of a package manager or a virtual environment?"""
    if name.startswith(".") or name in SKIPPED_FOLDERS:
        return True
    return os.path.exists(folder / name / "pyvenv.cfg")


def _note(found: Discovery, path: Path, code: str, message: str, hint: str = "") -> None:
    found.problems.append(Problem(shown_path(path), 0, 0, "error", code, message, hint))


def _formats() -> str:
    return "known: " + ", ".join(f"*.{suffix}" for suffix in loaders)


def _near_miss(path: Path) -> str:
    try:
        return nearest(path.name, os.listdir(path.parent))
    except OSError:
        return ""
