"""`/groups/{id}`: which targets of a group are best, how sure that is, and where they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.errors import UsageError
from assay.model.comparison import CaseRef
from assay.model.group import DifferingCase, GroupComparison
from assay.model.run import RunRecord
from assay.reporters.group_view import Addresses, RowView, group_view, row_view
from assay.reporters.group_words import RunWords
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
    runs = [_run_words(run, state) for run in group.runs]
    to = Addresses(run_page, compare_page)
    shown = found.differing[at : at + LISTED]
    return {
        "group": group,
        "view": group_view(found, runs, len(found.differing), to),
        "rows": _rows(shown, found, group, state),
        "paging": _paging(group, found, at, len(shown)),
    }


def _run_words(run: RunRecord, state: State) -> RunWords:
    """How a run ended, in the words of its own page."""
    found = state.overviews.of(run, state.store, state.settings)
    return RunWords(run.target, run.id, found.word, found.tone, found.sentence)


def _rows(
    shown: Sequence[DifferingCase], found: GroupComparison, group: Group, state: State
) -> list[RowView]:
    """The cases, with the address of each in the run of each target."""
    refs = [CaseRef(case.suite, case.id) for case in shown]
    places = [positions_of_cases(state.store, run, refs) for run in group.runs]

    def addresses(case: DifferingCase) -> Iterator[str]:
        for run, positions in zip(group.runs, places, strict=True):
            position = positions.get(CaseRef(case.suite, case.id))
            yield "" if position is None else case_page(run.id, position)

    return [row_view(case, found, addresses(case)) for case in shown]


def _paging(group: Group, found: GroupComparison, at: int, shown: int) -> tuple[str, str, str]:
    """Which cases are shown, the address of the first page, and of the next."""
    here = group_page(group.id)
    following = at + shown
    more = f"{here}?at={following}#differing" if following < len(found.differing) else ""
    text = f"{at + 1:,} to {following:,} of {len(found.differing):,}" if shown else "none here"
    return text, f"{here}#differing" if at else "", more


ROUTES = [page("/groups/{id}", get, "at")]
