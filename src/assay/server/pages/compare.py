"""`/compare`: two runs side by side, and `/compare/case`: one case of both."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.errors import UsageError, nearest
from assay.reporters.case_words import question_of
from assay.reporters.comparison_words import score_change, standing
from assay.reporters.pair_words import call_pairs, expected, sides
from assay.reporters.words import moved
from assay.server.pages.compared_views import (
    ABOUT,
    TITLES,
    Address,
    attempts_of,
    heads_of,
    is_repeated,
    panels_of,
    row_of,
    strip_of,
)
from assay.server.pages.places import case_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.pages.run_choices import choices_of, default_pair
from assay.server.requests import quoted
from assay.server.state import State, state_of
from assay.service.compared_runs import LIST_NAMES, ComparedRuns, ListName
from assay.text import count

#: The lists that the verdict leads to, as nouns.
_LINKED: dict[ListName, tuple[str, ...]] = {
    "regressed": ("regressed case",),
    "fixed": ("fixed case",),
    "not-comparable": ("case that changed", "cases that changed"),
}
#: How many cases of a list are on a page.
LISTED = 20


async def get(request: Request) -> Response:
    """The comparison of two runs; by default of the newest with its baseline."""
    state, query = state_of(request), request.query_params
    base, candidate = query.get("base", ""), query.get("candidate", "")
    if not (base and candidate):
        base, candidate = await state.read(partial(default_pair, state.store, base, candidate))
    if not (base and candidate):
        return render("compare.html", request, found=None, choices=None)
    name, at = _name(query.get("list", "")), _at(query.get("at", ""))
    values = await state.scan(partial(_values, state, base, candidate, name, at), request)
    return render("compare.html", request, **values)


async def get_case(request: Request) -> Response:
    """One case of both runs in three columns."""
    state, query = state_of(request), request.query_params
    name, at = _name(query.get("list", "")) or "regressed", _at(query.get("at", ""))
    names = (query.get("base", ""), query.get("candidate", ""))
    reading = partial(_case_values, state, *names, name, at)
    return render("compare_case.html", request, **await state.scan(reading, request))


def _name(text: str) -> ListName | None:
    for name in LIST_NAMES:
        if name == text:
            return name
    if not text:
        return None
    raise UsageError(f"a comparison has no list {quoted(text)}; {nearest(text, LIST_NAMES)}")


def _at(text: str) -> int:
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"at is {quoted(text)}; it must be a whole number from 0")


def _values(
    state: State, base: str, candidate: str, name: ListName | None, at: int
) -> dict[str, Any]:
    found = ComparedRuns(base, candidate, state.store, state.settings)
    address, comparison = Address(base, candidate), found.comparison
    sizes = {each: found.size(each) for each in LIST_NAMES}
    shown = name or _first(sizes)
    pairs = found.pairs(shown, at, LISTED)
    return {
        "found": comparison,
        "standing": standing(comparison),
        "moved": moved(comparison),
        "scores": [score_change(score) for score in comparison.scores],
        "address": address,
        "heads": heads_of(found),
        "run_pages": (run_page(found.base.id), run_page(found.candidate.id)),
        "links": [
            (f"See {count(sizes[each], *nouns)}", address.of(each))
            for each, nouns in _LINKED.items()
            if sizes[each]
        ],
        "attempts": attempts_of(pairs, address, shown) if shown == "flaky" and pairs else None,
        "strip": strip_of(found),
        "panels": panels_of(found, address),
        "chips_of": [
            (TITLES[each], sizes[each], address.of(each), each == shown)
            for each in LIST_NAMES
            if sizes[each] or each in ("regressed", "fixed", shown)
        ],
        "list": (TITLES[shown], ABOUT[shown], sizes[shown]),
        "rows": [row_of(pair, shown, found, address) for pair in pairs],
        "paging": (at, address.of(shown), address.of(shown, at + LISTED)),
        "choices": choices_of(state.store, found),
    }


def _first(sizes: dict[ListName, int]) -> ListName:
    """The first list that is not empty."""
    for name in LIST_NAMES:
        if sizes[name]:
            return name
    return "regressed"


def _case_values(
    state: State, base: str, candidate: str, name: ListName, at: int
) -> dict[str, Any]:
    found = ComparedRuns(base, candidate, state.store, state.settings)
    address, size = Address(base, candidate), found.size(name)
    pairs = found.pairs(name, at, 1)
    if not pairs:
        raise UsageError(f"the list has {count(size, 'case')}; there is none at {at:,}")
    (pair,) = pairs
    view = pair.now or pair.before
    before, now = sides(pair.before, pair.now)
    return {
        "pair": pair,
        "case": row_of(pair, name, found, address),
        "title": TITLES[name],
        "question": [] if view is None else question_of(view.content),
        "expected": () if view is None else expected(pair.before, pair.now),
        "sides": (before, now),
        "case_page": case_page,
        "calls": call_pairs(pair.before, pair.now),
        "runs": (found.base, found.candidate),
        "heads": heads_of(found),
        "attempts": attempts_of([pair], address, name) if is_repeated(pair) else None,
        "address": address,
        "back": address.of(name, at - at % LISTED),
        "previous": address.case(name, at - 1) if at else "",
        "next": address.case(name, at + 1) if at + 1 < size else "",
        "counted": f"{at + 1:,} of {size:,}",
    }


_RUNS = ("base", "candidate", "list", "at")
ROUTES = [page("/compare", get, *_RUNS), page("/compare/case", get_case, *_RUNS)]
