"""Stdout and stderr that may go away while a command is at work.

The command goes on, and what it still writes is thrown away: its files are written, and its run
is kept. A reader that has seen enough, as `head` has, changes nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


def guard() -> None:
    """Both streams, for the rest of the process."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def fault() -> str:
    """Why something that was to be seen on stdout could not be written; empty when nothing was."""
    if sys.stdout is None:
        return ""
    sys.stdout.flush()
    raw = getattr(sys.stdout.buffer, "raw", None)
    return raw.fault if isinstance(raw, _Guarded) else ""


def _guarded(stream: TextIO) -> TextIO:
    if stream is None:  # the process was started without it
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Guarded(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=bool(stream.line_buffering),
    )


class _Guarded(io.FileIO):
    """A descriptor that leads nowhere as soon as it cannot be written to."""

    fault = ""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.fault = error.strerror or str(error)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes
