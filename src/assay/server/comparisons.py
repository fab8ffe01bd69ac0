"""`/api/baselines`, `/api/compare` and `/api/trend`; and `/api/health`."""

from __future__ import annotations

import asyncio
import logging
from datetime import date
from functools import partial
from typing import Any, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from assay.comparison.gate import Rules
from assay.comparison.outcomes import baseline_name
from assay.errors import BaselineRefused, NotInStore, StoreError, UsageError
from assay.model.options import Gate
from assay.model.run import RunRecord
from assay.server import bodies, openapi_runs
from assay.server.bodies import json_object, parse_fields
from assay.server.envelope import ApiError, invalid, sentence, success
from assay.server.state import state_of
from assay.service import history, trends
from assay.service.baselines import set_in_store
from assay.version import __version__

log = logging.getLogger("assay.server")
router = APIRouter()
#: How long the store may take to answer before the server reports that it is not available.
HEALTH_SECONDS = 2.0
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@router.get("/api/baselines", **openapi_runs.LIST_BASELINES)
async def baselines(request: Request) -> Response:
    bodies.query(request)
    store = state_of(request).store
    found = await asyncio.to_thread(
        lambda: [_baseline(name, store.run(run_id)) for name, run_id in store.baselines().items()]
    )
    return success({"baselines": found, "count": len(found), "total": len(found)})


@router.put("/api/baselines/{name}", **openapi_runs.SET_BASELINE)
async def set_baseline(request: Request) -> Response:
    fields = {"run": bodies.text("Field 'run'", 1, 200), "accept": bodies.flag("Field 'accept'")}
    given = parse_fields(await json_object(request), fields, ("run",))
    name, state, accept = request.path_params["name"], state_of(request), given.get("accept", False)
    setting = partial(set_in_store, name, given["run"], state.store, state.settings, accept=accept)
    try:
        record = await state.scan(setting, request)
    except BaselineRefused as error:
        raise invalid(f"{sentence(error)}; send 'accept': true to set it anyway") from None
    return success(_baseline(name, record))


@router.delete("/api/baselines/{name}", **openapi_runs.REMOVE_BASELINE)
async def remove_baseline(request: Request) -> Response:
    bodies.query(request)
    store = state_of(request).store
    try:
        name = await asyncio.to_thread(baseline_name, request.path_params["name"], store)
        await asyncio.to_thread(store.remove_baseline, name)
    except NotInStore:
        raise ApiError("NOT_FOUND", "Baseline not found") from None
    return Response(status_code=204)


@router.get("/api/compare", **openapi_runs.COMPARE)
async def compare(request: Request) -> Response:
    given = bodies.query(request, "base", "candidate", "gate", "margin", "strict")
    for name in ("base", "candidate"):
        if not given.get(name):
            raise ApiError("MISSING_FIELD", f"Query parameter '{name}' is required")
    state, names = state_of(request), (given["base"], given["candidate"])
    accepted = tuple(state.settings.config.accepted)
    rules = Rules(
        _gate(given),
        _margin(given),
        _flag(given, "strict"),
        accepted=accepted,
        today=date.today(),
    )
    comparing = partial(history.compare_stored, *names, state.store, rules)
    return success((await state.scan(comparing, request)).to_dict())


@router.get("/api/trend", **openapi_runs.TREND)
async def trend(request: Request) -> Response:
    given = bodies.query(request, "suite", "target", "last")
    last = bodies.number(given, "last", trends.LAST, 1, bodies.MAX_LIMIT)
    store = state_of(request).store
    try:
        points = await asyncio.to_thread(
            trends.points_of, store, given.get("suite"), last, given.get("target")
        )
    except UsageError as error:
        raise ApiError("NOT_FOUND", sentence(error)) from None
    return success({"points": [point.to_dict() for point in points], "count": len(points)})


@router.get("/api/health", **openapi_runs.HEALTH)
async def health(request: Request) -> Response:
    bodies.query(request)
    state = state_of(request)
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await state.read(state.store.baselines)
    except (StoreError, TimeoutError) as error:
        reason = str(error) or f"no answer within {HEALTH_SECONDS:g} s"
        log.error("the store cannot be reached: %s", reason)
        raise ApiError("UNAVAILABLE", "The store cannot be reached") from None
    return success({"status": "ok", "version": __version__, "runs": state.jobs.under_way})


def _baseline(name: str, record: RunRecord) -> dict[str, Any]:
    return {
        "name": name,
        "runId": record.id,
        "startedAt": record.started_at,
        "target": record.target,
        "status": record.status,
    }


def _gate(given: dict[str, str]) -> Gate:
    known: tuple[Gate, ...] = get_args(Gate)
    for gate in known:
        if given.get("gate", "regression") == gate:
            return gate
    raise invalid(f"Query parameter 'gate' must be one of {', '.join(known)}")


def _margin(given: dict[str, str]) -> float:
    try:
        margin = float(given.get("margin", "0.02"))
    except ValueError:
        margin = -1.0
    if not 0 <= margin <= 1:
        raise invalid("Query parameter 'margin' must be a number from 0 to 1")
    return margin


def _flag(given: dict[str, str], name: str) -> bool:
    found = _FLAGS.get(given.get(name, "false"))
    if found is None:
        raise invalid(f"Query parameter '{name}' must be true or false")
    return found
