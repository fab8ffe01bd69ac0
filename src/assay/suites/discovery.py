"""From the paths a user names to the eval files among them, in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from assay.documents import yaml
from assay.documents.source import is_absent, read_text
from assay.errors import EvalFileErrors, PluginError, Problem, blaming, nearest
from assay.model.suite import CASES_KEYS, INPUT_KEYS
from assay.registry import loaders
from assay.settings import CONFIG_FILES, Settings, shown_path
from assay.suites.ledger import SUFFIX, archive_file, lock_file, locked_file

if TYPE_CHECKING:
    from assay.ports import Loader

#: How the file with the suite-level keys of a JSONL file may end.
_SIDECARS = (".yaml", ".yml")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})


class Discovery(msgspec.Struct):
    """The eval files, what looked like one and was passed over, and paths that are wrong.

    `lost` are regression files that are not there although their lock is.
    """

    files: list[Path] = []
    lost: list[Path] = []
    passed_over: list[tuple[Path, str]] = []
    problems: list[Problem] = []


def discover(paths: Iterable[Path], settings: Settings) -> Discovery:
    """Files are taken as they are named; directories are walked."""
    found = Discovery()
    for path in paths:
        if os.path.isdir(path):
            before = len(found.files) + len(found.lost) + len(found.problems)
            own = settings.for_folder(path)
            for file in _walk(path, own, found):
                with _noting_plugins(file, found):
                    _consider(file, own, found)
            if len(found.files) + len(found.lost) + len(found.problems) == before:
                hint = "eval files have names such as weather.eval.yaml or get_weather.golden.json"
                message = "there is no eval file in this directory"
                _note(found, path, "no-eval-files", message, hint)
        elif reason := _unreachable(path):
            _note(found, path, "unreadable", reason)
        elif os.path.lexists(path):
            with _noting_plugins(path, found):
                _take(path, settings.for_file(path), found)
        else:
            _note(found, path, "not-found", "there is no such file or directory", _nearby(path))
    found.files, found.lost = _each_once(_named_in_text(found)), _each_once(found.lost)
    return found


@contextmanager
def _noting_plugins(file: Path, found: Discovery) -> Iterator[None]:
    """A loader that is broken is a problem of the file that it is for."""
    try:
        yield
    except PluginError as error:
        _note(found, file, "plugin-failed", str(error))


def _take(file: Path, settings: Settings, found: Discovery) -> None:
    """Decide about a file that was named, perhaps by a pattern that fits its companions too."""
    if _leaves(file, settings, found) or _is_lone_lock(file, found):
        return
    if reason := _companion(file, settings):
        found.passed_over.append((file, reason))
    elif loader_for(file) is not None:
        found.files.append(file)
    else:
        message = "this is not an eval file that Assay can load"
        _note(found, file, "unknown-format", message, _formats())


def _each_once(files: list[Path]) -> list[Path]:
    """The first name of every file."""
    return [*{os.path.realpath(file): file for file in reversed(files)}.values()][::-1]


def _named_in_text(found: Discovery) -> list[Path]:
    """The files whose names a result can hold; a name of other bytes is a problem."""
    fit = []
    for file in found.files:
        try:
            str(file).encode()
            fit.append(file)
        except UnicodeEncodeError:
            message = "the name of this file, or of a folder it is in, is not UTF-8"
            _note(found, file, "encoding", message, "rename it")
    return fit


def _is_lone_lock(file: Path, found: Discovery) -> bool:
    """Is it the lock of a regression file that is not there? That one is noted as lost."""
    regression = locked_file(file)
    if regression is None or not is_absent(regression):
        return False
    found.lost.append(regression)
    return True


def _unreachable(path: Path) -> str:
    """Why it cannot be told whether the path exists; empty when it can."""
    try:
        os.lstat(path)
    except PermissionError as error:
        return error.strerror or str(error)
    except (OSError, ValueError):  # not there, too long to be there, a NUL in it
        return ""
    return ""


def loader_for(file: Path) -> Loader | None:
    """The loader with the longest registered suffix of the file's name."""
    suffixes = [suffix for suffix in loaders if file.name.endswith(f".{suffix}")]
    return loaders.get(max(suffixes, key=len)) if suffixes else None


def _companion(file: Path, settings: Settings) -> str:
    """What a file is that stands beside eval files and is none; empty when it may be one."""
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
    """Has it suite-level keys alone, and a JSONL file beside it that they are for?"""
    if file.suffix not in _SIDECARS or not file.with_suffix(".jsonl").is_file():
        return False
    try:
        data = yaml.parse(read_text(file, shown_path(file)), shown_path(file)).data
    except EvalFileErrors:  # loading it will say what is wrong
        return False
    if data is None:
        return True
    return isinstance(data, dict) and data.keys().isdisjoint((*CASES_KEYS, *INPUT_KEYS))


def _consider(file: Path, settings: Settings, found: Discovery) -> None:
    """Decide about a file met in a directory."""
    loader = loader_for(file)
    if file.name in CONFIG_FILES or (loader is None and locked_file(file) is None):
        return
    if _leaves(file, settings, found) or _is_lone_lock(file, found) or loader is None:
        return
    try:
        # A pipe with such a name is taken: loading it will say what it is.
        reason = _recognised(loader, file) if stat.S_ISREG(os.stat(file).st_mode) else ""
    except OSError:
        reason = ""
    except EvalFileErrors as error:
        reason = error.problems[0].message
    if reason:
        found.passed_over.append((file, reason))
    else:
        found.files.append(file)


def _recognised(loader: Loader, file: Path) -> str:
    with blaming("its loader failed", PluginError, OSError):
        reason: object = loader.recognises(file)
    if not isinstance(reason, str):
        found = type(reason).__name__
        raise PluginError(f"'recognises' of its loader returned {found}, not a reason or ''")
    return reason


def _walk(folder: Path, settings: Settings, found: Discovery) -> Iterator[Path]:
    """All files below a folder by name; links to folders are followed once, loops are problems."""
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
            root, hint = settings.refusal()
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


def _leaves(file: Path, settings: Settings, found: Discovery) -> bool:
    """Is it, or what is read with it, a link out of the bounds? That is a problem."""
    if settings.bounds is None:
        return False
    for read in (file, *_read_with(file)):
        if not settings.permits(Path(os.path.realpath(read))):
            _note(found, read, "outside-root", f"this link leaves {settings.refusal()[0]}")
            return True
    return False


def _read_with(file: Path) -> list[Path]:
    """The files beside an eval file that loading it reads too."""
    if file.suffix == ".jsonl":
        return [file.with_suffix(suffix) for suffix in _SIDECARS]
    regression = locked_file(file) or file
    if regression.name.endswith(SUFFIX):
        return [regression, lock_file(regression), archive_file(regression)]
    return []


def _is_skipped(folder: Path, name: str) -> bool:
    """Dot folders, what package managers fill, and virtual environments."""
    if name.startswith(".") or name in SKIPPED_FOLDERS:
        return True
    return os.path.exists(folder / name / "pyvenv.cfg")


def _note(found: Discovery, path: Path, code: str, message: str, hint: str = "") -> None:
    found.problems.append(Problem(shown_path(path), 0, 0, "error", code, message, hint))


def _formats() -> str:
    return "known: " + ", ".join(f"*.{suffix}" for suffix in loaders)


def _nearby(path: Path) -> str:
    try:
        return nearest(path.name, os.listdir(path.parent))
    except OSError:
        return ""
