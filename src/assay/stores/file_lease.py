"""A lease on a run, held by a lock on a file beside the store."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO

from assay.errors import RunHeld
from assay.replacement import writing
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
        stream = self._locked()
        while not self._is_current(stream):
            stream.close()
            stream = self._locked()
        self._stream = stream

    def _locked(self) -> IO[bytes]:
        with writing(shown_path(self._file)):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            stream = self._file.open("a+b")
        while not _is_locked(stream):
            # Whoever only asks has a shared lock for a moment: that is no reason to give up.
            if not _is_locked(stream, shared=True):
                stream.close()
                raise RunHeld(self._run_id)
            _unlock(stream)
        return stream

    def is_held(self) -> bool:
        """Does somebody hold it right now? To ask is in nobody's way."""
        with writing(shown_path(self._file)):
            try:
                stream = self._file.open("rb")
            except FileNotFoundError:
                return False
        with stream:
            return not _is_locked(stream, shared=True)

    def _is_current(self, stream: IO[bytes]) -> bool:
        """Is it the file that others would lock? Who held it before may have removed it since."""
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


def _is_locked(stream: IO[bytes], *, shared: bool = False) -> bool:
    """Lock the file; False when another has a lock that does not go with it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unlock(stream: IO[bytes]) -> None:
    if fcntl is not None:
        fcntl.flock(stream, fcntl.LOCK_UN)
