"""JSONL suites: one case per line, read as a stream; suite-level keys are in a sidecar file."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, overload

import msgspec
from msgspec.structs import replace

from assay.caching import DuplicateHashes
from assay.errors import EvalFileErrors
from assay.loaders.cases import CaseReader
from assay.loaders.locators import LineLocator
from assay.loaders.parameters import declares
from assay.loaders.sidecars import SuiteKeys, sidecar_of
from assay.loaders.suite import suite_of
from assay.model.case import EvalCase, EvalSuite
from assay.model.suite import INPUT_KEYS
from assay.ports import Chunk
from assay.problems import Problem, Problems
from assay.settings import Settings, shown_path
from assay.wire.document import MAX_LINE
from assay.wire.json import Reader
from assay.wire.text_files import UTF16_MARKS, decode, open_binary

#: Cases of files up to this size are kept in memory; larger files are read on each iteration.
HELD_BYTES = 32 * 1024 * 1024
_INPUT_KEY = re.compile(rf"""["'](?:{"|".join(INPUT_KEYS)})["']""".encode())
#: What every line with `vars` or `vars_from` has, unless its key is written with escapes.
_VARS = b'"vars'
_BLOCK_BYTES = 1024 * 1024
#: How much of a stream a worker process gets at a time.
CHUNK_BYTES = 128 * 1024
#: How much of a chunk goes through each step at a time: it should fit the CPU cache.
PART_BYTES = 32 * 1024


def load(file: Path, settings: Settings) -> EvalSuite:
    """Load the suite and validate every line; raises EvalFileErrors with all problems."""
    sidecar = sidecar_of(file, settings)
    return suite_of(file, sidecar.keys, *cases_of(file, settings, sidecar))


def cases_of(
    file: Path, settings: Settings, suite: SuiteKeys
) -> tuple[Sequence[EvalCase], Problems]:
    """The cases of a file, and its problems with those of the suite's keys."""
    lines = CaseLines(file, settings, suite)
    with open_binary(file, shown_path(file)) as stream:
        in_memory = stream.seek(0, 2) <= HELD_BYTES
    found = lines.validate(keep=in_memory)
    cases = tuple(found.cases) if in_memory else StreamedCases(lines, found.case_index)
    return cases, found.problems


def stream(file: Path, settings: Settings) -> EvalSuite:
    """The suite of a file; only the sidecar is read and validated yet.

    A file with `vars` is loaded whole: the line of a case does not tell its position.
    """
    sidecar = sidecar_of(file, settings)
    if declares(sidecar.document and sidecar.document.data) or _mentions_vars(file):
        return load(file, settings)
    problems = Problems(shown_path(file), sidecar.problems)
    cases = UncheckedCases(CaseLines(file, settings, sidecar))
    return replace(suite_of(file, sidecar.keys, cases, problems), streamed=True)


def _mentions_vars(file: Path) -> bool:
    """May some line have `vars`? Looks at the bytes only, which is fast."""
    with open_binary(file, shown_path(file)) as stream:
        end = b""
        while block := stream.read(_BLOCK_BYTES):
            if _VARS in end + block:
                return True
            end = block[-len(_VARS) :]
    return False


def recognises(file: Path) -> str:
    """Why the file is not a suite: its first line is not a case."""
    if ".eval." in file.name:
        return ""
    name = shown_path(file)
    with open_binary(file, name) as stream:
        for line in _lines(stream, name):
            try:
                data = Reader(name).line(line.data, line.number).data
                case = isinstance(data, dict) and any(key in data for key in INPUT_KEYS)
            except EvalFileErrors:  # a case with a syntax error must not be skipped
                case = _INPUT_KEY.search(line.data) is not None
            return "" if case else "its first line has no input"
    return "empty"


class _Line(NamedTuple):
    number: int
    offset: int
    data: bytes


def _lines(stream: BinaryIO, file: str, number: int = 1) -> Iterator[_Line]:
    """The lines from here on that are not blank; raises on one that is too long."""
    offset = stream.tell()
    while data := stream.readline(MAX_LINE + 1):
        if len(data) > MAX_LINE:
            message = f"the line has more than {MAX_LINE:,} bytes"
            raise EvalFileErrors([Problem(file, number, 1, "error", "too-large", message)])
        if offset == 0 and data.startswith(UTF16_MARKS):
            decode(data, file)  # raises: no line would be readable
        if not data.isspace():
            yield _Line(number, offset, data)
        offset += len(data)
        number += 1


class _Validated(msgspec.Struct):
    cases: list[EvalCase]
    case_index: _CaseIndex
    problems: Problems


class _CaseIndex:
    """Where each case starts, and the number of its line: twelve bytes a case.

    With `vars`, several cases are on a line; the number of its row takes four more bytes.
    """

    def __init__(self) -> None:
        self._offsets, self._numbers, self._rows = array("Q"), array("I"), array("I")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, line: _Line, row: int) -> None:
        if row and not self._rows:
            self._rows.extend([0] * len(self))
        if row or self._rows:
            self._rows.append(row)
        self._offsets.append(line.offset)
        self._numbers.append(line.number)

    def place(self, position: int) -> tuple[int, int, int | None]:
        """Offset and number of the line of a case, and the number of its row if it has any."""
        row = self._rows[position] if self._rows else None
        return self._offsets[position], self._numbers[position], row


class CaseLines:
    """The cases of one file, read from the file on every pass."""

    def __init__(self, file: Path, settings: Settings, sidecar: SuiteKeys) -> None:
        self.file, self.settings, self.sidecar = file, settings, sidecar
        self.name = shown_path(file)

    @cached_property
    def _readers(self) -> tuple[CaseReader, Reader]:
        """The readers of `at`; they cache the evaluators of earlier cases."""
        return self.new_reader(), Reader(self.name)

    def validate(self, *, keep: bool) -> _Validated:
        """Read the whole file: all problems, and with `keep` the cases."""
        reader, parser, ids = self.new_reader(), Reader(self.name), DuplicateHashes()
        reader.problems += self.sidecar.problems
        found = _Validated([], _CaseIndex(), reader.problems)
        before = reader.problems.errors
        try:
            with open_binary(self.file, self.name) as stream:
                for line in _lines(stream, self.name):
                    cases = self.read_cases(line.number, line.data, parser, reader, ids)
                    for row, case in enumerate(cases):
                        if case is not None:
                            found.case_index.add(line, row)
                            if keep:
                                found.cases.append(case)
                    if reader.problems.full:
                        break
            reader.report_unused()
        except EvalFileErrors as error:  # the rest of the file cannot be read
            reader.problems += error.problems
        found.problems += self._duplicates(ids)
        if not ids and found.problems.errors == before:
            message, hint = "the file has no case", "each line is one case"
            found.problems.append(Problem(self.name, 1, 1, "error", "no-cases", message, hint))
        return found

    def at(self, stream: BinaryIO, offset: int, number: int, row: int | None) -> EvalCase:
        """The case on the line at a byte offset of the open file, of this row of its `vars`."""
        stream.seek(offset)
        reader, parser = self._readers
        for line in _lines(stream, self.name, number):
            cases = self.read_cases(line.number, line.data, parser, reader, only=row)
            case = next(iter(cases), None)
            problems, reader.problems = reader.problems, Problems(self.name)
            if problems.errors:
                raise EvalFileErrors(problems.sorted())
            if case is not None:
                return case
            break
        raise self.changed()

    def __iter__(self) -> Iterator[EvalCase]:
        with open_binary(self.file, self.name) as stream:
            yield from self._read(stream, self.new_reader(), Reader(self.name))

    def changed(self, how: str = "has fewer cases than when it was loaded") -> EvalFileErrors:
        message, hint = f"the file {how}", "load it again"
        return EvalFileErrors([Problem(self.name, 0, 0, "error", "file-changed", message, hint)])

    def _read(self, stream: BinaryIO, reader: CaseReader, parser: Reader) -> Iterator[EvalCase]:
        """The cases of a file that was validated before; raises when it is no longer valid."""
        for line in _lines(stream, self.name):
            for case in self.read_cases(line.number, line.data, parser, reader):
                if case is not None:
                    yield case
            problems, reader.problems = reader.problems, Problems(self.name)
            if problems.errors:
                raise EvalFileErrors(problems.sorted())

    def new_reader(self) -> CaseReader:
        return self.sidecar.reader(self.file, self.settings)

    def read_cases(
        self,
        number: int,
        data: bytes,
        parser: Reader,
        reader: CaseReader,
        ids: DuplicateHashes | None = None,
        only: int | None = None,
    ) -> Iterable[EvalCase | None]:
        """The cases on a line, one for each row of its `vars`; their ids are added to `ids`."""
        if reader.shared is None and _VARS not in data:
            return (self.read_case(number, data, parser, reader, ids),)
        return self._rows(number, data, parser, reader, ids, only)

    def _rows(
        self,
        number: int,
        data: bytes,
        parser: Reader,
        reader: CaseReader,
        ids: DuplicateHashes | None,
        only: int | None,
    ) -> Iterator[EvalCase | None]:
        try:
            document = parser.line(data, number)
        except EvalFileErrors as error:
            reader.problems += error.problems
            return
        reader.problems += document.problems
        locate = LineLocator(parser.file, number, data, self.sidecar.document)
        for case in reader.read_all(document, (), locate=locate, only=only):
            if ids is not None and case is not None:
                ids.add(_hash_id(case.id))
            yield case

    def read_case(
        self,
        number: int,
        data: bytes,
        parser: Reader,
        reader: CaseReader,
        ids: DuplicateHashes | None = None,
    ) -> EvalCase | None:
        """The case on a line, None when it is invalid; its id is added to `ids` either way."""
        locate = LineLocator(parser.file, number, data, self.sidecar.document)
        try:
            document = parser.line(data, number)
        except EvalFileErrors as error:
            reader.problems += error.problems
            return None
        if ids is not None and isinstance(document.data, dict):
            case_id = document.data.get("id")
            if isinstance(case_id, str):
                ids.add(_hash_id(case_id))
        if document.problems:
            reader.problems += document.problems
        case = reader.read(document, (), locate=locate)
        return None if document.problems else case

    def _duplicates(self, ids: DuplicateHashes) -> Iterator[Problem]:
        """Duplicate ids; `ids` only has hashes, so the file is read again to exclude collisions."""
        twice = ids.duplicates()
        if not twice:
            return
        seen: dict[str, int] = {}
        parser, reader = Reader(self.name), self.new_reader()
        with open_binary(self.file, self.name) as stream:
            for line in _lines(stream, self.name):
                try:
                    document = parser.line(line.data, line.number)
                except EvalFileErrors:
                    continue
                for case_id in self._ids(line, document.data, reader, parser):
                    if _hash_id(case_id) not in twice:
                        continue
                    if case_id in seen:
                        _, column = document.position(("id",))
                        message = f"the id {case_id!r} is taken by the case on line {seen[case_id]}"
                        place = (self.name, line.number, column)
                        yield Problem(*place, "error", "duplicate-id", message)
                    seen.setdefault(case_id, line.number)

    def _ids(self, line: _Line, raw: Any, reader: CaseReader, parser: Reader) -> Iterable[str]:
        """The ids of the cases on a line."""
        if reader.shared is not None or declares(raw):
            cases = self.read_cases(line.number, line.data, parser, reader)
            return (case.id for case in cases if case is not None)
        case_id = raw.get("id") if isinstance(raw, dict) else None
        return (case_id,) if isinstance(case_id, str) else ()


def _file_version(stream: BinaryIO) -> tuple[int, int, int]:
    """Identifies an open file and its version."""
    found = os.fstat(stream.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns


def _hash_id(case_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(case_id.encode(), digest_size=8).digest())


class UncheckedCases(Sequence[EvalCase]):
    """The cases of a file that is validated line by line while it is read; a CaseStream."""

    def __init__(self, lines: CaseLines) -> None:
        self._lines = lines
        self.name = lines.name
        self._reader, self._parser = lines.new_reader(), Reader(lines.name)
        with open_binary(lines.file, self.name) as stream:
            self._version = _file_version(stream)

    def chunks(self) -> Iterator[Chunk]:
        number = 1
        with open_binary(self._lines.file, self.name) as stream:
            while data := stream.read(CHUNK_BYTES):
                rest = stream.readline(MAX_LINE + 1)
                size, lines = len(data) + len(rest), data.count(b"\n") + rest.count(b"\n")
                yield Chunk(number, stream.tell() - size, size, lines)
                number += lines
            if (
                _file_version(stream) != self._version
            ):  # other processes may have opened the new one
                raise self._lines.changed("was changed while it was read")

    def parts(self, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
        with open_binary(self._lines.file, self.name) as stream:
            stream.seek(chunk.offset)
            data = stream.read(chunk.size)
            if _file_version(stream) != self._version:  # cases may be lost or of two versions
                raise self._lines.changed("was changed while it was read")
        number, start = chunk.number, 0
        while start < len(data):
            end = data.find(b"\n", start + PART_BYTES) + 1 or len(data)
            part = data[start:end]
            yield number, part
            number += part.count(b"\n")
            start = end

    def read(self, number: int, part: bytes) -> Iterator[tuple[int, EvalCase | None]]:
        case, parser, reader = self._lines.read_case, self._parser, self._reader
        for at, data in self._numbered(number, part):
            yield at, case(at, data, parser, reader)

    def _numbered(self, number: int, part: bytes) -> Iterator[tuple[int, bytes]]:
        if number == 1 or len(part) > MAX_LINE:  # a byte-order mark, or too long a line
            for line in _lines(BytesIO(part), self.name, number):
                yield line.number, line.data
            return
        for at, data in enumerate(part.split(b"\n"), number):
            if data and not data.isspace():
                yield at, data

    def problems(self) -> list[Problem]:
        reader = self._reader
        if not reader.problems:
            return []
        problems, reader.problems = reader.problems.sorted(), Problems(self.name)
        return problems

    def faults(self) -> list[Problem]:
        """The problems that `load` would report, except those of the sidecar."""
        known = self._lines.sidecar.problems
        found = self._lines.validate(keep=False).problems.sorted()
        with open_binary(self._lines.file, self.name) as stream:
            if _file_version(stream) != self._version:
                return list(self._lines.changed("was changed while it was read").problems)
        return [problem for problem in found if problem not in known]

    def __iter__(self) -> Iterator[EvalCase]:
        return iter(self._lines)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("the cases of a stream cannot be indexed: iterate over them")


class StreamedCases(Sequence[EvalCase]):
    """The cases of a large file, which is opened once; each case is read on every access."""

    #: `load` has validated them.
    checked = True

    def __init__(self, lines: CaseLines, index: _CaseIndex) -> None:
        self.lines, self._index = lines, index
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        """Another process opens the file itself."""
        return StreamedCases, (self.lines, self._index)

    def __len__(self) -> int:
        return len(self._index)

    @cached_property
    def _stream(self) -> BinaryIO:
        """The open file; closed with this object."""
        stream = open_binary(self.lines.file, self.lines.name)
        weakref.finalize(self, stream.close)
        return stream

    def __iter__(self) -> Iterator[EvalCase]:
        count = 0
        for case in self.lines:
            count += 1
            yield case
        if count < len(self):
            raise self.lines.changed()

    @overload
    def __getitem__(self, index: int) -> EvalCase: ...
    @overload
    def __getitem__(self, index: slice) -> list[EvalCase]: ...
    def __getitem__(self, index: int | slice) -> EvalCase | list[EvalCase]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = self._index.place(range(len(self))[index])
        with self._lock:
            return self.lines.at(self._stream, *place)
