"""`/api/runs`: start runs, follow them, stop them, and read what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from assay.errors import NotInStore, StoreError
from assay.model.run import RunRecord
from assay.server import bodies, openapi_runs
from assay.server.bodies import json_object, known_uuid
from assay.server.envelope import ApiError, invalid, success, success_of
from assay.server.feed import Sent
from assay.server.jobs import SERVE, is_to_go_on
from assay.server.result_pages import OUTCOMES, Search, progress_of
from assay.server.run_requests import order_of
from assay.server.state import State, state_of
from assay.service.history import with_baselines

router = APIRouter()
#: How often a run that another process works on is looked at, in seconds.
POLL_SECONDS = 2.0
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


@router.post("/api/runs", **openapi_runs.START_RUN)
async def start(request: Request) -> Response:
    state = state_of(request)
    body = await json_object(request)
    paths, options = await asyncio.to_thread(order_of, body, state)
    run_id = await state.jobs.start(paths, options)
    return success(await _shown(run_id, state), 202)


@router.get("/api/runs", **openapi_runs.LIST_RUNS)
async def listed(request: Request) -> Response:
    given = bodies.query(request, "limit", "before")
    limit = bodies.number(given, "limit", bodies.LIMIT, 1, bodies.MAX_LIMIT)
    before = known_uuid(given.get("before"))
    if before is None and "before" in given:
        raise invalid("Query parameter 'before' must be the id of a run")
    store = state_of(request).store
    records = await asyncio.to_thread(store.runs, limit, before)
    baselines = await asyncio.to_thread(store.baselines)
    rows = [run.to_dict() for run in with_baselines(records, baselines)]
    last = records[-1].id if len(records) == limit else None
    return success({"runs": rows, "count": len(rows), "next": last})


@router.get("/api/runs/{id}", **openapi_runs.GET_RUN)
async def get(request: Request) -> Response:
    bodies.query(request)
    return success(await _shown((await _record(request)).id, state_of(request)))


@router.get("/api/runs/{id}/results", **openapi_runs.LIST_RESULTS)
async def results(request: Request) -> Response:
    given = bodies.query(request, "limit", "skip", "outcome", "q", "after")
    limit, skip = bodies.page(given)
    after = bodies.number(given, "after", -1, 0, None)
    outcome = given.get("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        raise invalid(f"Query parameter 'outcome' must be one of {', '.join(OUTCOMES)}")
    search = Search(outcome, given.get("q", "").casefold(), after, skip, limit)
    state, record = state_of(request), await _record(request)
    return success_of(await state.walk(partial(search.page, state.store, record), request))


@router.get("/api/runs/{id}/events", **openapi_runs.FOLLOW_RUN)
async def events(request: Request) -> Response:
    bodies.query(request)
    state = state_of(request)
    job = await state.jobs.settled((await _record(request)).id)
    record = await _record(request)
    if request.method == "HEAD":  # nobody waits for an event
        return StreamingResponse((), headers=_STREAM)
    last = request.headers.get("last-event-id", "")
    sent = job.feed.follow(last) if job is not None else _polled(record, state)
    return StreamingResponse(_encoded(sent), headers=_STREAM)


@router.post("/api/runs/{id}/cancel", **openapi_runs.CANCEL_RUN)
async def cancel(request: Request) -> Response:
    raw, state = await bodies.received(request), state_of(request)
    run_id = (await _record(request)).id
    bodies.read_fields(bodies.object_of(raw), {})
    job = await state.jobs.settled(run_id)
    left = job is None and is_to_go_on(await _record(request))
    if not (left and await state.jobs.give_up(run_id)):
        record = await _record(request)  # it may have ended meanwhile
        if job is None and not is_to_go_on(record):
            raise invalid(f"The run is {record.status}; there is nothing to cancel")
        if record.door != SERVE:
            raise invalid("A command is at work on the run; there is nothing to cancel here")
        await state.jobs.cancel(job, record)
    return success(await _shown(run_id, state), 202)


async def _encoded(events: AsyncIterator[Sent]) -> AsyncIterator[bytes]:
    with suppress(StoreError):  # or the run was removed: who asks again is told
        async for event in events:
            yield event.encoded()


async def _polled(record: RunRecord, state: State) -> AsyncIterator[Sent]:
    """What becomes of a run that is not at work here: the store is asked from time to time."""
    number = 0
    while True:
        progress = await state.walk(partial(progress_of, state.store, record))
        yield Sent("progress", f"store-{number}", progress)
        if not is_to_go_on(record):
            yield Sent("finished", f"store-{number + 1}", {"status": record.status})
            return
        if state.jobs.stopping:  # it has not ended: another server may tell how it does
            return
        number += 1
        await asyncio.sleep(POLL_SECONDS)
        record = await asyncio.to_thread(state.store.run, record.id)


async def _record(request: Request) -> RunRecord:
    """The run in the path."""
    state, found = state_of(request), known_uuid(request.path_params["id"])
    try:
        if found is not None:
            return await state.read(lambda: state.store.run(found))
    except NotInStore:
        pass
    raise ApiError("NOT_FOUND", "Run not found")


async def _shown(run_id: str, state: State) -> dict[str, Any]:
    """A run with all that is known of it beside its results."""
    record, baselines = await state.read(lambda: (state.store.run(run_id), state.store.baselines()))
    (shown,) = with_baselines([record], baselines)
    job = state.jobs.find(run_id)
    progress = job.feed.progress() if job is not None else None
    return shown.to_dict() | {
        "options": record.options,
        "environment": record.environment,
        "summary": record.counts,
        "reasons": list(record.verdict.reasons),
        "notes": list(record.verdict.notes),
        "progress": progress,
    }
