"""A folder of transcripts as a replay: one file for each case, named after its id.

Agents write a trajectory or a log for each task, not a line. A `.json` file is one record, a
`.jsonl` file a list of its lines, such as the session log of Claude Code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay.errors import EvalFileErrors, ObservationError, TargetError, UsageError
from assay.model.observation import Observation
from assay.observations.reading import read
from assay.ports import Request
from assay.settings import shown_path
from assay.wire.json import Reader
from assay.wire.text_files import read_text
from assay.wire.validation_errors import shown

_SUFFIXES = (".json", ".jsonl")


class _Transcript(NamedTuple):
    """The number of a file, and its content, which is never stored unchanged."""

    number: int
    observation: Observation
    plain: None = None


class ReplayFolder:
    """The connected target; files are read when their case is asked."""

    recorded = True
    #: What the notes of a run count.
    counted = "file"

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._shown = name, shown_path(folder)
        files = (file for file in folder.iterdir() if file.suffix in _SUFFIXES)
        self._files = sorted(files, key=lambda file: file.name)
        self._numbers: dict[str, list[int]] = {}
        for number, file in enumerate(self._files):
            self._numbers.setdefault(file.stem, []).append(number)
        if not self._files:
            expected = "one for each case, named after its id, such as refund-1.json"
            found = "this is a directory without a .json or .jsonl file"
            raise UsageError(f"{self._shown}: {found}; {expected}")

    async def ask(self, request: Request) -> Observation:
        if request.case is None:
            raise TargetError("only answers to cases are recorded, and this request has no case")
        found = await asyncio.to_thread(self.answer, request.case.id, request.repeat)
        return found.observation

    def answer(self, case_id: str, repeat: int) -> _Transcript:
        """The transcript of a case; several files with its id are repeats, in order."""
        numbers = self._numbers.get(case_id, [])
        if repeat >= len(numbers):
            message = f"no recorded observation for {shown(case_id)} in {self._shown}"
            if numbers:
                message += f": it has {len(numbers)}, and this is repeat {repeat + 1}"
            raise TargetError(message)
        number = numbers[repeat]
        file = self._files[number]
        name = shown_path(file)
        try:
            return _Transcript(number, read(_content(file, name)))
        except EvalFileErrors as error:
            raise TargetError(str(error.problems[0])) from None
        except ObservationError as error:
            raise TargetError(f"{name}: {error}") from None

    @property
    def records(self) -> int:
        return len(self._files)

    async def close(self) -> None:
        pass

    def unused(self, ids: Iterable[str]) -> int:
        """The number of files that belong to none of these cases."""
        known = set(ids)
        return sum(file.stem not in known for file in self._files)

    def count_unmatched(self, used: bytearray) -> int:
        """The number of files with an id of which no file was used."""
        names = {file.stem for file, is_used in zip(self._files, used, strict=True) if is_used}
        return self.unused(names)


def _content(file: Path, name: str) -> Any:
    """The JSON of a file; a list of its lines if it is JSONL with more than one."""
    text, reader = read_text(file, name), Reader(name)
    if file.suffix == ".json":
        return _parsed(reader, text, 1)
    lines = [
        _parsed(reader, line, number)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    return lines[0] if len(lines) == 1 else lines


def _parsed(reader: Reader, text: str, number: int) -> Any:
    """The value of a text; the slower parser is for the place of a fault."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return reader.parse(text.rstrip("\r"), number).data
