"""`/runs/{id}`: the verdict of a run and why, where it fails, and all its cases."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from assay.charts.forest import rate_forest
from assay.model.case_filter import parse_filter
from assay.model.run import RunRecord, short_id
from assay.ports import Store
from assay.registry import reporters
from assay.results.run import result_of
from assay.server.callers import caller_of
from assay.server.envelope import ApiError, success
from assay.server.pages.case_lists import CaseList, list_cases, more_rows, read_place
from assay.server.pages.live import live_of
from assay.server.pages.overviews import MAX_RATES, RunOverview
from assay.server.pages.places import compare_page, download, group_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.run_manager import is_unfinished
from assay.server.runs import requested_run
from assay.server.state import State, state_of
from assay.service.showing import matching, narrowed

RUN_TEMPLATE = "run.html"
_LIST = ("filter", "sort", "after", "at")
_DOWNLOADS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}
_CHUNK = 1 << 16


async def get(request: Request) -> Response:
    """The page of a run that has ended, or of one in progress."""
    state, record = state_of(request), await requested_run(request.path_params["id"], request)
    place = read_place(record.id, dict(request.query_params))
    if is_unfinished(record) and not request.query_params:
        live = await live_of(record, state)
        may_cancel = caller_of(request).may_write
        values: dict[str, Any] = {"live": live, "may_cancel": may_cancel, "group_page": group_page}
        return render("live.html", request, run=record, **values)

    def read() -> tuple[RunOverview, CaseList, str]:
        overview = state.overviews.of(record, state.store, state.settings)
        cases = list_cases(place, state.store, record, state.overviews.facets)
        return overview, cases, _base(record, overview, state.store)

    overview, cases, base = await state.scan(read, request)
    return render(RUN_TEMPLATE, request, **_values(record, overview), base=base, cases=cases)


def _base(record: RunRecord, overview: RunOverview, store: Store) -> str:
    """The baseline by its name, unless that means another run by now."""
    name = record.options.get("baseline")
    return str(name) if store.baselines().get(str(name)) == overview.base else overview.base


def _values(record: RunRecord, overview: RunOverview) -> dict[str, Any]:
    return {
        "base_shown": short_id(str(record.options.get("baseline") or overview.base)),
        "run": record,
        "overview": overview,
        "about": _about(record, overview),
        "by_suite": _forest(overview, "suites", "Pass rate by suite"),
        "by_tag": _forest(overview, "tags", "Pass rate by tag"),
        "max_rates": MAX_RATES,
        "run_page": run_page,
        "group_page": group_page,
        "compare_page": compare_page,
        "download": download,
    }


def _forest(overview: RunOverview, field: str, caption: str) -> object:
    rows = getattr(overview, field)
    return rate_forest(rows, caption) if rows else None


def _about(record: RunRecord, overview: RunOverview) -> list[tuple[str, str]]:
    """The facts beside the verdict."""
    git = record.environment.get("git") or {}
    revision = str(git.get("revision", ""))[:7]
    if revision:
        revision += ", with changes" if git.get("dirty") else ", clean"
    known = {"Revision": revision, "Branch": git.get("branch", "")}
    found = [(label, text) for label, text in overview.facts if label not in ("Run", "Results")]
    return [*found, *((label, text) for label, text in known.items() if text)]


async def get_rows(request: Request) -> Response:
    """More rows of the list, as JSON for its script."""
    state, record = state_of(request), await requested_run(request.path_params["id"], request)
    place = read_place(record.id, dict(request.query_params))
    rows = await state.scan(partial(more_rows, place, state.store, record), request)
    return success(rows)


async def get_file(request: Request) -> Response:
    """The cases that match a filter, as CSV or JSONL."""
    state, record = state_of(request), await requested_run(request.path_params["id"], request)
    suffix, text = request.path_params["suffix"], request.query_params.get("filter", "")
    if suffix not in _DOWNLOADS:
        raise ApiError("NOT_FOUND", f"There is no route {request.url.path}")
    parse_filter(text)  # a mistake in it is an error before the response begins
    file = await state.scan(partial(_write, state, record, text, suffix), request)
    name = f"{record.id}.{suffix}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_read(file), 200, headers, _DOWNLOADS[suffix])


def _write(state: State, record: RunRecord, text: str, suffix: str) -> IO[bytes]:
    """A temporary file with the cases."""
    run = result_of(state.store, record)
    chosen = narrowed(run, matching(state.store, record, text)) if text else run
    file = tempfile.SpooledTemporaryFile(max_size=_CHUNK)  # noqa: SIM115 - closed once it is sent
    out = io.TextIOWrapper(file, "utf-8", newline="")
    reporters.get(suffix).write(chosen, out)
    out.flush()
    out.detach()
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


ROUTES = [
    page("/runs/{id}", get, *_LIST),
    page("/runs/{id}/rows", get_rows, "filter", "sort", "at"),
    page("/runs/{id}/cases.{suffix}", get_file, "filter"),
]
