"""From the paths a user names to the eval files among them, in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import EvalFileErrors, Problem, nearest
from assay.ports import Loader
from assay.registry import loaders
from assay.settings import shown

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})


@dataclass(slots=True)
class Discovery:
    """The eval files, what looked like one and was passed over, and paths that are wrong."""

    files: list[Path] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def discover(paths: Iterable[Path]) -> Discovery:
    """Files are taken as they are named; directories are walked."""
    found = Discovery()
    for path in paths:
        if path.is_dir():
            before = len(found.files) + len(found.problems)
            for file in _walk(path, found):
                _consider(file, found)
            if len(found.files) + len(found.problems) == before:
                _note(found, path, "no-eval-files", "there is no eval file in this directory")
        elif os.path.lexists(path):
            if loader_for(path) is None:
                _note(
                    found,
                    path,
                    "unknown-format",
                    "this is no eval file that Assay can load",
                    _formats(),
                )
            else:
                found.files.append(path)
        else:
            _note(found, path, "not-found", "there is no such file or directory", _nearby(path))
    unique = {os.path.realpath(file): file for file in reversed(found.files)}
    found.files = [file for file in found.files if unique[os.path.realpath(file)] is file]
    return found


def loader_for(file: Path) -> Loader | None:
    """The loader with the longest registered suffix of the file's name."""
    suffixes = [suffix for suffix in loaders if file.name.endswith(f".{suffix}")]
    return loaders.get(max(suffixes, key=len)) if suffixes else None


def _consider(file: Path, found: Discovery) -> None:
    """Decide about a file met in a directory."""
    loader = loader_for(file)
    if loader is None or file.name == "assay.yaml":
        return
    try:
        # A pipe or a folder with such a name is taken: loading it will say what it is.
        reason = loader.recognises(file) if stat.S_ISREG(os.stat(file).st_mode) else ""
    except OSError:
        reason = ""
    except EvalFileErrors as error:
        reason = error.problems[0].message
    if reason:
        found.passed_over.append((file, reason))
    else:
        found.files.append(file)


def _walk(folder: Path, found: Discovery) -> Iterator[Path]:
    """All files below a folder by name; links to folders are followed, loops are problems."""
    todo: list[tuple[Path, frozenset[str]]] = [(folder, frozenset())]
    while todo:
        here, above = todo.pop()
        above |= {os.path.realpath(here)}
        try:
            entries = sorted(os.scandir(here), key=lambda e: e.name)
        except OSError as error:
            _note(found, here, "unreadable", error.strerror or str(error))
            continue
        folders: list[tuple[Path, frozenset[str]]] = []
        for entry in entries:
            path = here / entry.name
            if not path.is_dir():
                yield path
            elif entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
                continue
            elif not (path / "pyvenv.cfg").exists():
                if os.path.realpath(path) in above:
                    message = "this link leads back to a folder it is in"
                    _note(found, path, "symlink-loop", message)
                else:
                    folders.append((path, above))
        todo.extend(reversed(folders))


def _note(found: Discovery, path: Path, code: str, message: str, hint: str = "") -> None:
    found.problems.append(Problem(shown(path), 0, 0, "error", code, message, hint))


def _formats() -> str:
    return "known are " + ", ".join(f"*.{suffix}" for suffix in loaders)


def _nearby(path: Path) -> str:
    try:
        return nearest(path.name, os.listdir(path.parent))
    except OSError:
        return ""
