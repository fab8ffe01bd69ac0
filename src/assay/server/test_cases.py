"""`/api/test-cases`: create, read, list, change and delete test cases."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import DuplicateId, NotInStore, Outdated
from assay.model.test_case import NewTestCase, ShownTestCase, TestCase, TestCaseChanges
from assay.ports import Store
from assay.server import schemas
from assay.server.envelope import WITH_BODY, ApiError, answers, invalid, success, success_json
from assay.server.requests import Route
from assay.server.responses import TestCasePage, VersionPage
from assay.server.schemas import LIMIT, CaseId, uuid_or_none
from assay.server.state import state_of

router = APIRouter(route_class=Route)

#: The fields that an update writes.
WRITABLE = ("input", "expected_output", "description", "tags")
#: Up to here a page is read so quickly that it needs no thread.
QUICK_SKIP = 1000
_PATH = "/api/test-cases"
_ONE = f"{_PATH}/{{id}}"
_LINKS = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/data/id"}}
    for name in ("get_test_case", "update_test_case", "delete_test_case", "list_versions")
}


@router.post(
    _PATH,
    **answers(
        ShownTestCase,
        *("MISSING_FIELD", "INVALID_LENGTH", "DUPLICATE_ID", *WITH_BODY),
        status=201,
        links=_LINKS,
    ),
)
async def create_test_case(body: schemas.NewTestCase, request: Request) -> Response:
    """Create a new test case."""
    state = state_of(request)
    texts = body.input, body.expected_output, body.description
    new = NewTestCase(*texts, tuple(body.tags), body.id)
    try:
        made = await wrap_future(state.store.test_cases.add(new, state.now()))
    except DuplicateId as error:
        raise ApiError("DUPLICATE_ID", f"ID {error.id} is taken by a test case") from None
    return success_json(_json(made), 201)


@router.get(_PATH, **answers(TestCasePage))
async def list_test_cases(
    query: Annotated[schemas.TestCaseQuery, Query()], request: Request
) -> Response:
    """Retrieve all test cases, the newest last."""
    state = state_of(request)
    quick = query.tag is None and query.skip < QUICK_SKIP and query.limit <= LIMIT
    return success_json(await state.read(lambda: _page_json(state.store, query), quick=quick))


async def requested_case(case_id: CaseId, request: Request) -> TestCase:
    """The test case in the path."""
    state, found = state_of(request), _found_id(case_id)
    try:
        return await state.read(lambda: state.store.test_cases.get(found))
    except NotInStore:
        raise not_found() from None


async def case_to_update(
    case: Annotated[TestCase, Depends(requested_case)], request: Request
) -> TestCase:
    """The same; another `id` in the body is its first problem."""
    body = await request.json()
    if isinstance(body, dict) and "id" in body:
        _check_unchanged("id", body["id"], case.id)
    return case


@router.get(_ONE, **answers(ShownTestCase, "NOT_FOUND"))
async def get_test_case(case_id: CaseId, request: Request) -> Response:
    """Retrieve a specific test case by ID."""
    return success_json(_json(await requested_case(case_id, request)))


@router.put(_ONE, **answers(ShownTestCase, "INVALID_LENGTH", "NOT_FOUND", *WITH_BODY))
async def update_test_case(
    body: schemas.TestCaseChanges,
    current: Annotated[TestCase, Depends(case_to_update)],
    request: Request,
) -> Response:
    """Update an existing test case (all fields optional)."""
    state, given = state_of(request), body.model_dump(exclude_unset=True)
    if "created_at" in given:
        _check_unchanged("created_at", given["created_at"], current.created_at)
    if "tags" in given:
        given["tags"] = tuple(given["tags"])
    changes = TestCaseChanges(**{name: given[name] for name in WRITABLE if name in given})
    try:  # `modified_at` can still change until the update is written, so the store compares it
        changed = state.store.test_cases.change(
            current.id, changes, state.now(), given.get("modified_at")
        )
        return success_json(_json(await wrap_future(changed)))
    except NotInStore:  # it has just been deleted
        raise not_found() from None
    except Outdated as error:
        raise _read_only("modified_at", error.modified_at) from None


@router.delete(_ONE, **answers(None, "NOT_FOUND", status=204))
async def delete_test_case(case_id: CaseId, request: Request) -> Response:
    """Delete a test case; its versions and results stay."""
    state = state_of(request)
    try:
        await wrap_future(state.store.test_cases.remove(_found_id(case_id), state.now()))
    except NotInStore:
        raise not_found() from None
    return Response(status_code=204)


@router.get(f"{_ONE}/versions", **answers(VersionPage, "NOT_FOUND"))
async def list_versions(
    case_id: CaseId, query: Annotated[schemas.Page, Query()], request: Request
) -> Response:
    """Every version of a test case, the first one first, also of a deleted one."""
    state, found_id = state_of(request), _found_id(case_id)
    try:
        found, total = await state.read(
            lambda: state.store.test_cases.versions(found_id, query.limit, query.skip), quick=False
        )
    except NotInStore:
        raise not_found() from None
    return success(VersionPage(found, len(found), total))


def _page_json(store: Store, query: schemas.TestCaseQuery) -> bytes:
    page = store.test_cases.page(query.limit, query.skip, query.tag)
    cases = b",".join(map(_json, page.test_cases))
    counts = b',"count":%d,"total":%d}' % (len(page.test_cases), page.total)
    return b'{"test_cases":[' + cases + b"]" + counts


def not_found(message: str = "Test case not found") -> ApiError:
    return ApiError("NOT_FOUND", message)


def _found_id(given: str) -> str:
    """The id in the path; if it is not a UUID, there is no such test case."""
    found = uuid_or_none(given)
    if found is None:
        raise not_found()
    return found


def _check_unchanged(name: str, given: Any, current: str) -> None:
    """Refuse another value of a read-only field; an id may be in upper case."""
    if current not in (given, uuid_or_none(given)):
        raise _read_only(name, current)


def _read_only(name: str, current: str) -> ApiError:
    return invalid(f"Field '{name}' cannot be changed; it is {current}")


_encode = msgspec.json.Encoder().encode


def _json(case: TestCase) -> bytes:
    """The JSON of a test case without its last field, `version`, which only versions show."""
    encoded = _encode(case)
    return encoded[: encoded.rindex(b',"version":')] + b"}"
