"""Spool: the result file of a stream, written while its cases are graded.

Reading all cases back from the store would take nearly as long as grading them. The spool is only
an optimisation: if it cannot be written, the suite is read from the store.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from assay.model.run import TrialRecord
from assay.model.suite_result import pair_of
from assay.model.trials import by_case, entry_of
from assay.replacement import Nameless

#: How many chunks may wait for an earlier one that is still being graded.
MAX_WAITING = 64
#: How much is read at a time.
_READ_BYTES = 1024 * 1024


class Rendered(msgspec.Struct, array_like=True):
    """The cases of a chunk as JSON for a result file: items of its case list, and their keys."""

    entries: bytes = b""
    keys: bytes = b""


def render(trials: Sequence[TrialRecord], known: Mapping[int, bytes] | None = None) -> Rendered:
    """The JSON of trials, which are ordered by position and repeat.

    `known` has entries that were already written, by position.
    """
    if len({trial.position for trial in trials}) == len(trials):
        known = known or {}
        firsts = trials
        entries = [known.get(trial.position) or entry_of((trial,)) for trial in trials]
    else:
        cases = list(by_case(trials))
        firsts, entries = [case[0] for case in cases], [entry_of(case) for case in cases]
    keys = [pair_of(trial.case_id, trial.comparability) for trial in firsts]
    return Rendered(b",\n".join(entries), b",".join(keys))


class Spool:
    """Counts the cases of a suite and writes their JSON in file order.

    Chunks are announced in order, and added in any order.
    """

    def __init__(self, folder: Path, head: bytes, count: Any) -> None:
        self.count = count
        self._head, self._is_first = head, True
        self._announced: deque[int] = deque()
        self._waiting: dict[int, tuple[Sequence[TrialRecord], Rendered]] = {}
        self._entries: Nameless | None = None
        self._keys: IO[bytes] | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._entries = Nameless(folder)
            self._keys = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see close
            self._entries.stream.write(head)
        except OSError:
            self.close()

    @property
    def is_complete(self) -> bool:
        """Has everything been written that was added?"""
        return self._entries is not None and not self._waiting

    def announce(self, chunk: int) -> None:
        """The chunk with this number follows all chunks announced before."""
        self._announced.append(chunk)

    def add(self, chunk: int, trials: Sequence[TrialRecord], rendered: Rendered) -> None:
        """Add the trials of a chunk, and their JSON."""
        if self._entries is None:
            return
        self._waiting[chunk] = (trials, rendered)
        try:
            while self._announced and self._announced[0] in self._waiting:
                self._write(*self._waiting.pop(self._announced.popleft()))
        except OSError:  # such as a full disk, which is reported when result files are written
            self.close()
        if len(self._waiting) > MAX_WAITING:
            self.close()

    def entries(self) -> Iterator[bytes]:
        """The JSON between the brackets of the list of cases."""
        assert self._entries is not None
        return _read(self._entries.stream, len(self._head))

    def keys(self) -> Iterator[bytes]:
        """The JSON between the braces of the keys."""
        assert self._keys is not None
        return _read(self._keys)

    def becomes(self, file: Path, head: bytes, tail: Iterator[bytes]) -> bool:
        """Turn the spool into the result file; False if that is not possible."""
        if self._entries is None or not self._entries.can_be_named or head != self._head:
            return False
        self._entries.stream.seek(0, os.SEEK_END)
        self._entries.stream.writelines(tail)
        self._entries.become(file)
        return True

    def close(self) -> None:
        for stream in (self._entries, self._keys):
            if stream is not None:
                with suppress(OSError):  # flushing fails when the disk is full
                    stream.close()
        self._entries = self._keys = None
        self._waiting.clear()

    def _write(self, trials: Sequence[TrialRecord], rendered: Rendered) -> None:
        assert self._entries is not None
        assert self._keys is not None
        if not trials:
            return
        for case in by_case(trials):
            self.count.add(case)
        if not self._is_first:
            self._entries.stream.write(b",\n")
            self._keys.write(b",")
        self._is_first = False
        self._entries.stream.write(rendered.entries)
        self._keys.write(rendered.keys)


def _read(stream: IO[bytes], start: int = 0) -> Iterator[bytes]:
    stream.seek(start)
    while data := stream.read(_READ_BYTES):
        yield data
