"""`/api/baselines`, `/api/compare` and `/api/trend`; and `/api/health`."""

from __future__ import annotations

import asyncio
import logging
from datetime import date
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.comparison.gate import GateRules
from assay.comparison.outcomes import MAX_NAME, NAME_PATTERN, baseline_name
from assay.errors import BaselineRefused, NotInStore, StoreError, UsageError
from assay.model.run import RunRecord
from assay.server import schemas
from assay.server.envelope import (
    WITH_BODY,
    ApiError,
    answers,
    invalid,
    sentence,
    success,
    success_json,
)
from assay.server.requests import Route
from assay.server.responses import Baseline, BaselineList, Comparison, Health, Trend
from assay.server.state import state_of
from assay.service import trends
from assay.service.baselines import set_in_store
from assay.service.comparisons import compare_with_tables
from assay.version import __version__

log = logging.getLogger("assay.server")
router = APIRouter(route_class=Route)
#: How long the store may take to answer before the server reports that it is not available.
HEALTH_SECONDS = 2.0
_NAME_SCHEMA = {"minLength": 1, "maxLength": MAX_NAME, "pattern": NAME_PATTERN}
#: `set_in_store` validates it: no pattern can express that a name must be printable.
NewName = Annotated[
    str,
    Path(
        alias="name",
        description="The name: printable characters, and nothing that means something else.",
        json_schema_extra=_NAME_SCHEMA,
        examples=["main"],
    ),
]
Name = Annotated[str, Path(description="The name of a baseline.", examples=["main"])]


@router.get("/api/baselines", **answers(BaselineList))
async def list_baselines(request: Request) -> Response:
    """List all baselines, each with its run."""
    store = state_of(request).store
    found = await asyncio.to_thread(
        lambda: [_baseline(name, store.run(run_id)) for name, run_id in store.baselines().items()]
    )
    return success(BaselineList(found, len(found), len(found)))


@router.put(
    "/api/baselines/{name}",
    **answers(Baseline, "MISSING_FIELD", "INVALID_LENGTH", "NOT_FOUND", *WITH_BODY),
)
async def set_baseline(name: NewName, body: schemas.NewBaseline, request: Request) -> Response:
    """Set a baseline to a run; refused if the run is partial or lost cases, unless accepted."""
    state = state_of(request)
    setting = partial(set_in_store, name, body.run, state.store, state.settings, accept=body.accept)
    try:
        record = await state.scan(setting, request)
    except BaselineRefused as error:
        raise invalid(f"{sentence(error)}; send 'accept': true to set it anyway") from None
    return success(_baseline(name, record))


@router.delete("/api/baselines/{name}", **answers(None, "NOT_FOUND", status=204))
async def remove_baseline(name: Name, request: Request) -> Response:
    """Remove a baseline; its run is kept."""
    store = state_of(request).store
    try:
        known = await asyncio.to_thread(baseline_name, name, store)
        await asyncio.to_thread(store.remove_baseline, known)
    except NotInStore:
        raise ApiError("NOT_FOUND", "Baseline not found") from None
    return Response(status_code=204)


@router.get("/api/compare", **answers(Comparison, "MISSING_FIELD", "NOT_FOUND"))
async def compare(query: Annotated[schemas.CompareQuery, Query()], request: Request) -> Response:
    """Compare two runs: what changed, and whether it may be chance."""
    state = state_of(request)
    accepted = tuple(state.settings.config.accepted)
    rules = GateRules(query.gate, query.margin, query.strict, accepted=accepted, today=date.today())
    comparing = partial(compare_with_tables, query.base, query.candidate, state.store, rules)
    return success_json(await state.scan(comparing, request))


@router.get("/api/trend", **answers(Trend, "NOT_FOUND"))
async def trend(query: Annotated[schemas.TrendQuery, Query()], request: Request) -> Response:
    """The pass rate of the finished runs with its interval, target by target, the newest last."""
    store = state_of(request).store
    try:
        points = await asyncio.to_thread(
            trends.points_of, store, query.suite, query.last, query.target
        )
    except UsageError as error:
        raise ApiError("NOT_FOUND", sentence(error)) from None
    return success(Trend(points, len(points)))


@router.get("/api/health", **answers(Health, "UNAVAILABLE"))
async def health(request: Request) -> Response:
    """Health check: the server and its store are up."""
    state = state_of(request)
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await state.read(state.store.baselines)
    except (StoreError, TimeoutError) as error:
        reason = str(error) or f"no answer within {HEALTH_SECONDS:g} s"
        log.error("the store cannot be reached: %s", reason)
        raise ApiError("UNAVAILABLE", "The store cannot be reached") from None
    return success(Health("ok", __version__, state.run_manager.under_way))


def _baseline(name: str, record: RunRecord) -> Baseline:
    return Baseline(name, record.id, record.started_at, record.target, record.status)
