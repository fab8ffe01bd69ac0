"""Stdout and stderr that survive the loss of their reader.

When a reader such as `head` closes the pipe, further output is discarded. The command goes on: it
still writes its files and records its run.
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
    """Replace both streams for the rest of the process."""
    if sys.stdin is None:
        sys.stdin = _open_devnull("r")
    sys.stdout = _guarded(sys.stdout or _open_devnull("w"))
    sys.stderr = _guarded(sys.stderr or _open_devnull("w"))


def fault() -> str:
    """Why writing to stdout failed, except for a closed pipe; empty if it did not."""
    sys.stdout.flush()
    raw = getattr(sys.stdout.buffer, "raw", None)
    return raw.fault if isinstance(raw, _Guarded) else ""


@contextmanager
def stdout_redirected() -> Iterator[None]:
    """Redirect to stderr what code of the project, or a program it starts, prints to stdout.

    Stdout is only for the report.
    """
    sys.stdout.flush()
    stream, descriptor = sys.stdout, os.dup(_STDOUT)
    # Not sys.stderr itself: the project may close it.
    sys.stdout = _stream(_STDERR, sys.stderr, line_buffering=True)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        sys.stdout = stream
        os.dup2(descriptor, _STDOUT)
        os.close(descriptor)


def _open_devnull(mode: Literal["r", "w"]) -> TextIO:
    """A stream in place of one that the process was started without.

    It takes the lowest free descriptor, which is that of the missing stream, and keeps it:
    otherwise a file opened later would get it, and programs that we start would write to that.
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
    """A file that is redirected to /dev/null after the first failed write."""

    fault = ""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.fault = error.strerror or str(error)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self.fileno())
            os.close(devnull)
            return memoryview(data).nbytes
