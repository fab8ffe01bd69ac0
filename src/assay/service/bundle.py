"""The project bundle: the files of a project, for workers on machines that do not have them.

It has the files that git knows, or those that the configuration lists, but no dotfiles, and no
links that lead outside the project.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import msgspec

from assay.errors import ExecutorError, UsageError
from assay.settings import Settings

#: The most that the files of a bundle may have together.
MAX_BYTES = 50 * 1024 * 1024
_GIT_SECONDS = 60
_ADVICE = "list what workers need under 'bundle' in assay.yaml, or set 'shared_folder: true'"


class _File(msgspec.Struct, array_like=True, frozen=True):
    path: bytes
    data: bytes
    is_program: bool


def packed(settings: Settings) -> bytes:
    """The bundle of a project; raises UsageError if it is too large."""
    root, files, size = settings.root, [], 0
    for path in _listed(settings):
        file = root / path
        size += file.stat().st_size
        if size > MAX_BYTES:
            limit = f"{MAX_BYTES >> 20} MB"
            raise UsageError(f"the files of the project have more than {limit}: {_ADVICE}")
        files.append(_File(os.fsencode(path), file.read_bytes(), os.access(file, os.X_OK)))
    return zlib.compress(msgspec.msgpack.encode(files))


def hash_of(bundle: bytes) -> str:
    return sha256(bundle).hexdigest()


def unpacked(bundle: bytes, expected: str) -> TemporaryDirectory[str]:
    """A folder with the files of a bundle, which only this user may enter."""
    if hash_of(bundle) != expected:
        raise ExecutorError("the project bundle was damaged on its way to this worker")
    folder = TemporaryDirectory(prefix="assay-", ignore_cleanup_errors=True)
    for each in msgspec.msgpack.decode(zlib.decompress(bundle), type=list[_File]):
        path = os.fsdecode(each.path)
        if not _may_travel(path):
            raise ExecutorError(f"the project bundle has a file {path!r}")
        file = Path(folder.name, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.data)
        file.chmod(0o700 if each.is_program else 0o600)
    return folder


def _listed(settings: Settings) -> list[str]:
    """The files of the bundle, relative to the project root, sorted."""
    root, patterns = settings.root, settings.config.bundle
    found = {path for pattern in patterns for path in _matching(root, pattern)}
    names = sorted(found if patterns else _known_to_git(root))
    real = os.path.realpath(root)
    return [name for name in names if _may_travel(name) and _is_inside(root / name, real)]


def _matching(root: Path, pattern: str) -> set[str]:
    """The files that a pattern matches, and those in the folders that it matches."""
    found = list(root.glob(pattern))
    if not found:
        raise UsageError(f"'bundle' in assay.yaml lists {pattern!r}, and no file matches that")
    files = [below for path in found for below in (path, *path.rglob("*"))]
    return {file.relative_to(root).as_posix() for file in files}


def _may_travel(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not any(part == "/" or part.startswith(".") for part in parts)


def _is_inside(file: Path, root: str) -> bool:
    return file.is_file() and Path(os.path.realpath(file)).is_relative_to(root)


def _known_to_git(root: Path) -> set[str]:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        raise UsageError(f"git does not know the files of the project: {_ADVICE}") from None
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
