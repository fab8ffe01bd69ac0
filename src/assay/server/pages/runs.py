"""`/`: all runs, the newest first, and a form that starts one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from assay.charts.intervals import rate_words
from assay.errors import AssayError
from assay.model.names import same_name
from assay.model.run import RunRecord, RunVerdict, short_id
from assay.ports import Store
from assay.reporters.words import because, tone_of
from assay.server.callers import caller_of
from assay.server.envelope import ApiError, invalid, sentence
from assay.server.forms import read_form
from assay.server.pages.places import group_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.run_requests import path_below
from assay.server.state import State, state_of
from assay.service.options import options_of
from assay.stats.estimates import Estimate
from assay.suites.discovery import discover

#: How many runs are on a page, and among how many a filter looks for them.
ROWS, MAX_SEARCHED = 50, 2000
_FILTERS = ("target", "suite", "branch")
#: The most eval files and targets that the form offers.
_MAX_OFFERED = 200


def _address(given: dict[str, str]) -> str:
    return "/?" + urlencode(given) if given else "/"


class ListedRun(msgspec.Struct, frozen=True):
    """A run in the list. `rate` has its interval, and `judged` is what it is of."""

    id: str
    started_at: str
    word: str
    tone: str
    target: str
    suites: list[str]
    rate: str
    judged: str
    why: str
    baseline: str
    moved: str
    names: list[str]
    branch: str
    address: str
    #: The id of its group, and the address of that; empty for a run of one target.
    group: str
    group_address: str

    def filter(self, name: str, value: str) -> str:
        """The list of runs that have this value in common with it."""
        return _address({name: value})


async def get(request: Request) -> Response:
    """The list of runs."""
    state, given = state_of(request), dict(request.query_params)
    listed, next_id = await asyncio.to_thread(partial(_listed, state.store, given))
    wanted = {name: given[name] for name in _FILTERS if given.get(name)}
    follow = _address(wanted | {"before": next_id}) if next_id else ""
    return render(
        "runs.html",
        request,
        runs=listed,
        given=wanted,
        next=follow,
        first=_address(wanted) if given.get("before") else "",
        may_start=caller_of(request).may_write,
        searched=MAX_SEARCHED,
    )


def _listed(store: Store, given: dict[str, str]) -> tuple[list[ListedRun], str]:
    """The runs of a page, and the last id that was looked at if there may be more."""
    names: dict[str, list[str]] = {}
    for name, run_id in store.baselines().items():
        names.setdefault(run_id, []).append(name)
    found: list[RunRecord] = []
    last = ""
    for number, record in enumerate(_from(store, given.get("before") or None)):
        if len(found) == ROWS or number == MAX_SEARCHED:
            return [_row(record, names) for record in found], last
        last = record.id
        if _matches(record, given):
            found.append(record)
    return [_row(record, names) for record in found], ""


def _from(store: Store, before: str | None) -> Iterator[RunRecord]:
    while records := store.runs(100, before):
        yield from records
        before = records[-1].id


def _matches(record: RunRecord, given: dict[str, str]) -> bool:
    target, suite, branch = (given.get(name, "") for name in _FILTERS)
    suites = (name for header in record.suites for name in (header.name, header.file))
    return (
        (not target or same_name(target, record.target))
        and (not suite or any(same_name(suite, name) for name in suites))
        and (not branch or branch == _branch(record))
    )


def _branch(record: RunRecord) -> str:
    return str((record.environment.get("git") or {}).get("branch", ""))


def _row(record: RunRecord, names: dict[str, list[str]]) -> ListedRun:
    summary, verdict = record.summary or {}, record.verdict
    passed, failed = summary.get("passed", 0), summary.get("failed", 0)
    rate = (summary.get("statistics") or {}).get("passRate")
    word = _word(record)
    return ListedRun(
        record.id,
        record.started_at,
        word,
        tone_of(word),
        record.target,
        [header.file or header.name for header in record.suites],
        rate_words(msgspec.convert(rate, Estimate)) if rate else "",
        f"{passed:,} of {passed + failed:,}" if passed + failed else "",
        because(verdict.reasons),
        str(record.options.get("baseline") or short_id(verdict.baseline or "")),
        _moved(verdict),
        names.get(record.id, []),
        _branch(record),
        run_page(record.id),
        record.group or "",
        group_page(record.group) if record.group else "",
    )


def _moved(verdict: RunVerdict) -> str:
    """`2 regressed, 1 fixed`; empty if the run was not compared, or by an older version."""
    if verdict.regressed is None or verdict.fixed is None:
        return ""
    return f"{verdict.regressed:,} regressed, {verdict.fixed:,} fixed"


def _word(record: RunRecord) -> str:
    """The verdict in one word, as far as the record has it."""
    if record.status != "finished":
        return record.status
    return record.verdict.verdict or "finished"


class Offers(msgspec.Struct, frozen=True):
    """What the form offers: eval files below the served root, targets, and baselines."""

    files: list[str]
    targets: list[str]
    target: str
    baselines: list[str]


def _offers(state: State) -> Offers:
    root, settings = state.run_manager.root, state.settings
    try:
        found = discover([root], settings).files
    except AssayError:
        found = []
    files = [Path(file).relative_to(root).as_posix() for file in found[:_MAX_OFFERED]]
    targets = settings.target_names[:_MAX_OFFERED]
    default = options_of({}, settings, None).target
    return Offers(files, targets, default or "", list(state.store.baselines()))


async def get_form(request: Request) -> Response:
    """The form that starts a run."""
    return await _form(request, dict(request.query_params))


async def _form(
    request: Request, chosen: dict[str, str], status: int = 200, message: str = ""
) -> Response:
    offers = await asyncio.to_thread(_offers, state_of(request))
    return render("start.html", request, status, offers=offers, chosen=chosen, message=message)


async def start(request: Request) -> Response:
    """Start a run of an eval file with a configured target."""
    state, form = state_of(request), await read_form(request)
    try:
        offers = await asyncio.to_thread(_offers, state)
        options = {name: form[name] for name in ("target", "baseline") if form.get(name)}
        if form.get("target") and form["target"] not in offers.targets:
            raise invalid("The target is not one of the configured ones")
        if form.get("baseline") and form["baseline"] not in offers.baselines:
            raise invalid("There is no such baseline")
        if form.get("suite", "") not in ("", *offers.files):
            raise invalid("The eval file is not one of the served root")
        path = path_below(state.run_manager.root, form.get("suite") or ".")
        run_id = await state.run_manager.start([path], options)
    except (ApiError, AssayError) as error:
        message = error.detail if isinstance(error, ApiError) else sentence(error)
        return await _form(request, form, 400, message)
    return RedirectResponse(run_page(run_id), 303)


ROUTES = [
    page("/", get, *_FILTERS, "before"),
    page("/runs/new", get_form, "suite", "target", "baseline"),
    page("/runs", start, method="POST"),
]
