"""`/compare`: two runs side by side, and `/compare/case`: one case of both."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from assay.charts.forest import difference_forest
from assay.charts.markup import Chart
from assay.charts.squares import mcnemar_square
from assay.charts.strip import decision_strip
from assay.errors import UsageError, nearest
from assay.model.case_filter import CaseFilter, Term
from assay.model.comparison_tables import PairCounts
from assay.model.run import RunRecord
from assay.ports import Store
from assay.reporters.case_words import question_of
from assay.reporters.comparison_words import (
    rate_change,
    score_change,
    standing,
    what_changed,
)
from assay.reporters.pair_words import BRIEF, FEW, Side, call_pairs, expected, sides
from assay.reporters.words import accepted, moved
from assay.server.pages.places import case_list, case_page, compare_page
from assay.server.pages.rendering import page, render
from assay.server.requests import quoted
from assay.server.state import State, state_of
from assay.service.compared_runs import LIST_NAMES, ComparedRuns, ListName, Pair
from assay.text import count, percent

#: How many cases of a list are on a page, and how many runs can be picked.
LISTED, PICKED = 20, 50
#: How many rows of a forest are drawn.
MAX_ROWS = 20
_TITLES: dict[ListName, str] = {
    "regressed": "Regressed",
    "fixed": "Fixed",
    "not-comparable": "Not comparable",
    "not-judged": "Not judged",
    "still-failing": "Failed in both",
    "both-passed": "Passed in both",
    "flaky": "Flaky",
    "accepted": "Accepted",
    "added": "Added",
    "removed": "Removed",
}
_ABOUT: dict[ListName, str] = {
    "regressed": "passed before and fail now",
    "fixed": "failed before and pass now",
    "not-comparable": "the case changed, so that its outcomes do not compare",
    "not-judged": "errored in one of the runs",
    "still-failing": "failed before and fail now",
    "both-passed": "passed before and pass now",
    "flaky": "passed and failed within one of the runs",
    "accepted": "fail now, as the configuration accepts",
    "added": "only in the candidate",
    "removed": "only in the base",
}


class Row(msgspec.Struct, frozen=True):
    """A case of a list. `note` is why it is in it, or how it stands."""

    id: str
    suite: str
    tags: tuple[str, ...]
    address: str
    note: str
    expected: tuple[str, ...]
    before: Side | None
    now: Side | None


class Panel(NamedTuple):
    """A chart with its title, and a note beside that."""

    title: str
    note: str
    chart: Chart


class Choice(msgspec.Struct, frozen=True):
    """A run that can be picked."""

    value: str
    label: str
    selected: bool


class Address(msgspec.Struct, frozen=True):
    """Makes the addresses of a comparison."""

    base: str
    candidate: str

    def of(self, name: ListName, at: int = 0) -> str:
        """A list from one of its cases on."""
        more: dict[str, object] = {"list": name} | ({"at": at} if at else {})
        return f"/compare?{self._query(more)}#cases"

    def case(self, name: ListName, at: int) -> str:
        return f"/compare/case?{self._query({'list': name, 'at': at})}"

    @property
    def swapped(self) -> str:
        return compare_page(self.candidate, self.base)

    def _query(self, more: dict[str, object]) -> str:
        return urlencode({"base": self.base, "candidate": self.candidate} | more)


async def get(request: Request) -> Response:
    """The comparison of two runs; by default of the newest with its baseline."""
    state, query = state_of(request), request.query_params
    base, candidate = query.get("base", ""), query.get("candidate", "")
    if not (base and candidate):
        base, candidate = await state.read(partial(_default, state.store, base, candidate))
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


def _default(store: Store, base: str, candidate: str) -> tuple[str, str]:
    """The newest finished run and its baseline, or else the run before it."""
    finished = [run for run in store.runs(PICKED) if run.status == "finished"]
    if not candidate and finished:
        candidate = finished[0].id
    if not base:
        names = {run_id: name for name, run_id in store.baselines().items()}
        newest = next((run for run in finished if run.id == candidate), None)
        known = {run.id for run in finished}
        before = None if newest is None else newest.verdict.baseline
        if before is not None and before in known:
            return names.get(before, before), candidate
        base = next((names.get(run.id, run.id) for run in finished if run.id != candidate), "")
    return base, candidate


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
        "strip": _strip(found),
        "panels": _panels(found, address),
        "chips_of": [
            (_TITLES[each], sizes[each], address.of(each), each == shown)
            for each in LIST_NAMES
            if sizes[each] or each in ("regressed", "fixed", shown)
        ],
        "list": (_TITLES[shown], _ABOUT[shown], sizes[shown]),
        "rows": [_row(pair, shown, found, address) for pair in pairs],
        "paging": (at, address.of(shown), address.of(shown, at + LISTED)),
        "choices": _choices(state.store, found),
    }


def _first(sizes: dict[ListName, int]) -> ListName:
    """The first list that is not empty."""
    for name in LIST_NAMES:
        if sizes[name]:
            return name
    return "regressed"


def _strip(found: ComparedRuns) -> Chart | None:
    difference = found.comparison.difference
    if difference is None:
        return None
    return decision_strip(difference, found.rules.margin, found.comparison.pairs)


def _cells(address: Address) -> dict[str, str]:
    """The lists behind the cells of the square."""
    return {
        "both_passed": address.of("both-passed"),
        "regressed": address.of("regressed"),
        "fixed": address.of("fixed"),
        "both_failed": address.of("still-failing"),
    }


def _panels(found: ComparedRuns, address: Address) -> tuple[list[Panel], list[Panel]]:
    """The charts of the left and of the right column."""
    square = mcnemar_square(found.tables.total, _cells(address))
    moved = Panel("What moved", rate_change(found.comparison), square)
    suites, tags = found.tables.suites, found.tables.tags
    by_suite = [_forest(found, "suite", suites)] if len(suites) > 1 else []
    by_tag = [_forest(found, "tag", tags)] if tags else []
    if len(suites) >= len(tags):
        return [moved, *by_tag], by_suite
    return [moved, *by_suite], by_tag


def _forest(found: ComparedRuns, field: str, rows: list[PairCounts]) -> Panel:
    """The rows in which most moved; the others would make the page long without saying much."""
    listed = sorted(rows, key=_importance)[:MAX_ROWS]
    folder = _common_folder([row.name for row in rows]) if field == "suite" else ""
    shown = [replace(row, name=row.name.removeprefix(folder)) for row in listed]
    links = {
        named.name: case_list(found.candidate.id, CaseFilter((Term(field, values=(row.name,)),)))
        for named, row in zip(shown, listed, strict=True)
    }
    some = f"; {MAX_ROWS} of {len(rows):,}" if len(rows) > MAX_ROWS else ""
    chart = difference_forest(shown, f"Difference of the pass rates by {field}", links)
    return Panel(f"Where, by {field}", f"difference in points and its interval{some}", chart)


def _common_folder(files: list[str]) -> str:
    """The folder that all files are in, with a slash at its end; empty if there is none."""
    folders = (file.split("/")[:-1] for file in files)
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "".join(f"{parts[0]}/" for parts in same)


def _importance(row: PairCounts) -> tuple[int, int, str]:
    return -(row.regressed + row.fixed), -row.pairs, row.name


def _row(pair: Pair, name: ListName, found: ComparedRuns, address: Address) -> Row:
    before, now = sides(pair.before, pair.now, BRIEF, FEW)
    view = pair.now or pair.before
    return Row(
        pair.ref.id,
        pair.ref.suite,
        () if view is None else view.row.tags,
        address.case(name, pair.at),
        _note(pair, name, found),
        () if view is None else expected(pair.before, pair.now, FEW),
        before,
        now,
    )


def _note(pair: Pair, name: ListName, found: ComparedRuns) -> str:
    """Why a case is in its list, or how it stands."""
    notes = {loss.ref: loss.reason for loss in found.comparison.losses}
    notes |= {case.ref: accepted(case) for case in found.comparison.accepted}
    if name == "not-comparable" and pair.before is not None and pair.now is not None:
        return what_changed(pair.before.content, pair.now.content)
    return notes.get(pair.ref, "") if name in ("regressed", "accepted") else ""


def _choices(store: Store, found: ComparedRuns) -> list[tuple[str, str, list[Choice]]]:
    """The runs that can be picked as base and as candidate."""
    baselines = store.baselines()
    names = {run_id: name for name, run_id in baselines.items()}
    runs = {run.id: run for run in (*store.runs(PICKED), found.base, found.candidate)}
    picked = []
    for label, field, asked, run in (
        ("Base", "base", found.asked[0], found.base),
        ("Candidate", "candidate", found.asked[1], found.candidate),
    ):
        chosen = asked if asked in baselines else run.id
        choices = [Choice(name, f"{name} (baseline)", name == chosen) for name in baselines]
        choices += [
            Choice(run_id, _described(runs[run_id], names), run_id == chosen)
            for run_id in sorted(runs, reverse=True)
            if runs[run_id].status != "running"
        ]
        picked.append((label, field, choices))
    return picked


def _described(run: RunRecord, names: dict[str, str]) -> str:
    """A run in a line: when, of which target, its pass rate."""
    summary = run.summary or {}
    passed = summary.get("passed", 0)
    judged = passed + summary.get("failed", 0)
    rate = f"{percent(passed / judged)} of {judged:,}" if judged else "no case judged"
    try:
        started = datetime.fromisoformat(run.started_at).strftime("%-d %b %H:%M")
    except ValueError:
        started = run.started_at
    parts = [run.id[:8], started, run.target, rate, names.get(run.id, "")]
    return ", ".join(filter(None, parts))


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
        "case": _row(pair, name, found, address),
        "title": _TITLES[name],
        "question": [] if view is None else question_of(view.content),
        "expected": () if view is None else expected(pair.before, pair.now),
        "sides": (before, now),
        "case_page": case_page,
        "calls": call_pairs(pair.before, pair.now),
        "runs": (found.base, found.candidate),
        "address": address,
        "back": address.of(name, at - at % LISTED),
        "previous": address.case(name, at - 1) if at else "",
        "next": address.case(name, at + 1) if at + 1 < size else "",
        "counted": f"{at + 1:,} of {size:,}",
    }


_RUNS = ("base", "candidate", "list", "at")
ROUTES = [page("/compare", get, *_RUNS), page("/compare/case", get_case, *_RUNS)]
