"""Finds the files that a case refers to, within the project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from assay.settings import Settings, shown_path
from assay.wire.validation_errors import problem


class FileFinder:
    """Resolves the paths in one eval file.

    They are looked up in the directory of the eval file, then in each parent up to the project
    root; a leading slash means the project root.
    """

    def __init__(self, eval_file: Path, settings: Settings) -> None:
        self.folder = Path(os.path.realpath(eval_file)).parent
        self.root = settings.root
        self.settings = settings

    def file(self, value: str) -> Path:
        return self._find(value, Path.is_file, "file")

    def directory(self, value: str) -> Path:
        return self._find(value, Path.is_dir, "directory")

    def _find(self, value: str, fits: Callable[[Path], bool], kind: str) -> Path:
        tried: list[str] = []
        outside = False
        for candidate in self._candidates(value):
            target = _resolve(candidate)
            if target is None or self.settings.permits(target):
                if target is not None and fits(target):
                    return target
            elif not tried or fits(target):
                outside = True  # the path is outside, or the file that it resolves to
            tried.append(shown_path(candidate))
        if outside:
            root, hint = self.settings.permitted_root()
            raise problem("outside-root", f"{value!r} is outside {root}", hint)
        hint = "looked for " + ", ".join(tried[:4])
        raise problem("file-not-found", f"there is no {kind} {value!r}", hint)

    def _candidates(self, value: str) -> Iterator[Path]:
        if value.startswith("/"):
            yield self.root / value.lstrip("/")
            return
        yield self.folder / value
        if self.folder.is_relative_to(self.root):
            for parent in self.folder.parents:
                if not parent.is_relative_to(self.root):
                    break
                yield parent / value


def _resolve(candidate: Path) -> Path | None:
    """The path with links resolved; None when it is not a valid path."""
    try:
        target = candidate.resolve()
        target.exists()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, a loop of links
        return None
    return target
