"""The OpenAPI descriptions of the routes of test cases."""

from __future__ import annotations

from typing import Any

from assay.model.test_case import MAX_DESCRIPTION, MAX_TAG, MAX_TAGS, MAX_TEXT
from assay.server.openapi_operation import (
    COUNT,
    LIMIT,
    SKIP,
    STORABLE,
    UUID,
    Schema,
    nullable,
    operation,
    page,
    parameter,
    record,
    ref,
    response,
)

TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT, "pattern": STORABLE}
TIME: Schema = {
    "type": "string",
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$",
}
_TAG: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_TAG, "pattern": STORABLE}
_WRITTEN: dict[str, Schema] = {
    "input": TEXT,
    "expected_output": TEXT,
    "description": nullable({"type": "string", "maxLength": MAX_DESCRIPTION, "pattern": STORABLE}),
    "tags": {"type": "array", "items": _TAG, "maxItems": MAX_TAGS},
}
_STAMPS = {"created_at": TIME, "modified_at": TIME}
_TEST_CASE: dict[str, Schema] = {"id": UUID, **_WRITTEN, **_STAMPS}

#: Without the format, which adds nothing to the pattern: generators rarely satisfy both.
_SENT_BACK: Schema = {"type": "string", "pattern": TIME["pattern"]}
_CHANGES = _TEST_CASE | dict.fromkeys(_STAMPS, _SENT_BACK)

SCHEMAS: dict[str, Schema] = {
    "TestCase": record(_TEST_CASE),
    "TestCaseVersion": record({**_TEST_CASE, "version": {"type": "integer", "minimum": 1}}),
    "NewTestCase": record({"id": UUID, **_WRITTEN}, "id", "description", "tags"),
    "TestCaseChanges": record(
        _CHANGES,
        *_CHANGES,
        description="What is left out stays. `id`, `created_at` and `modified_at` may only be sent"
        " back as they are; whoever sends `modified_at` changes what he has read, or nothing.",
    ),
}

EXAMPLE: dict[str, Any] = {
    "id": "550e8400-e29b-41d4-a716-446655440001",
    "input": "What is the capital of France?",
    "expected_output": "Paris",
    "description": "Basic geography question",
    "tags": ["geography", "basic"],
    "created_at": "2026-01-15T10:30:00.000000Z",
    "modified_at": "2026-01-15T10:30:00.000000Z",
}
_NEW_EXAMPLE = {name: EXAMPLE[name] for name in _WRITTEN}
_ID = parameter("id", "path", UUID, "UUID of test case.", example=EXAMPLE["id"])
_TAG_PARAMETER = parameter(
    "tag",
    "query",
    {"type": "string", "pattern": STORABLE},
    "Filter by tag: a part of one, in upper or lower case; empty: any tag.",
    example="geography",
)


_LINKS = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/data/id"}}
    for name in ("get_test_case", "update_test_case", "delete_test_case", "list_versions")
}

CREATE_TEST_CASE = operation(
    "create_test_case",
    "Create a new test case",
    response(201, "The test case", ref("TestCase"), EXAMPLE, _LINKS),
    body={"schema": ref("NewTestCase"), "example": _NEW_EXAMPLE},
    errors=("MISSING_FIELD", "INVALID_LENGTH", "DUPLICATE_ID"),
)
LIST_TEST_CASES = operation(
    "list_test_cases",
    "Retrieve all test cases, the newest last",
    page("test_cases", "TestCase", EXAMPLE, total=(COUNT, 42)),
    parameters=(LIMIT, SKIP, _TAG_PARAMETER),
)
GET_TEST_CASE = operation(
    "get_test_case",
    "Retrieve a specific test case by ID",
    response(200, "The test case", ref("TestCase"), EXAMPLE),
    parameters=(_ID,),
    errors=("NOT_FOUND",),
)
UPDATE_TEST_CASE = operation(
    "update_test_case",
    "Update an existing test case (all fields optional)",
    response(200, "The test case as it is now", ref("TestCase"), EXAMPLE),
    parameters=(_ID,),
    body={"schema": ref("TestCaseChanges"), "example": {"input": "Updated input text"}},
    errors=("INVALID_LENGTH", "NOT_FOUND"),
)
DELETE_TEST_CASE = operation(
    "delete_test_case",
    "Delete a test case; its versions and results stay",
    {"204": {"description": "It is deleted"}},
    parameters=(_ID,),
    errors=("NOT_FOUND",),
)
LIST_VERSIONS = operation(
    "list_versions",
    "Every version of a test case, the first one first, also of a deleted one",
    page("versions", "TestCaseVersion", EXAMPLE | {"version": 1}, total=(COUNT, 1)),
    parameters=(_ID, LIMIT, SKIP),
    errors=("NOT_FOUND",),
)
