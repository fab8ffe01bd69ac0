"""Spool: what a result file says of the cases of a stream, noted while they are graded.

Reading all of it back from the store would take nearly as long as grading it. The spool is a
help and not a need: when it cannot be kept, its suite is read from the store.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from assay.folding import by_case, entry_of
from assay.model.run import TrialRecord
from assay.results import Count

#: How many chunks may wait for one before them, which somebody is still at work on.
MOST_WAITING = 64
_BETWEEN = b",\n"
#: How much of the entries is read at a time.
_PIECE = 1024 * 1024


class Spool:
    """Counts the cases of a suite and keeps their entries, in the order of the file.

    Chunks are promised in their order, and come in any.
    """

    def __init__(self, folder: Path) -> None:
        self.count = Count()
        self._promised: deque[int] = deque()
        self._waiting: dict[int, tuple[Sequence[TrialRecord], bytes]] = {}
        self._entries: IO[bytes] | None = None
        self._keys: IO[bytes] | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._entries = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see close
            self._keys = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError:
            self.close()

    @property
    def is_kept(self) -> bool:
        """Is everything in it that came?"""
        return self._entries is not None and not self._waiting

    def promise(self, chunk: int) -> None:
        """A chunk with this number comes after all that were promised before."""
        self._promised.append(chunk)

    def add(self, chunk: int, trials: Sequence[TrialRecord], entries: bytes) -> None:
        """The trials of a chunk, by position and repeat, and their entries as `spooled`."""
        if self._entries is None:
            return
        self._waiting[chunk] = (trials, entries)
        try:
            while self._promised and self._promised[0] in self._waiting:
                self._note(*self._waiting.pop(self._promised.popleft()))
        except OSError:  # the disk is full; whoever writes the result file says so
            self.close()
        if len(self._waiting) > MOST_WAITING:
            self.close()

    def entries(self) -> Iterator[bytes]:
        """The JSON of every case."""
        assert self._entries is not None
        self._entries.seek(0)
        for line in self._entries:
            yield line.removesuffix(_BETWEEN)

    def body(self) -> Iterator[bytes]:
        """All that stands between the brackets of a list of all entries, in large pieces."""
        assert self._entries is not None
        self._entries.seek(0)
        while piece := self._entries.read(_PIECE):
            yield piece

    def keys(self) -> Iterator[tuple[str, str]]:
        """The id of every case, and its comparability key."""
        assert self._keys is not None
        self._keys.seek(0)
        for line in self._keys:
            key, _, identity = line.decode().partition(" ")
            yield identity[:-1], key

    def close(self) -> None:
        for stream in (self._entries, self._keys):
            if stream is not None:
                stream.close()
        self._entries = self._keys = None
        self._waiting.clear()

    def _note(self, trials: Sequence[TrialRecord], entries: bytes) -> None:
        assert self._entries is not None
        assert self._keys is not None
        if not trials:
            return
        keys: list[str] = []
        for case in by_case(trials):
            keys.append(f"{case[0].comparability} {case[0].case_id}\n")  # ids have no line ends
            self.count.add(case)
        self._entries.write(_BETWEEN + entries if self._entries.tell() else entries)
        self._keys.write("".join(keys).encode())


def spooled(cases: Iterable[Sequence[TrialRecord]]) -> bytes:
    """The entries of cases as a list has them, one a line; JSON of ours has no line ends."""
    return _BETWEEN.join(map(entry_of, cases))
