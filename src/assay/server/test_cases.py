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
    Parser,
    json_object,
    parse_fields,
    parse_object,
    read_body,
    uuid_or_none,
)
from assay.server.envelope import ApiError, invalid, success, success_json
from assay.server.state import state_of

router = APIRouter()

#: The fields that clients write, in the order in which their problems are reported.
WRITABLE: dict[str, Parser] = {
    "input": bodies.text("Input", 1, MAX_TEXT),
    "expected_output": bodies.text("Field 'expected_output'", 1, MAX_TEXT),
    "description": bodies.optional(bodies.text("Field 'description'", 0, MAX_DESCRIPTION)),
    "tags": bodies.texts("tags", MAX_TAGS, (1, MAX_TAG)),
}
NEW: dict[str, Parser] = {"id": bodies.uuid("Field 'id'"), **WRITABLE}
REQUIRED = ("input", "expected_output")
#: Up to here a page is read so quickly that it needs no thread.
QUICK_SKIP = 1000


@router.post("/api/test-cases", **openapi_test_cases.CREATE_TEST_CASE)
async def create(request: Request) -> Response:
    given = parse_fields(await json_object(request), NEW, REQUIRED)
    state = state_of(request)
    try:
        made = await wrap_future(state.store.test_cases.add(NewTestCase(**given), state.now()))
    except DuplicateId as error:
        raise ApiError("DUPLICATE_ID", f"ID {error.id} is taken by a test case") from None
    return success_json(_json(made), 201)


@router.get("/api/test-cases", **openapi_test_cases.LIST_TEST_CASES)
async def list_test_cases(request: Request) -> Response:
    given = bodies.query(request, "limit", "skip", "tag")
    limit, skip = bodies.page(given)
    state, tag = state_of(request), given.get("tag")
    quick = tag is None and skip < QUICK_SKIP and limit <= bodies.LIMIT
    return success_json(
        await state.read(lambda: _page_json(state.store, limit, skip, tag), quick=quick)
    )


@router.get("/api/test-cases/{id}", **openapi_test_cases.GET_TEST_CASE)
async def get(request: Request) -> Response:
    bodies.query(request)
    return success_json(_json(await _requested_case(request)))


@router.put("/api/test-cases/{id}", **openapi_test_cases.UPDATE_TEST_CASE)
async def update(request: Request) -> Response:
    state = state_of(request)
    raw = await read_body(request)
    current = await _requested_case(request)
    # Read-only fields may be sent back, but only unchanged. `modified_at` can still change until
    # the update is written, so the store compares it.
    fields = {
        "id": _unchanged("id", current.id),
        **WRITABLE,
        "created_at": _unchanged("created_at", current.created_at),
        "modified_at": _timestamp,
    }
    given = parse_fields(parse_object(raw), fields)
    changes = TestCaseChanges(**{name: given[name] for name in WRITABLE if name in given})
    test_cases, known = state.store.test_cases, given.get("modified_at")
    try:
        changed = test_cases.change(current.id, changes, state.now(), known)
        return success_json(_json(await wrap_future(changed)))
    except NotInStore:  # it was deleted meanwhile
        raise not_found() from None
    except Outdated as error:
        raise _read_only("modified_at", error.modified_at) from None


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
    state, case_id = state_of(request), _id(request)
    try:
        found, total = await state.read(
            lambda: state.store.test_cases.versions(case_id, limit, skip), quick=False
        )
    except NotInStore:
        raise not_found() from None
    return success({"versions": found, "count": len(found), "total": total})


def _page_json(store: Store, limit: int, skip: int, tag: str | None) -> bytes:
    page = store.test_cases.page(limit, skip, tag)
    cases = b",".join(map(_json, page.test_cases))
    counts = b',"count":%d,"total":%d}' % (len(page.test_cases), page.total)
    return b'{"test_cases":[' + cases + b"]" + counts


def not_found() -> ApiError:
    return ApiError("NOT_FOUND", "Test case not found")


async def _requested_case(request: Request) -> TestCase:
    state, case_id = state_of(request), _id(request)
    try:
        return await state.read(lambda: state.store.test_cases.get(case_id))
    except NotInStore:
        raise not_found() from None


def _id(request: Request) -> str:
    """The id in the path; if it is not a UUID, there is no such test case."""
    found = uuid_or_none(request.path_params["id"])
    if found is None:
        raise not_found()
    return found


def _unchanged(name: str, current: str) -> Parser:
    """Accepts only the current value of a read-only field."""

    def parse(value: Any) -> None:
        if current not in (value, uuid_or_none(value)):  # an id may be in upper case
            raise _read_only(name, current)

    return parse


def _timestamp(value: Any) -> str:
    if not isinstance(value, str):
        raise invalid("Field 'modified_at' cannot be changed; leave it out")
    return value


def _read_only(name: str, current: str) -> ApiError:
    return invalid(f"Field '{name}' cannot be changed; it is {current}")


_encode = msgspec.json.Encoder().encode


def _json(case: TestCase) -> bytes:
    """The JSON of a test case without its last field, `version`, which only versions show."""
    encoded = _encode(case)
    return encoded[: encoded.rindex(b',"version":')] + b"}"
