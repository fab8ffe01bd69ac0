"""A lease on a run, held by a lock on a file beside the store."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO

from assay.errors import RunHeld, StoreError
from assay.settings import shown_path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: two resumes at once are not kept apart there
    fcntl = None  # type: ignore[assignment]


class FileLease:
    """Held by a lock on a file, which the system takes back when the process ends, however."""

    def __init__(self, folder: Path, run_id: str) -> None:
        # An id may be any text, the name of a file may not.
        name = sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._file, self._run_id = folder / name, run_id
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> None:
        while self._stream is None:
            stream = self._opened()
            try:
                if fcntl is not None:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                stream.close()
                raise RunHeld(self._run_id) from None
            if self._is_there(stream):
                self._stream = stream
            else:
                stream.close()  # whoever held it removed it meanwhile

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

    def _opened(self) -> IO[bytes]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            return self._file.open("ab")
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{shown_path(self._file)} cannot be written: {reason}") from None

    def _is_there(self, stream: IO[bytes]) -> bool:
        """Is the open file still the one that others would open?"""
        try:
            return os.path.samestat(os.stat(self._file), os.fstat(stream.fileno()))
        except OSError:
            return False
