"""Pairs the cases of two runs, in little memory.

Two runs of the same files have their cases in the same order, and are iterated together. From
the first difference on, the rest of the base goes into a table: packed records in one buffer,
and a hash index in arrays. That takes about 100 bytes per case.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from assay.model.comparison import CaseOutcome, CaseRef

#: A case of the base, a case of the candidate, or both when they are the same case.
Pair = tuple[CaseOutcome | None, CaseOutcome | None]

_NONE = -1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CaseOutcome).decode


def pair(base: Iterable[CaseOutcome], candidate: Iterable[CaseOutcome]) -> Iterator[Pair]:
    """Every case once: those of the candidate in their order, then those only the base has.

    Cases are matched by suite and id. Files of other tools have no suites: if the first case of
    either run has none, the id alone counts. If a run has a case twice, the first is paired with
    the first, the second with the second.
    """
    before, after = iter(base), iter(candidate)
    old, new = next(before, None), next(after, None)
    by_id = old is not None and new is not None and not (old.ref.suite and new.ref.suite)
    while old is not None and new is not None:
        if old.ref != new.ref and not (by_id and old.ref.id == new.ref.id):
            break
        yield old, new
        old, new = next(before, None), next(after, None)
    table = _Table(before if old is None else chain((old,), before), by_id)
    for case in after if new is None else chain((new,), after):
        yield table.take(case.ref), case
    for rest in table.remaining():
        yield rest, None


def partner(base: Iterable[CaseOutcome], ref: CaseRef) -> CaseOutcome | None:
    """The case of the base that `pair` finds for a case of the candidate, unless it has several."""
    by_id: bool | None = None
    for case in base:
        if by_id is None:
            by_id = not (case.ref.suite and ref.suite)
        if _key(case.ref, by_id) == _key(ref, by_id):
            return case
    return None


def _key(ref: CaseRef, by_id: bool) -> CaseRef | str:
    return ref.id if by_id else ref


class _Table:
    """A hash table of cases, each to be taken once. Rows of a slot are chained in order."""

    def __init__(self, cases: Iterable[CaseOutcome], by_id: bool) -> None:
        self._by_id = by_id
        self._rows, self._ends = bytearray(), array("Q")
        hashes = array("q")
        for case in cases:
            self._rows += _encode(case)
            self._ends.append(len(self._rows))
            hashes.append(hash(_key(case.ref, by_id)))
        self._view = memoryview(self._rows)
        self._mask = (1 << len(hashes).bit_length()) - 1
        self._heads = array("l", [_NONE]) * (self._mask + 1)
        self._next = array("l", [_NONE]) * len(hashes)
        self._taken = bytearray(len(hashes))
        for row in reversed(range(len(hashes))):  # so that chains start with the first row
            slot = hashes[row] & self._mask
            self._next[row], self._heads[slot] = self._heads[slot], row

    def take(self, ref: CaseRef) -> CaseOutcome | None:
        """Take the first remaining case with this key."""
        key = _key(ref, self._by_id)
        slot = hash(key) & self._mask
        previous, row = _NONE, self._heads[slot]
        while row != _NONE:
            case = self._case(row)
            if _key(case.ref, self._by_id) == key:
                self._unlink(slot, previous, row)
                return case
            previous, row = row, self._next[row]
        return None

    def remaining(self) -> Iterator[CaseOutcome]:
        """The cases that were not taken, in order."""
        return (self._case(row) for row, taken in enumerate(self._taken) if not taken)

    def _unlink(self, slot: int, previous: int, row: int) -> None:
        self._taken[row] = True
        if previous == _NONE:
            self._heads[slot] = self._next[row]
        else:
            self._next[previous] = self._next[row]

    def _case(self, row: int) -> CaseOutcome:
        return _decode(self._view[self._ends[row - 1] if row else 0 : self._ends[row]])
