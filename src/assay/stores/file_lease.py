"""A lease on a run: a lock on a file next to the store."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO

from assay.atomic_files import try_lock, unlock, writing
from assay.errors import RunHeld
from assay.settings import shown_path


class FileLease:
    """A file lock, which the system releases however the process ends."""

    def __init__(self, folder: Path, run_id: str) -> None:
        # Not every id is a valid file name.
        name = sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._file, self._run_id = folder / name, run_id
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> None:
        stream = self._lock()
        while not self._is_current(stream):
            stream.close()
            stream = self._lock()
        self._stream = stream

    def _lock(self) -> IO[bytes]:
        with writing(shown_path(self._file)):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            stream = self._file.open("a+b")
        while not try_lock(stream):
            # If a shared lock is possible, only a short `is_held` was in the way: try again.
            if not try_lock(stream, shared=True):
                stream.close()
                raise RunHeld(self._run_id)
            unlock(stream)
        return stream

    def is_held(self) -> bool:
        """Does any process hold the lease now? The check does not keep others from taking it."""
        with writing(shown_path(self._file)):
            try:
                stream = self._file.open("rb")
            except FileNotFoundError:
                return False
        with stream:
            return not try_lock(stream, shared=True)

    def _is_current(self, stream: IO[bytes]) -> bool:
        """Is it still the file at this path? The previous holder may have removed it since."""
        try:
            return os.path.samestat(os.fstat(stream.fileno()), os.stat(self._file))
        except FileNotFoundError:
            return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            with suppress(OSError):
                os.unlink(self._file)
            self._stream.close()
            self._stream = None
