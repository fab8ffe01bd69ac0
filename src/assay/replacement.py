"""Replace a file in one step: whoever looks sees the old one or the new one, never half of it.

What is no file, such as a device or a pipe, is written to instead.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.errors import StoreError

_BUFFER = 1 << 16


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Whatever keeps the block from writing is a StoreError that says what cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{what} cannot be written: {reason}") from error


def is_device(file: Path) -> bool:
    """Whether it is there to be written to, and must not be replaced; also what links to such."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    # /dev/stdout may be a link to a file that somebody else is writing to.
    in_dev = file.is_absolute() and file.is_relative_to("/dev")
    return not stat.S_ISDIR(mode) and (in_dev or not stat.S_ISREG(mode))


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream that becomes the file when all went well, and leaves no trace otherwise."""
    if is_device(file):
        with open(file, "ab", buffering=_BUFFER) as stream:
            yield stream
        return
    file = Path(os.path.realpath(file))  # a link stays a link
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=_hidden(file))
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


def _hidden(file: Path) -> str:
    """What the name of a file begins with while it is being written; names have 255 bytes."""
    begin = os.fsencode(file.name)[:100].decode(errors="ignore")
    return f".{begin}."


class Nameless:
    """A file that grows without a name, and gets one when it is complete.

    Whatever happens to the process before that, nothing of it is left behind. Where the system
    has no such files it is a temporary one, which cannot get a name.
    """

    def __init__(self, folder: Path) -> None:
        try:
            handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644)
        except (AttributeError, OSError):
            self.stream: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see close
            self.can_be_named = False
        else:
            self.stream = os.fdopen(handle, "w+b", buffering=_BUFFER)
            self.can_be_named = os.path.exists(self._place)

    @property
    def _place(self) -> str:
        return f"/proc/self/fd/{self.stream.fileno()}"

    def become(self, file: Path) -> None:
        """Give it its name, in place of a file that may have had it."""
        self.stream.flush()
        os.fsync(self.stream.fileno())
        temporary = file.with_name(_hidden(file) + secrets.token_hex(8))
        # Only with a folder given does Python ask the system to follow the link of that place.
        os.link(self._place, temporary, src_dir_fd=self.stream.fileno(), follow_symlinks=True)
        os.replace(temporary, file)

    def close(self) -> None:
        self.stream.close()
