"""`/api/test-cases`: create, read, list, change and delete test cases."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import DuplicateId, NotInStore, Outdated
from assay.model.test_case import (
    MAX_DESCRIPTION,
    MAX_TAG,
    MAX_TAGS,
    MAX_TEXT,
    NewTestCase,
    TestCase,
    TestCaseChanges,
)
from assay.ports import Store
from assay.server import bodies, openapi_test_cases
from assay.server.bodies import (
    Read,
    json_object,
    known_uuid,
    object_of,
    read_fields,
    received,
)
from assay.server.envelope import ApiError, invalid, success, success_of
from assay.server.state import state_of

router = APIRouter()

#: The fields that people write, in the order in which their problems are told.
WRITTEN: dict[str, Read] = {
    "input": bodies.text("Input", 1, MAX_TEXT),
    "expected_output": bodies.text("Field 'expected_output'", 1, MAX_TEXT),
    "description": bodies.optional(bodies.text("Field 'description'", 0, MAX_DESCRIPTION)),
    "tags": bodies.texts("tags", MAX_TAGS, (1, MAX_TAG)),
}
NEW: dict[str, Read] = {"id": bodies.uuid("Field 'id'"), **WRITTEN}
REQUIRED = ("input", "expected_output")
#: Passing over more test cases than that takes time.
QUICK_SKIP = 1000


@router.post("/api/test-cases", **openapi_test_cases.CREATE_TEST_CASE)
async def create(request: Request) -> Response:
    given = read_fields(await json_object(request), NEW, REQUIRED)
    state = state_of(request)
    try:
        made = await wrap_future(state.store.test_cases.add(NewTestCase(**given), state.now()))
    except DuplicateId as error:
        raise ApiError("DUPLICATE_ID", f"ID {error.id} is taken by a test case") from None
    return success_of(_json(made), 201)


@router.get("/api/test-cases", **openapi_test_cases.LIST_TEST_CASES)
async def listed(request: Request) -> Response:
    given = bodies.query(request, "limit", "skip", "tag")
    limit, skip = bodies.page(given)
    state, tag = state_of(request), given.get("tag")
    quick = tag is None and skip < QUICK_SKIP and limit <= bodies.LIMIT
    found = await state.read(lambda: _page(state.store, limit, skip, tag), quick=quick)
    return success_of(found)


@router.get("/api/test-cases/{id}", **openapi_test_cases.GET_TEST_CASE)
async def get(request: Request) -> Response:
    bodies.query(request)
    return success_of(_json(await _found(request)))


@router.put("/api/test-cases/{id}", **openapi_test_cases.UPDATE_TEST_CASE)
async def update(request: Request) -> Response:
    state = state_of(request)
    raw = await received(request)
    known = await _found(request)
    # Whoever sends back what nobody writes must not have changed it. Only `modified_at` may
    # become another until the change is made: the store compares it.
    fields = {"id": _kept("id", known.id), **WRITTEN}
    fields |= {"created_at": _kept("created_at", known.created_at), "modified_at": _time}
    given = read_fields(object_of(raw), fields)
    changes = TestCaseChanges(**{name: given[name] for name in WRITTEN if name in given})
    test_cases, as_known = state.store.test_cases, given.get("modified_at")
    try:
        changed = test_cases.change(known.id, changes, state.now(), as_known)
        return success_of(_json(await wrap_future(changed)))
    except NotInStore:  # it was deleted meanwhile
        raise not_found() from None
    except Outdated as error:
        raise _fixed("modified_at", error.modified_at) from None


@router.delete("/api/test-cases/{id}", **openapi_test_cases.DELETE_TEST_CASE)
async def delete(request: Request) -> Response:
    bodies.query(request)
    state = state_of(request)
    try:
        await wrap_future(state.store.test_cases.remove(_id(request), state.now()))
    except NotInStore:
        raise not_found() from None
    return Response(status_code=204)


@router.get("/api/test-cases/{id}/versions", **openapi_test_cases.LIST_VERSIONS)
async def versions(request: Request) -> Response:
    limit, skip = bodies.page(bodies.query(request, "limit", "skip"))
    state, identity = state_of(request), _id(request)
    try:
        found = await state.read(
            lambda: state.store.test_cases.versions(identity, limit, skip), quick=False
        )
    except NotInStore:
        raise not_found() from None
    shown, total = found
    return success({"versions": shown, "count": len(shown), "total": total})


def _page(store: Store, limit: int, skip: int, tag: str | None) -> bytes:
    """The JSON of a page."""
    page = store.test_cases.page(limit, skip, tag)
    cases = b",".join(map(_json, page.test_cases))
    counts = b',"count":%d,"total":%d}' % (len(page.test_cases), page.total)
    return b'{"test_cases":[' + cases + b"]" + counts


def not_found() -> ApiError:
    return ApiError("NOT_FOUND", "Test case not found")


async def _found(request: Request) -> TestCase:
    state, identity = state_of(request), _id(request)
    try:
        return await state.read(lambda: state.store.test_cases.get(identity))
    except NotInStore:
        raise not_found() from None


def _id(request: Request) -> str:
    """The id in the path; what is no UUID is the id of nothing."""
    found = known_uuid(request.path_params["id"])
    if found is None:
        raise not_found()
    return found


def _kept(name: str, known: str) -> Read:
    def read(value: Any) -> None:
        if known not in (value, known_uuid(value)):  # an id may be in upper case, as in a path
            raise _fixed(name, known)

    return read


def _time(value: Any) -> str:
    if not isinstance(value, str):
        raise invalid("Field 'modified_at' cannot be changed; leave it out")
    return value


def _fixed(name: str, known: str) -> ApiError:
    return invalid(f"Field '{name}' cannot be changed; it is {known}")


_encode = msgspec.json.Encoder().encode


def _json(case: TestCase) -> bytes:
    """The test case as it is shown; its version is the last field, and is not."""
    whole = _encode(case)
    return whole[: whole.rindex(b',"version":')] + b"}"
