"""Stdout and stderr that may go away while a command is at work.

The command goes on, and what it still writes is thrown away: its files are written, and its run
is kept. A reader that has seen enough, as `head` has, changes nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO

_STDOUT, _STDERR = 1, 2


def guard() -> None:
    """Both streams, for the rest of the process."""
    if sys.stdin is None:
        sys.stdin = _nowhere("r")
    sys.stdout = _guarded(sys.stdout or _nowhere("w"))
    sys.stderr = _guarded(sys.stderr or _nowhere("w"))


def fault() -> str:
    """Why something that was to be seen on stdout could not be written; empty when nothing was."""
    sys.stdout.flush()
    raw = getattr(sys.stdout.buffer, "raw", None)
    return raw.fault if isinstance(raw, _Guarded) else ""


@contextmanager
def kept_clean() -> Iterator[None]:
    """Stdout is the report's: what code of the project prints, or starts, goes to stderr."""
    sys.stdout.flush()
    ours, own = sys.stdout, os.dup(_STDOUT)
    # A stream of its own, which the project may close.
    sys.stdout = _stream(_STDERR, sys.stderr, line_buffering=True)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        sys.stdout = ours
        os.dup2(own, _STDOUT)
        os.close(own)


def _nowhere(mode: Literal["r", "w"]) -> TextIO:
    """In place of a stream that the process was started without.

    It has the lowest free number, which is that of the stream, and keeps it: programs that we
    start would write to any other file that had it.
    """
    access = os.O_RDONLY if mode == "r" else os.O_WRONLY
    return open(os.open(os.devnull, access), mode, encoding="utf-8", closefd=False)


def _guarded(stream: TextIO) -> TextIO:
    return _stream(stream.fileno(), stream, line_buffering=bool(stream.line_buffering))


def _stream(descriptor: int, like: TextIO, *, line_buffering: bool) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(_Guarded(descriptor, "wb", closefd=False)),
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=line_buffering,
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
