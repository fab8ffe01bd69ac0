"""`/groups/{id}`: which targets of a group are best, how sure that is, and where they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from assay.charts.forest import rate_forest
from assay.errors import UsageError
from assay.model.comparison import CaseRef
from assay.model.group import DifferingCase, GroupComparison, GroupPair
from assay.model.run import RunRecord
from assay.reporters.group_words import (
    HOW_BEST,
    PAIR_HEADS,
    TARGET_HEADS,
    TEXT_HEADS,
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
from assay.server.groups import requested_group
from assay.server.pages.live import live_of
from assay.server.pages.places import case_page, compare_page, group_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.requests import quoted
from assay.server.run_manager import is_unfinished
from assay.server.state import State, state_of
from assay.service.compared_runs import positions_of_cases
from assay.service.groups import Group
from assay.text import count

#: How many of the differing cases are on a page.
LISTED = 50
#: The facts that the page has in other places, and the columns that phones leave out.
_ELSEWHERE, _OPTIONAL = ("Group", "Cases"), ("Judged", "Judges", "p50", "p95")
_EQUAL = "No case: all targets pass the same ones equally often."
_NOT_COMPARED = "No case was judged for every target."


class Cell(msgspec.Struct, frozen=True):
    """What a case did for a target; without an address if the target was not asked."""

    kind: str
    words: str
    target: str
    address: str


class Row(msgspec.Struct, frozen=True):
    """A case on which the targets differ."""

    id: str
    suite: str
    cells: list[Cell]


class PairRow(msgspec.Struct, frozen=True):
    """Two targets; the address compares their runs."""

    cells: tuple[str, ...]
    better: bool
    address: str


async def get(request: Request) -> Response:
    """The page of a group that has ended, or of one in progress."""
    state, group = state_of(request), await requested_group(request.path_params["id"], request)
    if any(map(is_unfinished, group.runs)):
        return await _in_progress(group, state, request)
    at = _at(request.query_params.get("at", ""))
    values = await state.scan(partial(_values, group, state, at), request)
    return render("group.html", request, **values)


def _at(text: str) -> int:
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"at is {quoted(text)}; it must be a whole number from 0")


async def _in_progress(group: Group, state: State, request: Request) -> Response:
    """How far each run is, with a link to its page."""
    going = [run for run in group.runs if is_unfinished(run)]
    live = await asyncio.gather(*(live_of(run, state) for run in going))
    ended = len(group.runs) - len(going)
    return render(
        "group_live.html",
        request,
        group=group,
        live={each.run: each for each in live},
        run_page=run_page,
        ended=f"{ended:,} of {count(len(group.runs), 'run')} ended",
    )


def _values(group: Group, state: State, at: int) -> dict[str, Any]:
    found = state.overviews.group(group, state.store)
    rows = target_rows(found)
    addresses = [run_page(row.run_id) for row in rows]
    shown = found.differing[at : at + LISTED]
    chart = rate_forest(rate_rows(found, addresses), "Pass rate by target")
    return {
        "group": group,
        "standing": standing(found),
        "counts": counts_of(found),
        "significant": significant(found),
        "how_best": HOW_BEST,
        "about": [fact for fact in facts(found) if fact[0] not in _ELSEWHERE],
        "plain": TEXT_HEADS,
        "optional": _OPTIONAL,
        "several_suites": len({case.suite for case in found.differing}) > 1,
        "nothing": _EQUAL if found.compared else _NOT_COMPARED,
        "heads": [(n, TARGET_HEADS[n]) for n in used_columns(rows)],
        "targets": rows,
        "chart": chart,
        "pair_heads": PAIR_HEADS,
        "pairs": [_pair(pair, found) for pair in found.pairs],
        "runs": [_run_words(run, state) for run in group.runs],
        "rows": _rows(shown, found, group, state),
        "listed": differing_note(found, len(found.differing)),
        "paging": _paging(group, found, at, len(shown)),
        "notes": found.notes,
        "run_page": run_page,
    }


def _pair(pair: GroupPair, found: GroupComparison) -> PairRow:
    ids = {target.target: target.run_id for target in found.targets}
    address = compare_page(ids[pair.a], ids[pair.b])
    return PairRow(pair_cells(pair), pair.better is not None, address)


def _run_words(run: RunRecord, state: State) -> RunWords:
    """How a run ended, in the words of its own page."""
    found = state.overviews.of(run, state.store, state.settings)
    return RunWords(run.target, run.id, found.word, found.tone, found.sentence)


def _rows(
    shown: Sequence[DifferingCase], found: GroupComparison, group: Group, state: State
) -> list[Row]:
    refs = [CaseRef(case.suite, case.id) for case in shown]
    places = [positions_of_cases(state.store, run, refs) for run in group.runs]
    return [_row(case, found, group, places) for case in shown]


def _row(
    case: DifferingCase,
    found: GroupComparison,
    group: Group,
    places: Sequence[Mapping[CaseRef, int]],
) -> Row:
    cells = []
    for cell, target, run, positions in zip(
        case.cells, found.targets, group.runs, places, strict=True
    ):
        position = positions.get(CaseRef(case.suite, case.id))
        address = "" if position is None else case_page(run.id, position)
        cells.append(Cell(cell_kind(cell), cell_words(cell), target.target, address))
    return Row(case.id, case.suite, cells)


def _paging(group: Group, found: GroupComparison, at: int, shown: int) -> tuple[str, str, str]:
    """Which cases are shown, the address of the first page, and of the next."""
    here = group_page(group.id)
    following = at + shown
    more = f"{here}?at={following}#differing" if following < len(found.differing) else ""
    text = f"{at + 1:,} to {following:,} of {len(found.differing):,}" if shown else "none here"
    return text, f"{here}#differing" if at else "", more


ROUTES = [page("/groups/{id}", get, "at")]
