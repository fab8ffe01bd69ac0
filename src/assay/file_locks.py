"""Locks on open files and folders, which the system releases however the process ends."""

from __future__ import annotations

from typing import IO

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows every lock is granted
    fcntl = None  # type: ignore[assignment]


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
