"""`/api/runs`: start runs, follow, cancel and resume them, and read their results."""

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
from assay.server.bodies import json_object, uuid_or_none
from assay.server.envelope import ApiError, invalid, success, success_json
from assay.server.feed import ServerSentEvent
from assay.server.jobs import SERVE, is_unfinished
from assay.server.result_pages import OUTCOMES, ResultQuery, progress_of
from assay.server.run_requests import parse_run_request
from assay.server.state import State, state_of
from assay.service.history import with_baselines

router = APIRouter()
#: How often the store is polled for the progress of a run of another process.
POLL_SECONDS = 2.0
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


@router.post("/api/runs", **openapi_runs.START_RUN)
async def start(request: Request) -> Response:
    state = state_of(request)
    body = await json_object(request)
    paths, options = await asyncio.to_thread(parse_run_request, body, state)
    run_id = await state.jobs.start(paths, options)
    return success(await _run_data(run_id, state), 202)


@router.get("/api/runs", **openapi_runs.LIST_RUNS)
async def list_runs(request: Request) -> Response:
    given = bodies.query(request, "limit", "before")
    limit = bodies.number(given, "limit", bodies.LIMIT, 1, bodies.MAX_LIMIT)
    before = uuid_or_none(given.get("before"))
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
    return success(await _run_data((await _record(request)).id, state_of(request)))


@router.get("/api/runs/{id}/results", **openapi_runs.LIST_RESULTS)
async def results(request: Request) -> Response:
    given = bodies.query(request, "limit", "skip", "outcome", "q", "after")
    limit, skip = bodies.page(given)
    after = bodies.number(given, "after", -1, 0, None)
    outcome = given.get("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        raise invalid(f"Query parameter 'outcome' must be one of {', '.join(OUTCOMES)}")
    query = ResultQuery(outcome, given.get("q", "").casefold(), after, skip, limit)
    state, record = state_of(request), await _record(request)
    return success_json(await state.scan(partial(query.page, state.store, record), request))


@router.get("/api/runs/{id}/events", **openapi_runs.FOLLOW_RUN)
async def events(request: Request) -> Response:
    bodies.query(request)
    state = state_of(request)
    job = await state.jobs.settled((await _record(request)).id)
    record = await _record(request)
    if request.method == "HEAD":  # no body, so nothing to wait for
        return StreamingResponse((), headers=_STREAM)
    last = request.headers.get("last-event-id", "")
    stream = job.feed.follow(last) if job is not None else _poll(record, state)
    return StreamingResponse(_encode(stream), headers=_STREAM)


@router.post("/api/runs/{id}/cancel", **openapi_runs.CANCEL_RUN)
async def cancel(request: Request) -> Response:
    raw, state = await bodies.read_body(request), state_of(request)
    run_id = (await _record(request)).id
    bodies.parse_fields(bodies.parse_object(raw), {})
    job = await state.jobs.settled(run_id)
    may_be_abandoned = job is None and is_unfinished(await _record(request))
    if not (may_be_abandoned and await state.jobs.cancel_abandoned(run_id)):
        record = await _record(request)  # it may have ended meanwhile
        if job is None and not is_unfinished(record):
            raise invalid(f"The run is {record.status}; there is nothing to cancel")
        if record.door != SERVE:
            raise invalid("A command is at work on the run; there is nothing to cancel here")
        await state.jobs.cancel(job, record)
    return success(await _run_data(run_id, state), 202)


@router.post("/api/runs/{id}/resume", **openapi_runs.RESUME_RUN)
async def resume(request: Request) -> Response:
    raw, state = await bodies.read_body(request), state_of(request)
    run_id = (await _record(request)).id
    bodies.parse_fields(bodies.parse_object(raw), {})
    job = await state.jobs.settled(run_id)
    record = await _record(request)
    if record.status == "finished":
        raise invalid("The run is finished; there is nothing to resume")
    if job is not None or await asyncio.to_thread(state.store.held, run_id):
        raise invalid("The run is in progress; there is nothing to resume")
    if record.door != SERVE:
        raise invalid(f"A command started the run; resume it with 'assay run --resume {run_id}'")
    await state.jobs.resume(record)
    return success(await _run_data(run_id, state), 202)


async def _encode(events: AsyncIterator[ServerSentEvent]) -> AsyncIterator[bytes]:
    # A failing store or a deleted run ends the stream; a client that reconnects gets the error.
    with suppress(StoreError):
        async for event in events:
            yield event.encoded()


async def _poll(record: RunRecord, state: State) -> AsyncIterator[ServerSentEvent]:
    """The events of a run that is not in progress here, by polling the store."""
    number = 0
    while True:
        progress = await state.scan(partial(progress_of, state.store, record))
        yield ServerSentEvent("progress", f"store-{number}", progress)
        if not is_unfinished(record):
            yield ServerSentEvent("finished", f"store-{number + 1}", {"status": record.status})
            return
        if state.jobs.stopping:  # without `finished`: the client can follow at another server
            return
        number += 1
        await asyncio.sleep(POLL_SECONDS)
        record = await asyncio.to_thread(state.store.run, record.id)


async def _record(request: Request) -> RunRecord:
    """The run in the path."""
    state, found = state_of(request), uuid_or_none(request.path_params["id"])
    try:
        if found is not None:
            return await state.read(lambda: state.store.run(found))
    except NotInStore:
        pass
    raise ApiError("NOT_FOUND", "Run not found")


async def _run_data(run_id: str, state: State) -> dict[str, Any]:
    """All the data of a run except its results."""
    record, baselines = await state.read(lambda: (state.store.run(run_id), state.store.baselines()))
    (listed,) = with_baselines([record], baselines)
    job = state.jobs.find(run_id)
    progress = job.feed.progress() if job is not None else None
    return listed.to_dict() | {
        "options": record.options,
        "environment": record.environment,
        "summary": record.counts,
        "reasons": list(record.verdict.reasons),
        "notes": list(record.verdict.notes),
        "progress": progress,
    }
