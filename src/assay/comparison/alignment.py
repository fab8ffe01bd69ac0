"""Aligns the cases of several runs, in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, tee

from assay.comparison.pairs import Pair, pair
from assay.model.comparison import CaseOutcome

#: The outcomes of a case, one for each run; None in a run that does not have it.
Row = tuple[CaseOutcome | None, ...]


def align(runs: Sequence[Iterable[CaseOutcome]]) -> Iterator[Row]:
    """Every case once: those of the first run in their order, then the others of the second, ...

    Each run is read once, all at the same pace, and is paired with the first as in `pair`.
    """
    if not runs:
        return
    first, *others = runs
    if not others:
        yield from ((case,) for case in first)
        return
    rests: list[Iterable[CaseOutcome]] = [()] * len(others)
    copies = tee(first, len(others))
    streams = [
        _of_first(index, pair(run, copy), rests)
        for index, (run, copy) in enumerate(zip(others, copies, strict=True))
    ]
    for row in zip(*streams, strict=True):
        yield (row[0][1], *(found for found, _ in row))
    yield from ((None, *row) for row in align(rests))


def _of_first(
    index: int, pairs: Iterator[Pair], rests: list[Iterable[CaseOutcome]]
) -> Iterator[Pair]:
    """The pairs with a case of the first run; the other cases become an element of `rests`."""
    for found, case in pairs:
        if case is None:
            rests[index] = (other for other, _ in chain([(found, None)], pairs) if other)
            return
        yield found, case
