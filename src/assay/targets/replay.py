"""`replay`: what was recorded is given again; nothing is called.

The file has one observation a line, with the id of its case. Several lines with one id are
repeats in order. A million lines are indexed in 20 bytes each; the lines stay in the file.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar, NamedTuple

import msgspec
from pydantic import AfterValidator, ValidationInfo

from assay.documents.source import open_binary
from assay.errors import (
    EvalFileErrors,
    ObservationError,
    TargetError,
    UsageError,
)
from assay.model.fields import Text
from assay.model.observation import Observation
from assay.model.reading import Reading
from assay.model.refusal import shown
from assay.model.target import TargetSpec
from assay.observations.own import PlainRecord, of_plain, plain_record
from assay.observations.reading import read
from assay.patterns import quick_search
from assay.ports import Request
from assay.settings import shown_path
from assay.targets.replay_index import HEAD, Index


def _found(value: str, info: ValidationInfo) -> str:
    reading: Reading | None = info.context
    return value if reading is None else str(reading.find_file(value))


class ReplayTarget(TargetSpec):
    """A file of recorded observations."""

    inline_key: ClassVar[str] = "file"
    recorded: ClassVar[bool] = True

    provider: Text = "replay"
    file: Annotated[Text, AfterValidator(_found)]

    @property
    def label(self) -> str:
        return self.name or f"replay:{shown_path(Path(self.file))}"

    def connect(self) -> Replay:
        return Replay(self.label, Path(self.file))


#: What another writer of JSON would have written as the character itself.
_escaped = quick_search(r"\\[u/]")
#: How much of the file is read at a time: neighbours are mostly asked one after the other.
_WINDOW = 128 * 1024


class Recorded(NamedTuple):
    """What a line says, its number among those that can be read, and the line when it is plain."""

    line: int
    observation: Observation
    plain: bytes | None


class Replay:
    """The target; the file is read through once, before the first answer."""

    #: Nobody is called: what an answer took is in its record, or is not known.
    recorded = True

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file, self._shown = file, shown_path(file)
        self._lock = threading.Lock()
        self._stream: BinaryIO | None = None
        self._index: Index | None = None
        #: A part of the file, and where in it that begins.
        self._window = (0, b"")
        self._open().close()  # a wrong path is told at once

    async def ask(self, request: Request) -> Observation:
        if request.case is None:
            raise TargetError("only cases are recorded, and the question belongs to none")
        if self._index is None:
            await asyncio.to_thread(self._indexed)
        return self.answer(request.case.id, request.repeat).observation

    def answer(self, case_id: str, repeat: int) -> Recorded:
        """What is recorded of a case's repeat.

        Processes that were forked since the first answer share the index.
        """
        index = self._index or self._indexed()
        passed = 0
        for line in index.lines(case_id):
            try:
                data = self._line(index, line)
                if passed < repeat:
                    passed += HEAD.decode(data).id == case_id
                    continue
                if (record := plain_record(data)) is not None:
                    if record.id == case_id:  # else only its hash is
                        kept = None if _escaped(data) else data
                        return Recorded(line, of_plain(record, data), kept)
                elif HEAD.decode(data).id == case_id:
                    return Recorded(line, read(msgspec.json.decode(data)), None)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ObservationError) as e:
                place = f"{self._shown}:{self._number(index.offsets[line])}"
                raise TargetError(f"{place}: {e}") from None
        raise TargetError(self._none(index, case_id, passed, repeat))

    def plain(self, case_id: str) -> tuple[int, PlainRecord, bytes] | None:
        """The first line of a case when it is plain, and can be kept as it is.

        None leaves it to `answer` to say what there is.
        """
        index = self._index or self._indexed()
        for line in index.lines(case_id):
            data = self._line(index, line)
            record = plain_record(data)
            if record is None or record.id != case_id or _escaped(data):
                return None
            return line, record, data
        return None

    @property
    def records(self) -> int:
        """How many lines can be read."""
        return len(self._indexed().offsets)

    async def close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = self._index = None
            self._window = (0, b"")

    def problems(self) -> list[str]:
        """The lines that cannot be read; they belong to no case."""
        return [str(problem) for problem in self._indexed().problems.told()]

    def unused(self, ids: Iterable[str]) -> int:
        """How many lines have an id that is none of these."""
        index = self._indexed()
        used = bytearray(len(index.offsets))
        for identity in ids:
            for line in index.lines(identity):
                used[line] = 1
        return used.count(0)

    def strangers(self, used: bytearray) -> int:
        """How many lines have an id of which no line was used."""
        like = self._indexed().like
        return sum(
            not known and not any(used[other] for other in like(line))
            for line, known in enumerate(used)
        )

    def _indexed(self) -> Index:
        if self._index is not None:
            return self._index
        with self._lock:
            if self._index is None:
                self._stream = self._open()
                self._index = Index(self._file, self._shown)
            return self._index

    def _open(self) -> BinaryIO:
        try:
            return open_binary(self._file, self._shown)
        except EvalFileErrors as error:
            raise UsageError(f"{self._shown}: {error.problems[0].message}") from None

    def _none(self, index: Index, identity: str, passed: int, repeat: int) -> str:
        message = f"no recorded observation for {shown(identity)} in {self._shown}"
        if passed:
            message += f": it has {passed}, and this is repeat {repeat + 1}"
        if index.problems:
            first = index.problems.told()[0]
            message += f" (some lines cannot be read; the first: {first.place}: {first.message})"
        return message

    def _line(self, index: Index, line: int) -> bytes:
        """Read at a place of its own: others, in this process or a forked one, read too."""
        offset, stream = index.offsets[line], self._stream
        end = index.offsets[line + 1] if line + 1 < len(index.offsets) else index.end
        assert stream is not None
        start, window = self._window
        if offset < start or end > start + len(window):
            window = os.pread(stream.fileno(), max(end - offset, _WINDOW), offset)
            start = offset
            self._window = (start, window)
        # Behind the line there may be others that cannot be read.
        stop = window.find(b"\n", offset - start, end - start)
        return window[offset - start : end - start if stop < 0 else stop]

    def _number(self, offset: int) -> int:
        """Which line starts at the offset; counted only when there is something to tell."""
        with self._lock:
            assert self._stream is not None
            self._stream.seek(0)
            number = 1
            while offset > 0 and (chunk := self._stream.read(min(offset, 1 << 20))):
                number += chunk.count(b"\n")
                offset -= len(chunk)
            return number
