"""Replace a file in one step: whoever looks sees the old one or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.errors import StoreError


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Whatever keeps the block from writing is a StoreError that says what cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{what} cannot be written: {reason}") from error


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream that becomes the file when all went well, and leaves no trace otherwise."""
    file = Path(os.path.realpath(file))  # a link stays a link
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:100]}.")
    try:
        with os.fdopen(handle, "wb", buffering=1 << 16) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
