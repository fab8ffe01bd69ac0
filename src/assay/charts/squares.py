"""Squares of two by two counts: what moved between two runs, and a judge against people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from assay.charts.markup import Chart, Html, box, drawing, linked, table, titled, words
from assay.model.comparison_tables import PairCounts
from assay.stats.calibration import Confusion
from assay.text import count

_WIDTH, _HEIGHT = 440, 196
_LEFT, _TOP, _GAP = 112, 28, 4
_CELL_WIDTH, _CELL_HEIGHT = (_WIDTH - _LEFT - _GAP) / 2, (_HEIGHT - _TOP - _GAP) / 2


class _Cell(msgspec.Struct, frozen=True):
    """A count, what it counts, and how it looks: `worse`, `better` or plain."""

    number: int
    name: str
    cls: str
    address: str = ""


def mcnemar_square(counts: PairCounts, addresses: Mapping[str, str] | None = None) -> Chart:
    """The pairs of two runs: those that passed in both, in one of them or in none.

    `addresses` are those of the lists of cases, by the fields of the counts.
    """
    to = addresses or {}
    cells = (
        _Cell(counts.both_passed, "both passed", "", to.get("both_passed", "")),
        _Cell(counts.regressed, "regressed", "worse", to.get("regressed", "")),
        _Cell(counts.fixed, "fixed", "better", to.get("fixed", "")),
        _Cell(counts.both_failed, "both failed", "", to.get("both_failed", "")),
    )
    label = f"What moved among {count(counts.pairs, 'compared case')}"
    return _square(label, ("passed now", "failed now"), ("passed before", "failed before"), cells)


def confusion_square(found: Confusion, addresses: Mapping[str, str] | None = None) -> Chart:
    """The verdicts of a judge against the labels of people; agreement is quiet."""
    to = addresses or {}
    cells = (
        _Cell(found.right_passes, "both pass", "", to.get("right_passes", "")),
        _Cell(found.wrong_failures, "too strict", "worse", to.get("wrong_failures", "")),
        _Cell(found.wrong_passes, "too lenient", "worse", to.get("wrong_passes", "")),
        _Cell(found.right_failures, "both fail", "", to.get("right_failures", "")),
    )
    label = f"Judge against people on {count(found.n, 'labelled answer')}"
    return _square(label, ("judge passes", "judge fails"), ("people pass", "people fail"), cells)


def _square(
    label: str, across: tuple[str, str], down: tuple[str, str], cells: Sequence[_Cell]
) -> Chart:
    marks: list[Html] = []
    for index, name in enumerate(across):
        marks.append(words(name, _middle(index), _TOP - 10, "label mid"))
        y = _TOP + index * (_CELL_HEIGHT + _GAP) + _CELL_HEIGHT / 2 + 4
        marks.append(words(down[index], _LEFT - 12, y, "label end"))
    marks += (_drawn(cell, index % 2, index // 2) for index, cell in enumerate(cells))
    numbers = [f"{cell.number:,}" for cell in cells]
    rows = ((down[0], *numbers[:2]), (down[1], *numbers[2:]))
    said = ", ".join(f"{cell.number:,} {cell.name}" for cell in cells)
    svg = drawing(f"{label}: {said}", _WIDTH, _HEIGHT, marks)
    return Chart(svg, table(label, ("", *across), rows))


def _drawn(cell: _Cell, column: int, row: int) -> Html:
    x = _LEFT + column * (_CELL_WIDTH + _GAP)
    y = _TOP + row * (_CELL_HEIGHT + _GAP)
    middle, cls = _middle(column), cell.cls if cell.number else ""
    shape = box(x + 0.5, y + 0.5, _CELL_WIDTH - 1, _CELL_HEIGHT - 1, f"cell {cls}".strip())
    amount = words(f"{cell.number:,}", middle, y + _CELL_HEIGHT / 2 + 2, f"big mid {cls}".strip())
    name = words(cell.name, middle, y + _CELL_HEIGHT / 2 + 22, "label mid")
    mark = titled(f"{cell.number:,} {cell.name}", shape, amount, name)
    return linked(mark, cell.address)


def _middle(column: int) -> float:
    return _LEFT + column * (_CELL_WIDTH + _GAP) + _CELL_WIDTH / 2
