"""JSONL suites: one case a line, read as a stream; a sidecar beside it has suite-level keys."""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, overload

import msgspec
from msgspec.structs import replace

from assay.documents import yaml
from assay.documents.document import MAX_LINE, Document
from assay.documents.json import Reader
from assay.documents.source import UTF16_MARKS, decode, is_absent, open_binary, read_text
from assay.errors import EvalFileErrors, Problem, Problems
from assay.loaders.cases import CaseReader, reading_of
from assay.loaders.locators import LineLocator
from assay.loaders.plain import plain_case, plain_line, text_line
from assay.loaders.suite import cases_key, suite_keys, suite_of
from assay.memory import Hashes
from assay.model.case import EvalCase, Suite
from assay.model.plain import TextLine
from assay.model.suite import INPUT_KEYS, SuiteFile
from assay.ports import Chunk
from assay.settings import Settings, shown_path

#: Files up to this size are held in memory; larger ones are read again on each iteration.
HELD_BYTES = 32 * 1024 * 1024
SIDECAR_SUFFIXES = (".yaml", ".yml")
_INPUT_WORD = re.compile(rf"""["'](?:{"|".join(INPUT_KEYS)})["']""".encode())
#: How much of a stream is given to a process at a time.
CHUNK_BYTES = 128 * 1024
#: How much of that takes one step together: it should fit the cache of a processor.
PART_BYTES = 32 * 1024


def load(file: Path, settings: Settings) -> Suite:
    """The file's suite, every line validated; raises EvalFileErrors with all problems."""
    sidecar = Sidecar(file, settings)
    lines = CaseLines(file, settings, sidecar)
    with open_binary(file, shown_path(file)) as stream:
        held = stream.seek(0, 2) <= HELD_BYTES
    found = lines.validate(keep=held)
    cases = tuple(found.cases) if held else StreamedCases(lines, found)
    return suite_of(file, sidecar.keys, cases, found.problems)


def stream(file: Path, settings: Settings) -> Suite:
    """The suite of a file of which nothing but the sidecar has been looked at yet."""
    sidecar = Sidecar(file, settings)
    problems = Problems(shown_path(file), sidecar.problems)
    cases = UncheckedCases(CaseLines(file, settings, sidecar))
    return replace(suite_of(file, sidecar.keys, cases, problems), streamed=True)


def recognises(file: Path) -> str:
    """Why the file is no suite: its first line is no case."""
    if ".eval." in file.name:
        return ""
    name = shown_path(file)
    with open_binary(file, name) as stream:
        for line in _lines(stream, name):
            try:
                data = Reader(name).line(line.data, line.number).data
                case = isinstance(data, dict) and any(key in data for key in INPUT_KEYS)
            except EvalFileErrors:  # a case with a slip in it must not be passed over
                case = _INPUT_WORD.search(line.data) is not None
            return "" if case else "its first line has no input"
    return "it is empty"


class Sidecar:
    """Suite-level keys from `NAME.yaml` or `NAME.yml` beside `NAME.jsonl`, if there is one."""

    def __init__(self, file: Path, settings: Settings) -> None:
        # What has no keys needs no check, and so none is made.
        self.keys, self.problems = SuiteFile.model_construct(), list[Problem]()
        self.document: Document | None = None
        beside = [f for f in map(file.with_suffix, SIDECAR_SUFFIXES) if not is_absent(f)]
        if len(beside) > 1:
            message = f"{file.name} has another sidecar, {beside[0].name}"
            place = (shown_path(beside[1]), 0, 0)
            hint = "keep one of the two"
            self.problems.append(Problem(*place, "error", "two-sidecars", message, hint))
        elif beside:
            try:
                self._read(beside[0], settings)
            except EvalFileErrors as error:
                self.problems += error.problems
        self.broken = any(p.severity == "error" for p in self.problems)

    def _read(self, file: Path, settings: Settings) -> None:
        document = self.document = yaml.parse(read_text(file, shown_path(file)), shown_path(file))
        data: Any = {} if document.data is None else document.data
        self.keys, found = suite_keys(document, data, reading_of(file, settings))
        self.problems += [*document.problems, *found]
        if isinstance(data, dict) and (key := cases_key(data)):
            message = f"a sidecar has no cases: they stand in {file.with_suffix('.jsonl').name}"
            self.problems.append(document.problem((key,), "conflicting-keys", message))


class _Line(NamedTuple):
    number: int
    offset: int
    data: bytes


def _lines(stream: BinaryIO, file: str, number: int = 1) -> Iterator[_Line]:
    """The lines from here on that are not blank, each within the limit."""
    offset = stream.tell()
    while data := stream.readline(MAX_LINE + 1):
        if len(data) > MAX_LINE:
            message = f"the line has more than {MAX_LINE:,} bytes"
            raise EvalFileErrors([Problem(file, number, 1, "error", "too-large", message)])
        if offset == 0 and data.startswith(UTF16_MARKS):
            decode(data, file)  # says so, once: every line would be unreadable
        if not data.isspace():
            yield _Line(number, offset, data)
        offset += len(data)
        number += 1


class _Found(msgspec.Struct):
    cases: list[EvalCase]
    starts: Starts
    problems: Problems


class Starts:
    """Where the cases of a file start: every 64th is kept, the others are counted from it."""

    EVERY = 64

    def __init__(self) -> None:
        self.count = 0
        self._offsets, self._numbers = array("Q"), array("Q")

    def add(self, line: _Line) -> None:
        if self.count % self.EVERY == 0:
            self._offsets.append(line.offset)
            self._numbers.append(line.number)
        self.count += 1

    def place(self, position: int) -> tuple[int, int, int]:
        """Offset and number of a line that is kept, and how many cases further on this one is."""
        part, skipped = divmod(position, self.EVERY)
        return self._offsets[part], self._numbers[part], skipped


class CaseLines:
    """The cases of one file, read anew on every pass."""

    def __init__(self, file: Path, settings: Settings, sidecar: Sidecar) -> None:
        self.file, self.settings, self.sidecar = file, settings, sidecar
        self.name = shown_path(file)

    def validate(self, *, keep: bool) -> _Found:
        """One pass over the file: all problems, and the cases when they are to be kept."""
        reader, parser, ids = self._reader(), Reader(self.name), Hashes()
        reader.problems += self.sidecar.problems
        found = _Found([], Starts(), reader.problems)
        before = reader.problems.errors
        try:
            with open_binary(self.file, self.name) as stream:
                for line in _lines(stream, self.name):
                    case = self._case(line.number, line.data, parser, reader, ids)
                    if reader.problems.full:
                        break
                    if case is not None:
                        found.starts.add(line)
                        if keep:
                            found.cases.append(case)
        except EvalFileErrors as error:  # nothing after this line can be read
            reader.problems += error.problems
        found.problems += self._duplicates(ids)
        if not ids and found.problems.errors == before:
            message, hint = "the file has no case", "each line is one case"
            found.problems.append(Problem(self.name, 1, 1, "error", "no-cases", message, hint))
        return found

    def at(self, offset: int, number: int, skipped: int) -> EvalCase:
        """The case that stands so many cases after the one whose line starts at a byte offset."""
        with open_binary(self.file, self.name) as stream:
            stream.seek(offset)
            case = next(self._read(stream, number, skipped), None)
        if case is None:
            raise self.changed()
        return case

    def __iter__(self) -> Iterator[EvalCase]:
        with open_binary(self.file, self.name) as stream:
            yield from self._read(stream)

    def changed(self, how: str = "has fewer cases than when it was loaded") -> EvalFileErrors:
        message, hint = f"the file {how}", "load it again"
        return EvalFileErrors([Problem(self.name, 0, 0, "error", "file-changed", message, hint)])

    def _read(self, stream: BinaryIO, number: int = 1, skipped: int = 0) -> Iterator[EvalCase]:
        """Cases of a file that was valid; raises when it no longer is."""
        reader, parser = self._reader(), Reader(self.name)
        for line in islice(_lines(stream, self.name, number), skipped, None):
            case = self._case(line.number, line.data, parser, reader)
            if case is None:
                raise EvalFileErrors(reader.problems.told())
            reader.problems = Problems(self.name)
            yield case

    def _reader(self) -> CaseReader:
        inherited, unsure = self.sidecar.keys.execution, self.sidecar.broken
        return CaseReader(self.file, self.settings, inherited, unsure=unsure)

    def _case(
        self,
        number: int,
        data: bytes,
        parser: Reader,
        reader: CaseReader,
        ids: Hashes | None = None,
    ) -> EvalCase | None:
        """The case on a line; its id is noted whether or not the case is right."""
        locate = LineLocator(parser.file, number, data, self.sidecar.document)
        plain = plain_line(data)
        if plain is not None:
            case = plain_case(plain, reader.reading, reader.inherited, locate)
            if case is not None:
                if ids is not None:
                    ids.add(_hash(case.id))
                return case
        try:
            document = parser.line(data, number)
        except EvalFileErrors as error:
            reader.problems += error.problems
            return None
        if ids is not None and isinstance(document.data, dict):
            identity = document.data.get("id")
            if isinstance(identity, str):
                ids.add(_hash(identity))
        if document.problems:
            reader.problems += document.problems
        case = reader.read(document, (), locate=locate)
        return None if document.problems else case

    def _duplicates(self, ids: Hashes) -> Iterator[Problem]:
        """Ids that appear twice; as only their hashes were kept, a suspicion is checked again."""
        twice = ids.twice()
        if not twice:
            return
        seen: dict[str, int] = {}
        parser = Reader(self.name)
        with open_binary(self.file, self.name) as stream:
            for line in _lines(stream, self.name):
                try:
                    document = parser.line(line.data, line.number)
                except EvalFileErrors:
                    continue
                identity = document.data.get("id") if isinstance(document.data, dict) else None
                if not isinstance(identity, str) or _hash(identity) not in twice:
                    continue
                if identity in seen:
                    _, column = document.position(("id",))
                    message = f"the id {identity!r} is taken by the case on line {seen[identity]}"
                    place = (self.name, line.number, column)
                    yield Problem(*place, "error", "duplicate-id", message)
                seen.setdefault(identity, line.number)


def _stamp(stream: BinaryIO) -> tuple[int, int, int]:
    """What tells an open file from others, and from itself after a change."""
    found = os.fstat(stream.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns


def _hash(identity: str) -> int:
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest())


class UncheckedCases(Sequence[EvalCase]):
    """The cases of a file that is checked line by line, while it is read."""

    def __init__(self, lines: CaseLines) -> None:
        self._lines = lines
        self.name = lines.name
        self._reader, self._parser = lines._reader(), Reader(lines.name)
        self.reading, self.inherited = self._reader.reading, self._reader.inherited
        with open_binary(lines.file, self.name) as stream:
            self._stamp = _stamp(stream)

    def chunks(self) -> Iterator[Chunk]:
        """The file in pieces of whole lines."""
        number = 1
        with open_binary(self._lines.file, self.name) as stream:
            while data := stream.read(CHUNK_BYTES):
                rest = stream.readline(MAX_LINE + 1)
                size = len(data) + len(rest)
                yield Chunk(number, stream.tell() - size, size)
                number += data.count(b"\n") + rest.count(b"\n")

    def parts(self, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
        """The lines of a chunk, some at a time, with the number of the first of them."""
        with open_binary(self._lines.file, self.name) as stream:
            stream.seek(chunk.offset)
            data = stream.read(chunk.size)
            if _stamp(stream) != self._stamp:  # cases may be gone, or of two versions of it
                raise self._lines.changed("was changed while it was read")
        number, start = chunk.number, 0
        while start < len(data):
            end = data.find(b"\n", start + PART_BYTES) + 1 or len(data)
            part = data[start:end]
            yield number, part
            number += part.count(b"\n")
            start = end

    def read(
        self, number: int, part: bytes, taken: Callable[[int, TextLine], bool] | None = None
    ) -> Iterator[tuple[int, EvalCase | None]]:
        """The case of every line of a part with its number; None where it is wrong.

        Lines that check texts are offered first; of one that is `taken` no case is made.
        """
        case, parser, reader = self._lines._case, self._parser, self._reader
        for at, data in self._numbered(number, part):
            line = None if taken is None else text_line(data)
            if taken is None or line is None or not taken(at, line):
                yield at, case(at, data, parser, reader)

    def _numbered(self, number: int, part: bytes) -> Iterator[tuple[int, bytes]]:
        if number == 1 or len(part) > MAX_LINE:  # there may be a mark, or too long a line
            for line in _lines(BytesIO(part), self.name, number):
                yield line.number, line.data
            return
        for at, data in enumerate(part.split(b"\n"), number):
            if data and not data.isspace():
                yield at, data

    def problems(self) -> list[Problem]:
        """What is wrong with the lines that were read since it was last asked."""
        reader = self._reader
        if not reader.problems:
            return []
        problems, reader.problems = reader.problems.told(), Problems(self.name)
        return problems

    def faults(self) -> list[Problem]:
        """What `load` says of the lines; of the sidecar it was said before they were read."""
        known = self._lines.sidecar.problems
        found = self._lines.validate(keep=False).problems.told()
        with open_binary(self._lines.file, self.name) as stream:
            if _stamp(stream) != self._stamp:
                return list(self._lines.changed("was changed while it was read").problems)
        return [problem for problem in found if problem not in known]

    def __iter__(self) -> Iterator[EvalCase]:
        return iter(self._lines)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("the cases of a stream have no numbers: read them in their order")


class StreamedCases(Sequence[EvalCase]):
    """The cases of a large file: read again whenever they are asked for."""

    #: So that nobody reads them once more to find out.
    checked = True

    def __init__(self, lines: CaseLines, found: _Found) -> None:
        self.lines, self.starts = lines, found.starts

    def __len__(self) -> int:
        return self.starts.count

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
        return self.lines.at(*self.starts.place(range(len(self))[index]))
