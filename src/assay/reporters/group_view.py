"""GroupView: what the page of a group and its HTML report draw, from the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from assay.charts.forest import rate_forest
from assay.charts.markup import Chart
from assay.model.group import DifferingCase, GroupCell, GroupComparison
from assay.reporters.group_words import (
    HOW_BEST,
    HOW_PAIRS,
    PAIR_HEADS,
    TARGET_HEADS,
    TEXT_HEADS,
    GroupStanding,
    RunWords,
    cell_kind,
    cell_words,
    counts_of,
    differing_note,
    facts,
    pair_cells,
    rate_rows,
    significant,
    standing,
    target_rows,
    used_columns,
)

#: The facts that are in other places, and the columns that phones leave out.
_ELSEWHERE, _OPTIONAL = ("Group", "Cases"), ("Judged", "Judges", "p50", "p95")
_EQUAL = "No case: all targets pass the same ones equally often."
_NOT_COMPARED = "No case was judged for every target."


class TargetView(msgspec.Struct, frozen=True):
    """A row of the table of targets; the address is that of its run, if there is one."""

    cells: tuple[str, ...]
    best: bool
    address: str

    @property
    def target(self) -> str:
        return self.cells[0]


class PairView(msgspec.Struct, frozen=True):
    """Two targets; the address compares their runs, if there is one."""

    cells: tuple[str, ...]
    better: bool
    address: str


class CellView(msgspec.Struct, frozen=True):
    """What a case did for a target, and where that is shown, if anywhere."""

    kind: str
    words: str
    target: str
    address: str


class RowView(msgspec.Struct, frozen=True):
    """A case on which the targets differ; the address is that of the first cell with one."""

    id: str
    suite: str
    cells: list[CellView]

    @property
    def address(self) -> str:
        return next((cell.address for cell in self.cells if cell.address), "")


class GroupView(msgspec.Struct, frozen=True):
    """Everything about a group but the list of differing cases, which may be a part of it."""

    standing: GroupStanding
    counts: str
    significant: list[str]
    about: list[tuple[str, str]]
    heads: list[tuple[int, str]]
    targets: list[TargetView]
    chart: Chart
    pairs: list[PairView]
    runs: list[tuple[RunWords, str]]
    differing: str
    nothing: str
    several_suites: bool
    notes: tuple[str, ...]
    how_best: str = HOW_BEST
    how_pairs: str = HOW_PAIRS
    pair_heads: tuple[str, ...] = PAIR_HEADS
    text_heads: tuple[str, ...] = TEXT_HEADS
    optional: tuple[str, ...] = _OPTIONAL


class Addresses(msgspec.Struct, frozen=True):
    """Where a run is shown, and two runs compared; nowhere in a report."""

    run: Callable[[str], str] = lambda run_id: ""
    pair: Callable[[str, str], str] = lambda a, b: ""


def group_view(
    found: GroupComparison, runs: Sequence[RunWords], listed: int, to: Addresses
) -> GroupView:
    """The view of a group, of which `listed` differing cases are shown in all."""
    rows = target_rows(found)
    ids = {target.target: target.run_id for target in found.targets}
    addresses = [to.run(row.run_id) for row in rows]
    return GroupView(
        standing=standing(found),
        counts=counts_of(found),
        significant=significant(found),
        about=[fact for fact in facts(found) if fact[0] not in _ELSEWHERE],
        heads=[(n, TARGET_HEADS[n]) for n in used_columns(rows)],
        targets=[
            TargetView(row.cells, row.best, address)
            for row, address in zip(rows, addresses, strict=True)
        ],
        chart=rate_forest(rate_rows(found, addresses), "Pass rate by target"),
        pairs=[
            PairView(pair_cells(pair), pair.better is not None, to.pair(ids[pair.a], ids[pair.b]))
            for pair in found.pairs
        ],
        runs=[(words, to.run(words.run_id)) for words in runs],
        differing=differing_note(found, listed),
        nothing=_EQUAL if found.compared else _NOT_COMPARED,
        several_suites=len({case.suite for case in found.differing}) > 1,
        notes=found.notes,
    )


def row_view(case: DifferingCase, found: GroupComparison, addresses: Iterable[str]) -> RowView:
    """A case on which the targets differ; `addresses` are those of its cells."""
    parts = zip(case.cells, found.targets, addresses, strict=False)
    return RowView(case.id, case.suite, [_cell(cell, one.target, to) for cell, one, to in parts])


def _cell(cell: GroupCell | None, target: str, address: str) -> CellView:
    return CellView(cell_kind(cell), cell_words(cell), target, "" if cell is None else address)
