"""The index of a replay file: offsets of lines by the ids of their cases.

A large file is indexed by two processes, as the first answer has to wait for the index.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import replace

from assay.errors import EvalFileErrors
from assay.problems import MAX_PROBLEMS, Problem, Problems
from assay.wire.document import MAX_LINE
from assay.wire.json import Reader
from assay.wire.text_files import decode, open_binary
from assay.wire.validation_errors import shown

#: How many bytes are read at a time.
_BLOCK = 64 * 1024
#: Files of at least this size are split between two processes.
HALVED_BYTES = 16 * 1024 * 1024


class Head(msgspec.Struct):
    """The only part of a line that the index needs."""

    id: str


HEAD = msgspec.json.Decoder(Head)


def _hash(case_id: str) -> int:
    """32 bits, the same in every process."""
    return crc32(case_id.encode(errors="surrogatepass"))


class Index:
    """A hash table in three arrays; a dictionary would take more than five times the memory.

    Lines are found by 32 bits of the hash of their id, so callers must compare the id itself.
    `end` is the offset where the last line ends.
    """

    def __init__(self, file: Path, name: str) -> None:
        self.offsets, self._hashes = array("Q"), array("I")
        self.problems = Problems(name)
        self.end = lines = 0
        for part in _parts(file, name):
            self.offsets += part.offsets
            self._hashes += part.hashes
            self.problems += [replace(p, line=p.line + lines) for p in part.problems]
            lines += part.lines
            self.end = part.end
            if part.broken_off:
                break
        size = 4
        while size < len(self.offsets) * 1.5:
            size *= 2
        slots, mask = array("I", [0]) * size, size - 1
        for line, hashed in enumerate(self._hashes, 1):
            slot = hashed & mask
            while slots[slot]:
                slot = slot + 1 & mask
            slots[slot] = line
        self._slots, self._mask = slots, mask

    def lines(self, case_id: str) -> list[int]:
        """The lines that may have this id, in the order of the file."""
        return self._with_hash(_hash(case_id))

    def lines_like(self, line: int) -> list[int]:
        """The lines that may have the same id as this one."""
        return self._with_hash(self._hashes[line])

    def _with_hash(self, hashed: int) -> list[int]:
        slots, mask, found = self._slots, self._mask, []
        slot = hashed & mask
        while line := slots[slot]:
            if self._hashes[line - 1] == hashed:
                found.append(line - 1)
            slot = slot + 1 & mask
        return found


class Part(NamedTuple):
    """The valid lines of a part of a file: their offsets, and the hashes of their ids.

    Problems count lines from the start of the part. `broken_off` means that the last line is too
    long, and no line after it was read.
    """

    offsets: array[int]
    hashes: array[int]
    problems: list[Problem]
    lines: int
    end: int
    broken_off: bool


def _parts(file: Path, name: str) -> Iterator[Part]:
    with open_binary(file, name) as stream:
        size = stream.seek(0, 2)
        stream.seek(size // 2)
        rest = stream.readline(MAX_LINE + 1)
    middle = size // 2 + len(rest)
    # Only the main thread forks: in a server, other threads may hold locks that the child needs.
    may_fork = hasattr(os, "fork") and threading.current_thread() is threading.main_thread()
    if size < HALVED_BYTES or not may_fork or not rest.endswith(b"\n"):
        yield read(file, name, 0, size)
        return
    other = _Other(file, name, middle, size)
    try:
        yield read(file, name, 0, middle)
        yield other.part()
    finally:
        other.end()


class _Other:
    """A forked process that reads a part."""

    def __init__(self, file: Path, name: str, start: int, stop: int) -> None:
        self._wanted = (file, name, start, stop)
        source, sink = os.pipe()
        self._source = open(source, "rb")  # noqa: SIM115 - see end
        with warnings.catch_warnings():
            # Newer Pythons warn if there are threads. Ours only hash a file, or write to the store.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid:
            os.close(sink)
            return
        # The child exits without cleanup, as all it inherited belongs to its parent. It closes only
        # its read end of the pipe: with that open, it would block if its parent died.
        try:
            self._source.close()
            with open(sink, "wb") as stream:
                pickle.dump(read(*self._wanted), stream)
        finally:
            os._exit(0)

    def part(self) -> Part:
        """What it found; if it died before, the part is read here."""
        with suppress(EOFError, pickle.UnpicklingError):
            part: Part = pickle.loads(self._source.read())
            return part
        return read(*self._wanted)

    def end(self) -> None:
        """Kill it, as it may be blocked writing a result that is not read."""
        self._source.close()
        with suppress(OSError):  # the calling program may reap all children
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def read(file: Path, name: str, start: int, stop: int) -> Part:
    """Index the lines of a file between two offsets; a line must begin at `start`."""
    offsets, hashes, problems = array("Q"), array("I"), list[Problem]()
    found, hashed, head = offsets.append, hashes.append, HEAD.decode
    offset, number, end, reader = start, 1, start, Reader(name)
    for data in _lines(file, name, start, stop):
        if len(data) > MAX_LINE:
            message = f"the line has more than {MAX_LINE:,} bytes; no line after it is read"
            problems.append(Problem(name, number, 1, "error", "too-large", message))
            return Part(offsets, hashes, problems, number, end, broken_off=True)
        begin = offset
        offset += len(data) + 1
        if begin == 0 and data.startswith(b"\xef\xbb\xbf"):
            begin, data = 3, data[3:]
        try:
            hashed(_hash(head(data).id))
            found(begin)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if data and not data.isspace() and len(problems) <= MAX_PROBLEMS:
                problems.append(_fault(reader, data, number, error))
        number += 1
        end = offset
    return Part(offsets, hashes, problems, number - 1, end, broken_off=False)


def _lines(file: Path, name: str, start: int, stop: int) -> Iterator[bytes]:
    """The lines without newlines; one that is too long is cut off, and is the last."""
    rest, left = b"", stop - start
    with open_binary(file, name) as stream:
        stream.seek(start)
        while block := stream.read(min(_BLOCK, left)):
            left -= len(block)
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            yield from lines
            if len(rest) > MAX_LINE:
                break
    if rest:
        yield rest


def _fault(reader: Reader, data: bytes, number: int, error: Exception) -> Problem:
    """What is wrong with a line, and where."""
    try:
        document = reader.parse(decode(data, reader.file, number).rstrip("\r\n"), number)
    except EvalFileErrors as refused:
        return refused.problems[0]
    if document.problems:
        return document.problems[0]
    if not isinstance(document.data, dict):
        found = f"the line is {shown(document.data)}, not a mapping"
        return document.problem((), "wrong-type", found)
    if "id" not in document.data:
        hint = "put transcripts without one into a folder, each in a file named after its case"
        return document.problem((), "missing-key", "the key 'id' is missing", hint)
    identity = document.data["id"]
    if not isinstance(identity, str):
        return document.problem(
            ("id",), "wrong-type", f"'id' is {shown(identity)}; it must be text"
        )
    return document.problem((), "json-syntax", str(error))
