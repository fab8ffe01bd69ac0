"""Spool: the result file of a stream, which grows while its cases are graded.

Reading all of it back from the store would take nearly as long as grading it. The spool is a
help and not a need: when it cannot be kept, its suite is read from the store.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from assay.model.run import TrialRecord
from assay.model.suite_result import pair_of
from assay.replacement import Nameless
from assay.results.run import Count
from assay.results.trials import by_case, entry_of

#: How many chunks may wait for one before them, which somebody is still at work on.
MOST_WAITING = 64
#: How much is read at a time.
_PIECE = 1024 * 1024


class Noted(msgspec.Struct, array_like=True):
    """The cases of a chunk as a result file has them: its list of cases, and their keys."""

    entries: bytes = b""
    keys: bytes = b""


def noted(trials: Sequence[TrialRecord], known: Mapping[int, bytes] | None = None) -> Noted:
    """What is to be noted of trials, which come by position and repeat.

    `known` are entries that are there already, by their positions.
    """
    if len({trial.position for trial in trials}) == len(trials):
        known = known or {}
        firsts = trials
        entries = [known.get(trial.position) or entry_of((trial,)) for trial in trials]
    else:
        cases = list(by_case(trials))
        firsts, entries = [case[0] for case in cases], [entry_of(case) for case in cases]
    keys = [pair_of(trial.case_id, trial.comparability) for trial in firsts]
    return Noted(b",\n".join(entries), b",".join(keys))


class Spool:
    """Counts the cases of a suite and keeps what was noted, in the order of the file.

    Chunks are promised in their order, and come in any.
    """

    def __init__(self, folder: Path, head: bytes) -> None:
        self.count = Count()
        self._head, self._is_first = head, True
        self._promised: deque[int] = deque()
        self._waiting: dict[int, tuple[Sequence[TrialRecord], Noted]] = {}
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
    def is_kept(self) -> bool:
        """Is everything in it that came?"""
        return self._entries is not None and not self._waiting

    def promise(self, chunk: int) -> None:
        """A chunk with this number comes after all that were promised before."""
        self._promised.append(chunk)

    def add(self, chunk: int, trials: Sequence[TrialRecord], noted: Noted) -> None:
        """The trials of a chunk, and what was noted of them."""
        if self._entries is None:
            return
        self._waiting[chunk] = (trials, noted)
        try:
            while self._promised and self._promised[0] in self._waiting:
                self._keep(*self._waiting.pop(self._promised.popleft()))
        except OSError:  # the disk is full; whoever writes the result file says so
            self.close()
        if len(self._waiting) > MOST_WAITING:
            self.close()

    def entries(self) -> Iterator[bytes]:
        """What stands between the brackets of the list of cases."""
        assert self._entries is not None
        return _pieces(self._entries.stream, len(self._head))

    def keys(self) -> Iterator[bytes]:
        """What stands between the braces of the keys."""
        assert self._keys is not None
        return _pieces(self._keys)

    def becomes(self, file: Path, head: bytes, tail: Iterator[bytes]) -> bool:
        """Make the entries the result file, which they have been growing into."""
        if self._entries is None or not self._entries.can_be_named or head != self._head:
            return False
        self._entries.stream.seek(0, os.SEEK_END)
        self._entries.stream.writelines(tail)
        self._entries.become(file)
        return True

    def close(self) -> None:
        for stream in (self._entries, self._keys):
            if stream is not None:
                with suppress(OSError):  # what was not written yet may not fit on the disk
                    stream.close()
        self._entries = self._keys = None
        self._waiting.clear()

    def _keep(self, trials: Sequence[TrialRecord], noted: Noted) -> None:
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
        self._entries.stream.write(noted.entries)
        self._keys.write(noted.keys)


def _pieces(stream: IO[bytes], start: int = 0) -> Iterator[bytes]:
    stream.seek(start)
    while piece := stream.read(_PIECE):
        yield piece
