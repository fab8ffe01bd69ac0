"""`/api/runs/{id}/cases`: the cases of a run, and one of them with all its trials."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import NotInStore
from assay.server.envelope import ApiError, answers, success
from assay.server.requests import Route
from assay.server.responses import CaseRows
from assay.server.result_pages import CaseListQuery
from assay.server.runs import requested_run
from assay.server.schemas import RunId
from assay.server.state import state_of
from assay.service.cases import CaseView, case_at

router = APIRouter(route_class=Route)
_CASES = "/api/runs/{id}/cases"
_POSITION = re.compile("[0-9]{1,9}")
#: Not validated here: without such a case, the response is 404.
Position = Annotated[
    str,
    Path(
        description="Which case of the run's suites, in their order, from 0.",
        examples=["0"],
        json_schema_extra={"pattern": "^[0-9]{1,9}$"},
    ),
]


@router.get(_CASES, **answers(CaseRows, "NOT_FOUND"))
async def list_cases(
    run_id: RunId, query: Annotated[CaseListQuery, Query()], request: Request
) -> Response:
    """The cases of a run, filtered and sorted, with the counts of all that match."""
    state, record = state_of(request), await requested_run(run_id, request)
    page = await state.scan(partial(query.page, state.store, record), request)
    return success(CaseRows(page.rows, page.facets, len(page.rows), page.total, page.next))


@router.get(_CASES + "/{position}", **answers(CaseView, "NOT_FOUND"))
async def get_case(run_id: RunId, position: Position, request: Request) -> Response:
    """One case of a run: what was asked and expected, and every trial."""
    state, record = state_of(request), await requested_run(run_id, request)
    try:
        if _POSITION.fullmatch(position):
            context = partial(case_at, state.store, record, int(position))
            return success(await state.read(context, quick=False))
    except NotInStore:
        pass
    raise ApiError("NOT_FOUND", "Case not found")
