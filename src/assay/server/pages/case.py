"""`/runs/{id}/cases/{position}`: one case, what was asked, what came back, and why it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from assay.charts.markup import Html
from assay.comparison.outcomes import find_run
from assay.errors import NotInStore
from assay.model.case_view import CaseView
from assay.model.group import GroupCell
from assay.model.observed import ObservedCall
from assay.model.run import RunRecord, short_id
from assay.ports import Store
from assay.reporters.case_details import CaseDetails, details_of
from assay.reporters.case_words import answer_of, observed, shown_trial
from assay.reporters.group_words import cell_kind, cell_words
from assay.reporters.word_diff import Sign, marked
from assay.server.envelope import ApiError
from assay.server.pages.case_lists import Around, Place, around, label_of, read_place, sign_of
from assay.server.pages.copies import Copy, below_root, copies_of
from assay.server.pages.places import case_list, case_page, compare_page, group_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.runs import requested_run
from assay.server.state import State, state_of
from assay.service.cases import case_at, find_case
from assay.web.content import answer_html, json_tree

#: What follows the address of a case to make it a regression case.
REGRESSION = "/regression"
#: The fields of its form: name, label, and what belongs there.
FIELDS = (
    ("bug", "Bug", "the issue, or the commit of the fix"),
    ("must_contain", "The answer must contain", "besides what the case expects; may be empty"),
    ("tool", "Tool", "the tool that it is about; needed if the case does not say it"),
)
#: The most calls that are listed.
MAX_CALLS = 200
_TONES = {"passed": "better", "fixed": "better", "failed": "worse", "regressed": "worse"}
_TONES |= {"errored": "errored", "flaky": "unclear"}
_CHANGES = {
    "regressed": "It passed in {base} and fails now.",
    "fixed": "It failed in {base} and passes now.",
    "still-failing": "It failed in {base} too.",
    "added": "It is not in {base}.",
    "not-comparable": "It changed since {base}, so that the two results do not compare.",
    "not-judged": "It was not judged in {base} or now, so that the two results do not compare.",
}


class ShownCall(msgspec.Struct, frozen=True):
    """A call of a tool on the timeline; `start` and `width` are in percent of all calls."""

    text: str
    ending: str
    failed: bool
    arguments: Html | None
    result: Html | None
    start: float
    width: float


class OtherTarget(msgspec.Struct, frozen=True):
    """The same case by another target of the group."""

    target: str
    kind: str
    words: str
    address: str


class CasePage(msgspec.Struct, frozen=True):
    """Everything that the page shows of a case."""

    view: CaseView
    details: CaseDetails
    sign: str
    label: str
    tone: str
    sentence: str
    answer: Html
    raw: str
    calls: list[ShownCall]
    more_calls: int
    base: str
    base_run: str
    base_outcome: str
    before: str | None
    diff: list[tuple[Sign, str]]
    copies: list[Copy]
    #: Can the server make it a regression case?
    can_add: bool
    around: Around
    others: list[OtherTarget]


class RegressionForm(msgspec.Struct, frozen=True):
    """What a user typed to make the case a regression case, and the result."""

    bug: str = ""
    must_contain: str = ""
    tool: str = ""
    problem: str = ""
    added: str = ""


async def get(request: Request) -> Response:
    """The page of a case."""
    return await show(request, RegressionForm())


async def show(request: Request, form: RegressionForm) -> Response:
    """The page of a case with this form."""
    state, record = state_of(request), await requested_run(request.path_params["id"], request)
    place = read_place(record.id, dict(request.query_params))
    address = state.public_url or f"{request.url.scheme}://{request.headers['host']}"
    making = partial(_case, state, record, position_in(request), place, address)
    try:
        shown = await asyncio.to_thread(making)
    except NotInStore:
        raise ApiError("NOT_FOUND", "Case not found") from None
    back = case_list(record.id, place.filter, place.sort)
    return render(
        "case.html",
        request,
        400 if form.problem else 200,
        case=shown,
        form=form,
        regression=regression_address(request),
        fields=FIELDS,
        run=record,
        back=back,
        run_page=run_page,
        group_page=group_page,
        compare_page=compare_page,
        json_tree=json_tree,
    )


def position_in(request: Request) -> int:
    """The position in the path."""
    position = request.path_params["position"]
    if not (position.isascii() and position.isdigit() and len(position) < 10):
        raise ApiError("NOT_FOUND", "Case not found")
    return int(position)


def regression_address(request: Request) -> str:
    """Where the form is sent; the address keeps the list that the case was reached from."""
    query = f"?{request.url.query}" if request.url.query else ""
    path = request.url.path.removesuffix(REGRESSION)
    return f"{path}{REGRESSION}{query}"


def _case(state: State, record: RunRecord, position: int, place: Place, address: str) -> CasePage:
    store = state.store
    view = case_at(store, record, position)
    base, before = _before(store, record, view)
    base_name = str(record.options.get("baseline") or record.verdict.baseline or "the baseline")
    label = short_id(base_name)
    trial = shown_trial(view)
    seen = observed(trial)
    raw = answer_of(view)
    answered = None if before is None else answer_of(before)
    sign = sign_of(view.row)
    made = seen.tool_calls or ()
    return CasePage(
        view=view,
        details=details_of(view, view.content.description, "", answered),
        sign=sign,
        label=label_of(view.row),
        tone=_TONES.get(sign, "plain"),
        sentence=_CHANGES.get(view.row.changed or "", "").format(base=label),
        answer=answer_html(raw),
        raw=raw,
        calls=list(_calls(made[:MAX_CALLS])),
        more_calls=max(len(made) - MAX_CALLS, 0),
        base=label,
        base_run="" if base is None else base.id,
        base_outcome="" if before is None else before.row.outcome,
        before=answered,
        diff=[] if answered is None else marked(answered, raw),
        copies=list(copies_of(view, record, state, address)),
        can_add=view.row.outcome == "failed" and below_root(view.row.suite, state) is not None,
        around=around(place, store, record, position, state.overviews.facets),
        others=list(_others(store, record, view)),
    )


def _others(store: Store, record: RunRecord, view: CaseView) -> Iterator[OtherTarget]:
    """The same case by the other targets of the group, as far as they were asked."""
    for run in store.group(record.group) if record.group is not None else ():
        same = None if run.id == record.id else _same(store, run, view)
        if same is not None:
            row = same.row
            cell = GroupCell(row.outcome, row.passes, row.judged, row.score)
            address = case_page(run.id, row.position)
            yield OtherTarget(run.target, cell_kind(cell), cell_words(cell), address)


def _before(
    store: Store, record: RunRecord, view: CaseView
) -> tuple[RunRecord | None, CaseView | None]:
    """The baseline of the run, and the same case of it."""
    if not record.verdict.baseline:
        return None, None
    try:
        base = find_run(record.verdict.baseline, store)
        return base, _same(store, base, view)
    except NotInStore:
        return None, None


def _same(store: Store, record: RunRecord, view: CaseView) -> CaseView | None:
    """The same case of another run; it is most often at the same position."""
    row = view.row
    same = _at(store, record, row.position)
    if same is not None and (same.row.suite, same.row.id) == (row.suite, row.id):
        return same  # found without a search through all cases
    return find_case(store, record, row.suite, row.id)


def _at(store: Store, record: RunRecord, position: int) -> CaseView | None:
    try:
        return case_at(store, record, position)
    except NotInStore:
        return None


def _calls(made: Sequence[ObservedCall]) -> Iterator[ShownCall]:
    """The calls, one after the other on the timeline."""
    total = sum(call.duration_ms or 0.0 for call in made)
    start = 0.0
    for call in made:
        width = 100 * (call.duration_ms or 0.0) / total if total else 0.0
        yield ShownCall(
            call.text,
            call.ending,
            call.error is not None or call.success is False,
            _tree(call.params),
            _tree(call.result),
            round(start, 2),
            round(max(width, 0.5), 2) if total else 0.0,
        )
        start += width


def _tree(value: Any) -> Html | None:
    """Values with parts as a tree; others are in the text of the call."""
    return json_tree(value) if isinstance(value, dict | list) and value else None


ROUTES = [page("/runs/{id}/cases/{position}", get, "filter", "sort", "at")]
