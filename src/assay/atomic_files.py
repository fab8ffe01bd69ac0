"""Files that several processes use: replaced atomically, and locked.

A reader sees the old file or the new one, never a part. Devices, pipes and the like are
written to instead. The system releases a lock however the process ends.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows every lock is granted
    fcntl = None  # type: ignore[assignment]


_BUFFER = 1 << 16


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turns an OSError in the block into a StoreError that says what cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{what} cannot be written: {reason}") from error


def is_device(file: Path) -> bool:
    """Is it, or does it link to, something to write to rather than to replace?"""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    # /dev/stdout may link to a regular file that others write to.
    in_dev = file.is_absolute() and file.is_relative_to("/dev")
    return not stat.S_ISDIR(mode) and (in_dev or not stat.S_ISREG(mode))


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream that replaces the file at the end of the block; after an error nothing is left."""
    if is_device(file):
        with open(file, "ab", buffering=_BUFFER) as stream:
            yield stream
        return
    file = Path(os.path.realpath(file))  # keep a link, and replace what it points to
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=_temporary_prefix(file))
    try:
        with os.fdopen(handle, "wb", buffering=_BUFFER) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _temporary_prefix(file: Path) -> str:
    """How the name of the temporary file begins; cut, as a name has at most 255 bytes."""
    begin = os.fsencode(file.name)[:100].decode(errors="ignore")
    return f".{begin}."


def try_lock(file: IO[bytes] | int, *, shared: bool = False) -> bool:
    """Lock without waiting; False when another process holds a conflicting lock.

    File systems without locks grant every lock.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def unlock(file: IO[bytes] | int) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_UN)
