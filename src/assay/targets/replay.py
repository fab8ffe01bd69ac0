"""`replay`: answers from a file of recorded observations, without calling anything.

The file has one observation per line, with the id of its case. Several lines with the same id are
its repeats, in order. The index takes some 20 bytes per line; the lines stay in the file.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar, NamedTuple
from weakref import WeakValueDictionary

import msgspec
from pydantic import AfterValidator, ValidationInfo

from assay.errors import (
    EvalFileErrors,
    ObservationError,
    TargetError,
    UsageError,
    unreadable,
)
from assay.model.observation import Observation
from assay.model.target import TargetSpec
from assay.observations.interchange import of_plain, plain_record
from assay.observations.reading import read
from assay.ports import Request
from assay.quick_search import quick_search
from assay.settings import shown_path
from assay.targets.replay_folder import ReplayFolder
from assay.targets.replay_index import HEAD, Index
from assay.wire.fields import Text
from assay.wire.text_files import open_binary
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import shown


def _found(value: str, info: ValidationInfo) -> str:
    context: ValidationContext | None = info.context
    return value if context is None else str(context.find_file(value))


class ReplayTarget(TargetSpec):
    """A file of recorded observations, or a folder of transcripts."""

    inline_key: ClassVar[str] = "file"
    recorded: ClassVar[bool] = True

    provider: Text = "replay"
    file: Annotated[Text, AfterValidator(_found)]

    @property
    def label(self) -> str:
        return self.name or f"replay:{shown_path(Path(self.file))}"

    def connect(self) -> Replay | ReplayFolder:
        file = Path(self.file)
        return ReplayFolder(self.label, file) if file.is_dir() else Replay(self.label, file)


#: Are there escapes that another JSON encoder would write as the character itself?
_has_optional_escapes = quick_search(r"\\[u/]")
#: How much of the file is read at a time, as adjacent lines are mostly asked for in turn.
_WINDOW = 128 * 1024


#: The indexes in use, by the name and the version of their file.
_indexes: WeakValueDictionary[tuple[str | int, ...], Index] = WeakValueDictionary()


class Recorded(NamedTuple):
    """The index of a valid line, its observation, and the line itself if it is plain."""

    line: int
    observation: Observation
    plain: bytes | None


class Replay:
    """The connected target; the file is indexed once, before the first answer."""

    #: Nothing is called: the duration of an answer is in its record, or unknown.
    recorded = True

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file, self._shown = file, shown_path(file)
        self._lock = threading.Lock()
        self._stream: BinaryIO | None = None
        self._index: Index | None = None
        #: A part of the file with its offset.
        self._window = (0, b"")
        self._open().close()  # a wrong path is reported at once

    async def ask(self, request: Request) -> Observation:
        if request.case is None:
            raise TargetError("only answers to cases are recorded, and this request has no case")
        if self._index is None:
            await asyncio.to_thread(self._get_index)
        return self.answer(request.case.id, request.repeat).observation

    def answer(self, case_id: str, repeat: int) -> Recorded:
        """The recorded answer for a repeat of a case.

        Processes that are forked after the first answer share the index, and so do targets with the
        same file.
        """
        index = self._index or self._get_index()
        passed = 0
        for line in index.lines(case_id):
            try:
                data = self._line(index, line)
                if passed < repeat:
                    passed += HEAD.decode(data).id == case_id
                    continue
                if (record := plain_record(data)) is not None:
                    if record.id == case_id:  # otherwise only the hashes are equal
                        plain = None if _has_optional_escapes(data) else data
                        return Recorded(line, of_plain(record, data), plain)
                elif HEAD.decode(data).id == case_id:
                    return Recorded(line, read(msgspec.json.decode(data)), None)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ObservationError) as e:
                place = f"{self._shown}:{self._line_number(index.offsets[line])}"
                raise TargetError(f"{place}: {unreadable(e)}") from None
        raise TargetError(self._not_recorded(index, case_id, passed, repeat))

    @property
    def records(self) -> int:
        """The number of valid lines."""
        return len(self._get_index().offsets)

    async def close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = self._index = None
            self._window = (0, b"")

    def problems(self) -> list[str]:
        """The invalid lines, which belong to no case."""
        return [str(problem) for problem in self._get_index().problems.sorted()]

    def unused(self, ids: Iterable[str]) -> int:
        """The number of lines with none of these ids."""
        index = self._get_index()
        used = bytearray(len(index.offsets))
        for case_id in ids:
            for line in index.lines(case_id):
                used[line] = 1
        return used.count(0)

    def count_unmatched(self, used: bytearray) -> int:
        """The number of lines with an id that no used line has."""
        same_id = self._get_index().lines_like
        return sum(
            not is_used and not any(used[other] for other in same_id(line))
            for line, is_used in enumerate(used)
        )

    def _get_index(self) -> Index:
        if self._index is not None:
            return self._index
        with self._lock:
            if self._index is None:
                self._stream = self._open()
                found = os.fstat(self._stream.fileno())
                version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
                key = (self._shown, *version)
                if (index := _indexes.get(key)) is None:
                    _indexes[key] = index = Index(self._file, self._shown)
                self._index = index
            return self._index

    def _open(self) -> BinaryIO:
        try:
            return open_binary(self._file, self._shown)
        except EvalFileErrors as error:
            raise UsageError(f"{self._shown}: {error.problems[0].message}") from None

    def _not_recorded(self, index: Index, case_id: str, passed: int, repeat: int) -> str:
        message = f"no recorded observation for {shown(case_id)} in {self._shown}"
        if passed:
            message += f": it has {passed}, and this is repeat {repeat + 1}"
        if index.problems:
            first = index.problems.sorted()[0]
            message += f" (some lines cannot be read; the first: {first.place}: {first.advice})"
        return message

    def _line(self, index: Index, line: int) -> bytes:
        """Read with pread: other threads and forked processes use the same file descriptor."""
        offset, stream = index.offsets[line], self._stream
        end = index.offsets[line + 1] if line + 1 < len(index.offsets) else index.end
        assert stream is not None
        start, window = self._window
        if offset < start or end > start + len(window):
            window = os.pread(stream.fileno(), max(end - offset, _WINDOW), offset)
            start = offset
            self._window = (start, window)
        # Invalid lines may follow before the next indexed one.
        stop = window.find(b"\n", offset - start, end - start)
        return window[offset - start : end - start if stop < 0 else stop]

    def _line_number(self, offset: int) -> int:
        """The number of the line at an offset, counted only for error messages."""
        with self._lock:
            assert self._stream is not None
            self._stream.seek(0)
            number = 1
            while offset > 0 and (chunk := self._stream.read(min(offset, 1 << 20))):
                number += chunk.count(b"\n")
                offset -= len(chunk)
            return number
