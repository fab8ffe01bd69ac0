"""`/api/runs/{id}/cases` and `/labels`: the cases of a run, one with all its trials, labels."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import NotInStore
from assay.model.case_view import CaseView
from assay.model.label import AnswerLabel
from assay.model.run import RunRecord
from assay.ports import Store
from assay.server import schemas
from assay.server.envelope import WITH_BODY, ApiError, answers, success
from assay.server.requests import Route
from assay.server.responses import CaseRows, LabelList
from assay.server.result_pages import CaseListQuery
from assay.server.runs import Requested, requested_run
from assay.server.schemas import RunId
from assay.server.state import state_of
from assay.service import answer_labels
from assay.service.cases import case_at

T = TypeVar("T")
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
    return success(await _with_case(run_id, position, request, case_at))


@router.get("/api/runs/{id}/labels", **answers(LabelList, "NOT_FOUND"))
async def list_labels(run: Requested, request: Request) -> Response:
    """What people say of the answers of a run."""
    store = state_of(request).store
    found = await asyncio.to_thread(store.labels.of_run, run.id)
    return success(LabelList(found, len(found)))


@router.put(
    _CASES + "/{position}/label",
    **answers(AnswerLabel, "MISSING_FIELD", "INVALID_LENGTH", "NOT_FOUND", *WITH_BODY),
)
async def put_label(
    body: schemas.NewLabel, run_id: RunId, position: Position, request: Request
) -> Response:
    """Label an answer; an author has one label of a kind for each."""
    given, now = answer_labels.Labelled(**body.model_dump()), state_of(request).now()
    putting = partial(answer_labels.put_label, given=given, now=now)
    return success(await _with_case(run_id, position, request, putting))


@router.delete(
    _CASES + "/{position}/label",
    **answers(None, "MISSING_FIELD", "INVALID_LENGTH", "NOT_FOUND", status=204),
)
async def remove_label(
    run_id: RunId,
    position: Position,
    query: Annotated[schemas.LabelQuery, Query()],
    request: Request,
) -> Response:
    """Remove the label of an author."""
    given = answer_labels.Labelled(passed=False, **query.model_dump())
    await _with_case(run_id, position, request, partial(answer_labels.remove_label, given=given))
    return Response(status_code=204)


async def _with_case(
    run_id: str, position: str, request: Request, act: Callable[[Store, RunRecord, int], T]
) -> T:
    """Call a function about a case in a thread."""
    state, record = state_of(request), await requested_run(run_id, request)
    try:
        if _POSITION.fullmatch(position):
            return await asyncio.to_thread(act, state.store, record, int(position))
    except NotInStore as error:
        raise ApiError("NOT_FOUND", f"{error.kind.capitalize()} not found") from None
    raise ApiError("NOT_FOUND", "Case not found")
