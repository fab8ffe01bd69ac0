"""Reads files as text: only regular ones, up to a size limit, in UTF-8."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from assay.errors import EvalFileErrors
from assay.problems import Problem
from assay.wire.document import MAX_FILE_BYTES, LineIndex

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(file: Path, shown: str, limit: int = MAX_FILE_BYTES) -> str:
    """The file's text without its byte-order mark."""
    with open_binary(file, shown) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise _file_error(
                shown,
                "too-large",
                f"the file has {size:,} bytes; the limit is {limit:,}",
                "split it, or write the cases as JSONL, which is read line by line",
            )
        try:
            data = stream.read(size + 1)  # reading up to the limit would allocate that much
            if len(data) > size:  # it is growing, or does not report its size
                data += stream.read(limit - size)
        except OSError as error:
            raise _file_error(shown, "unreadable", error.strerror or str(error)) from None
        return decode(data, shown)


def is_absent(file: Path) -> bool:
    """Does nothing exist at this path, not even a broken link, a pipe or a folder?"""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def open_binary(file: Path, shown: str) -> BinaryIO:
    """Open a regular file for reading; raises EvalFileErrors, and never blocks on a pipe."""
    try:
        mode = os.stat(file).st_mode
        if not stat.S_ISREG(mode):
            raise _file_error(shown, "not-a-file", f"this is {_kind(mode)}, not a regular file")
        return open(file, "rb")
    except FileNotFoundError:
        broken = "the symbolic link leads to nothing"
        message = broken if os.path.islink(file) else "there is no such file"
        raise _file_error(shown, "not-found", message) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            message = "the symbolic link leads back to itself"
            raise _file_error(shown, "symlink-loop", message) from None
        raise _file_error(shown, "unreadable", error.strerror or str(error)) from None


def decode(data: bytes, shown: str, first_line: int = 1) -> str:
    """Decode UTF-8; an error has the position of the first invalid byte."""
    if data.startswith(UTF16_MARKS):
        raise _error_at(shown, first_line, 1, "encoding", "the file is UTF-16", "save it as UTF-8")
    nul = data.find(b"\0")
    if nul >= 0:
        hint = (
            "the file looks like UTF-16: save it as UTF-8" if data.count(b"\0", 0, 64) > 8 else ""
        )
        line, column = _line_and_column(data, nul, first_line)
        raise _error_at(shown, line, column, "bad-character", "there is a NUL byte here", hint)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _line_and_column(data, error.start, first_line)
        found = data[error.start]
        raise _error_at(
            shown,
            line,
            column,
            "encoding",
            f"byte 0x{found:02x} is not valid UTF-8 here",
            "save the file as UTF-8",
        ) from None
    # A byte-order mark is an ordinary character anywhere but at the start of the file.
    return text.removeprefix("\ufeff") if first_line == 1 else text


def _line_and_column(data: bytes, offset: int, first_line: int) -> tuple[int, int]:
    before = data[:offset].decode("utf-8", "replace").removeprefix("\ufeff")
    mark = LineIndex(before, first_line).mark(len(before))
    return mark.line + 1, mark.column + 1


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "a special file")


def _file_error(shown: str, code: str, message: str, hint: str = "") -> EvalFileErrors:
    return _error_at(shown, 0, 0, code, message, hint)


def _error_at(
    shown: str, line: int, column: int, code: str, message: str, hint: str
) -> EvalFileErrors:
    return EvalFileErrors([Problem(shown, line, column, "error", code, message, hint)])
