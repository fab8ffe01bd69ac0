"""Watches the eval files of a run and the sources of its project for changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from assay.errors import AssayError
from assay.registry import loaders
from assay.settings import CONFIG_FILES, Settings
from assay.suites.discovery import SKIPPED_FOLDERS, discover

#: Seconds between two looks at the files.
INTERVAL = 0.5
#: A look may take this share of the time; in a large project, there is more time between them.
MAX_SHARE = 0.05
#: Suffixes of what an agent consists of, besides its configuration. Others may be what it writes.
SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rs", ".rb", ".java", ".sh", ".md", ".j2")

#: When a file was changed, and its size.
Stamp = tuple[int, int]


class Changes(msgspec.Struct, frozen=True):
    """The files that changed, and the paths of a run that are affected; None for all."""

    files: tuple[Path, ...] = ()
    paths: tuple[Path, ...] | None = None

    def __or__(self, earlier: Changes) -> Changes:
        """With the changes before, whose run was cancelled."""
        files = tuple(dict.fromkeys((*earlier.files, *self.files)))
        if self.paths is None or earlier.paths is None:
            return Changes(files)
        return Changes(files, tuple(dict.fromkeys((*earlier.paths, *self.paths))))


class Watcher:
    """Looks at the files of a project from time to time.

    `paths` are those of the run. `ignored` are files that the run writes.
    """

    def __init__(self, root: Path, paths: Sequence[Path], ignored: Collection[Path] = ()) -> None:
        self._root, self._paths = root.resolve(), [path.resolve() for path in paths]
        self._ignored = {path.resolve() for path in ignored}
        self._suffixes = tuple(f".{suffix}" for suffix in loaders)
        self._seen = self._look()

    def wait(self, pause: Callable[[float], bool]) -> Changes | None:
        """The next changes; None once `pause`, which gets the seconds to wait, returns True.

        Changes that come together, as when several files are saved, are returned together.
        """
        changed: set[Path] = set()
        while True:
            began = time.monotonic()
            found = self._look()
            new = {file for file, _ in found.items() ^ self._seen.items()}
            self._seen = found
            changed |= new
            if changed and not new:
                return self._changes(sorted(changed))
            if pause(max(INTERVAL, (time.monotonic() - began) / MAX_SHARE)) and not changed:
                return None

    def _look(self) -> dict[Path, Stamp]:
        found: dict[Path, Stamp] = {}
        for start in (self._root, *self._paths):
            for file in _files(start):
                if file not in found and file not in self._ignored and self._matters(file):
                    try:
                        known = file.stat()
                    except OSError:  # it was removed just now
                        continue
                    found[file] = known.st_mtime_ns, known.st_size
        return found

    def _matters(self, file: Path) -> bool:
        if file.suffix in SOURCES or (file.parent == self._root and file.name in CONFIG_FILES):
            return True
        return file.name.endswith(self._suffixes) and any(
            file.is_relative_to(path) for path in self._paths
        )

    def _changes(self, files: Sequence[Path]) -> Changes:
        """Only the eval files that changed, unless something else did too."""
        try:
            known = discover(self._paths, Settings.find(self._root)).files
        except AssayError:  # the run reports it
            return Changes(tuple(files))
        if {*files} <= {file.resolve() for file in known}:
            return Changes(tuple(files), tuple(files))
        return Changes(tuple(files))


def _files(start: Path) -> Iterator[Path]:
    """The files below a folder, without those of package managers and tools."""
    if start.is_file():
        yield start
    for folder, folders, names in os.walk(start):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED_FOLDERS
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in names:
            yield Path(folder, name)
