"""`/api/runs`: start runs, follow, cancel and resume them, and read their results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from assay.errors import NotInStore, StoreError
from assay.model.run import RunRecord
from assay.server import schemas
from assay.server.envelope import WITH_BODY, ApiError, answers, invalid, success, success_json
from assay.server.feed import ServerSentEvent
from assay.server.requests import Route
from assay.server.responses import ResultPage, Run, RunPage
from assay.server.result_pages import ResultQuery, progress_of
from assay.server.run_manager import SERVE, is_unfinished
from assay.server.run_requests import parse_run_request
from assay.server.schemas import RunId, uuid_or_none
from assay.server.state import State, state_of
from assay.service.history import with_baselines

router = APIRouter(route_class=Route)
#: How often the store is polled for the progress of a run of another process.
POLL_SECONDS = 2.0
STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
_ONE = "/api/runs/{id}"
_LINKS = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/data/runId"}}
    for name in ("get_run", "list_results", "cancel_run", "resume_run")
}


class EventStream(StreamingResponse):
    media_type = "text/event-stream"


async def requested_run(run_id: RunId, request: Request) -> RunRecord:
    """The run in the path."""
    state, found = state_of(request), uuid_or_none(run_id)
    try:
        if found is not None:
            return await state.read(lambda: state.store.run(found))
    except NotInStore:
        pass
    raise ApiError("NOT_FOUND", "Run not found")


Requested = Annotated[RunRecord, Depends(requested_run)]


@router.post(
    "/api/runs",
    **answers(Run, "MISSING_FIELD", "INVALID_LENGTH", *WITH_BODY, status=202, links=_LINKS),
)
async def start_run(body: schemas.NewRun, request: Request) -> Response:
    """Start a run of test cases, by id or by tag, or of suites, by path below the served root."""
    state = state_of(request)
    paths, options = await asyncio.to_thread(parse_run_request, body, state)
    run_id = await state.run_manager.start(paths, options)
    return success(await _run_data(run_id, state), 202)


@router.get("/api/runs", **answers(RunPage))
async def list_runs(query: Annotated[schemas.RunQuery, Query()], request: Request) -> Response:
    """List runs, newest first."""
    store = state_of(request).store
    records = await asyncio.to_thread(store.runs, query.limit, query.before)
    baselines = await asyncio.to_thread(store.baselines)
    last = records[-1].id if len(records) == query.limit else None
    return success(RunPage(with_baselines(records, baselines), len(records), last))


@router.get(_ONE, **answers(Run, "NOT_FOUND"))
async def get_run(run: Requested, request: Request) -> Response:
    """Retrieve a run: its progress, or its result."""
    return success(await _run_data(run.id, state_of(request)))


@router.get(f"{_ONE}/results", **answers(ResultPage, "NOT_FOUND"))
async def list_results(
    run_id: RunId, query: Annotated[ResultQuery, Query()], request: Request
) -> Response:
    """The results of a run, filtered and sorted, with the counts of all that match."""
    state, record = state_of(request), await requested_run(run_id, request)
    return success_json(await state.scan(partial(query.results, state.store, record), request))


@router.get(
    f"{_ONE}/events",
    **answers(None, "NOT_FOUND") | {"response_class": EventStream},
)
async def follow_run(
    run: Requested,
    request: Request,
    last: Annotated[
        str,
        Header(
            alias="Last-Event-ID",
            description="The `id` of the last event that the client has seen.",
        ),
    ] = "",
) -> Response:
    """The events of a run while it is in progress, as server-sent events.

    They are `progress`, `started`, `trial` and `notice`, and `finished` at the end.
    """
    state = state_of(request)
    handle = await state.run_manager.settled(run.id)
    record = await requested_run(run.id, request)
    if request.method == "HEAD":  # no body, so nothing to wait for
        return StreamingResponse((), headers=STREAM)
    stream = handle.feed.follow(last) if handle is not None else _poll(record, state)
    return StreamingResponse(_encode(stream), headers=STREAM)


@router.post(f"{_ONE}/cancel", **answers(Run, "NOT_FOUND", *WITH_BODY, status=202))
async def cancel_run(body: schemas.Empty, run: Requested, request: Request) -> Response:
    """Cancel a run. Trials in flight may finish; a second request cancels them too."""
    await cancel(run.id, request)
    return success(await _run_data(run.id, state_of(request)), 202)


async def cancel(run_id: str, request: Request) -> None:
    """Cancel a run; raises ApiError if that is not possible here."""
    state = state_of(request)
    handle = await state.run_manager.settled(run_id)
    may_be_abandoned = handle is None and is_unfinished(await requested_run(run_id, request))
    if not (may_be_abandoned and await state.run_manager.cancel_abandoned(run_id)):
        record = await requested_run(run_id, request)  # it may have ended since
        if handle is None and not is_unfinished(record):
            raise invalid(f"The run is {record.status}; there is nothing to cancel")
        await state.run_manager.cancel(handle, record)


@router.post(f"{_ONE}/resume", **answers(Run, "NOT_FOUND", *WITH_BODY, status=202))
async def resume_run(body: schemas.Empty, run: Requested, request: Request) -> Response:
    """Resume a run of a server that was cancelled or failed; only missing trials are made."""
    state, run_id = state_of(request), run.id
    handle = await state.run_manager.settled(run_id)
    record = await requested_run(run_id, request)
    if record.status == "finished":
        raise invalid("The run is finished; there is nothing to resume")
    if handle is not None or await asyncio.to_thread(state.store.held, run_id):
        raise invalid("The run is in progress; there is nothing to resume")
    if record.started_by != SERVE:
        raise invalid(f"A command started the run; resume it with 'assay run --resume {run_id}'")
    await state.run_manager.resume(record)
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
        if (
            state.run_manager.stopping
        ):  # without `finished`: the client can follow at another server
            return
        number += 1
        await asyncio.sleep(POLL_SECONDS)
        record = await asyncio.to_thread(state.store.run, record.id)


async def _run_data(run_id: str, state: State) -> Run:
    """All the data of a run except its results."""
    record, baselines = await state.read(lambda: (state.store.run(run_id), state.store.baselines()))
    (listed,) = with_baselines([record], baselines)
    handle = state.run_manager.find(run_id)
    return Run(
        **asdict(listed),
        options=record.options,
        environment=record.environment,
        summary=record.counts,
        reasons=record.verdict.reasons,
        notes=record.verdict.notes,
        progress=handle.feed.progress() if handle is not None else None,
    )
