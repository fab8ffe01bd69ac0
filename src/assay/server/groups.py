"""`/api/groups`: runs of several targets: start and cancel them, and compare the targets."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import NotInStore
from assay.model.group import GroupComparison
from assay.model.run_result import PRECEDENCE
from assay.server import schemas
from assay.server.envelope import WITH_BODY, ApiError, answers, invalid, success
from assay.server.requests import Route
from assay.server.responses import Group as GroupData
from assay.server.run_manager import is_unfinished
from assay.server.run_requests import parse_run_request
from assay.server.runs import cancel
from assay.server.schemas import uuid_or_none
from assay.server.state import State, state_of
from assay.service.groups import Group, group_with
from assay.service.history import with_baselines

router = APIRouter(route_class=Route)
_LINKS = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/data/groupId"}}
    for name in ("get_group", "cancel_group")
}
GroupId = Annotated[
    str,
    Path(
        alias="id",
        description="The id of a group.",
        json_schema_extra={"format": "uuid"},
        examples=[schemas.RUN_ID],
    ),
]


async def requested_group(group_id: str, request: Request) -> Group:
    """The group in the path."""
    state, found = state_of(request), uuid_or_none(group_id)
    try:
        if found is not None:
            return await state.read(lambda: group_with(found, state.store))
    except NotInStore:
        pass
    raise ApiError("NOT_FOUND", "Group not found")


@router.post(
    "/api/groups",
    **answers(GroupData, "MISSING_FIELD", "INVALID_LENGTH", *WITH_BODY, status=202, links=_LINKS),
)
async def start_group(body: schemas.NewGroup, request: Request) -> Response:
    """Start a run for each of several targets, which are asked the same cases in step."""
    state = state_of(request)
    paths, options = await asyncio.to_thread(parse_run_request, body, state)
    group_id = await state.run_manager.start_group(paths, options, body.target)
    return success(await _group_data(group_id, request), 202)


@router.get("/api/groups/{id}", **answers(GroupData, "NOT_FOUND"))
async def get_group(
    group_id: GroupId, query: Annotated[schemas.GroupQuery, Query()], request: Request
) -> Response:
    """Retrieve a group: its runs, and their comparison once all have ended."""
    state, group = state_of(request), await requested_group(group_id, request)
    return success(await state.scan(partial(_data, group, query, state), request))


@router.post("/api/groups/{id}/cancel", **answers(GroupData, "NOT_FOUND", *WITH_BODY, status=202))
async def cancel_group(body: schemas.Empty, group_id: GroupId, request: Request) -> Response:
    """Cancel the runs of a group that have not ended; a second request cancels trials in flight."""
    group = await requested_group(group_id, request)
    cancelled = False
    for run in group.runs:
        with suppress(ApiError):  # it has ended
            await cancel(run.id, request)
            cancelled = True
    if not cancelled:
        raise invalid("All runs of the group have ended; there is nothing to cancel")
    return success(await _group_data(group.id, request), 202)


async def _group_data(group_id: str, request: Request) -> GroupData:
    state, group = state_of(request), await requested_group(group_id, request)
    query = schemas.GroupQuery()
    return await state.scan(partial(_data, group, query, state), request)


def _data(group: Group, query: schemas.GroupQuery, state: State) -> GroupData:
    runs = with_baselines(group.runs, state.store.baselines())
    if any(map(is_unfinished, group.runs)):
        return GroupData(group.id, runs, None, None, 0, 0)
    found = state.overviews.group(group, state.store)
    shown = _page(found, query)
    codes = {run.exit_code for run in runs}
    worst = next((code for code in PRECEDENCE if code in codes), 0)
    return GroupData(
        group.id,
        runs,
        shown,
        worst,
        len(shown.differing),
        min(found.differing_count, len(found.differing)),
    )


def _page(found: GroupComparison, query: schemas.GroupQuery) -> GroupComparison:
    """The comparison with a page of the cases on which the targets differ."""
    return replace(found, differing=found.differing[query.skip : query.skip + query.limit])
