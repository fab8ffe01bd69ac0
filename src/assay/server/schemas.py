"""Parameters and bodies of requests: FastAPI validates them, and generates their documentation."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from assay.model.options import Gate
from assay.model.test_case import MAX_DESCRIPTION, MAX_TAG, MAX_TAGS, MAX_TEXT, TIME
from assay.service.trends import LAST

#: The type of an error of ours; its message continues after the name of the field.
OWN = "own"
#: The largest `limit` of a page, and the default.
MAX_LIMIT, LIMIT = 1000, 100
MAX_IDS, MAX_PATHS, MAX_EVALUATORS = 20_000, 1000, 1000
#: The longest path, and the longest name of a target, a run and a person, in code points.
MAX_PATH, MAX_TARGET, MAX_RUN, MAX_NAME = 1000, 500, 200, 100
MAX_TARGETS = 16
#: Matches text that every store can keep: without NUL. Lone surrogates are not valid text anyway.
STORABLE = "^[^\\u0000]*$"
CASE_ID = "550e8400-e29b-41d4-a716-446655440001"
RUN_ID = "0198c0de-1111-7000-8000-000000000001"
#: `int` refuses to parse many more digits than these.
_NUMBER = re.compile(r"-?[0-9]{1,4000}")
#: Larger than any count or position, and still fits a 64-bit column.
_HUGE = 2**62
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def uuid_or_none(value: Any) -> str | None:
    """The UUID in lower case; None when `value` is not one."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _UUID.fullmatch(lower) else None


def _uuid(value: Any) -> str:
    found = uuid_or_none(value)
    if found is None:
        raise PydanticCustomError(OWN, f"must be a UUID, such as {CASE_ID}")
    return found


def _digits(value: Any) -> Any:
    """An integer; other text is left to pydantic as what no integer looks like."""
    return min(int(value), _HUGE) if _NUMBER.fullmatch(str(value)) else ""


def _encodable(value: Any) -> Any:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "has half of a surrogate pair, which cannot be stored"
        raise PydanticCustomError(OWN, message) from None
    return value


def _different(ids: list[str]) -> list[str]:
    if len(set(ids)) != len(ids):
        raise PydanticCustomError(OWN, "names one of them twice")
    return ids


#: The default of a field that may be left out, but not be null.
OMITTED: Any = Field(default_factory=lambda: None)
UUID_SCHEMA = WithJsonSchema({"type": "string", "format": "uuid"})
Uuid = Annotated[str, BeforeValidator(_uuid), UUID_SCHEMA]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=STORABLE)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION, pattern=STORABLE)]
Tag = Annotated[str, Field(min_length=1, max_length=MAX_TAG, pattern=STORABLE)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS)]
#: A field that may only be sent back unchanged. Without the format of a time, which adds nothing
#: to the pattern: generators rarely satisfy both.
_SENT_BACK = Annotated[Any, WithJsonSchema({"type": "string", "pattern": TIME})]

Whole = BeforeValidator(_digits)
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Max results."), Whole]
Storable = Annotated[str, Field(pattern=STORABLE)]
RunName = Annotated[
    str,
    Field(
        min_length=1,
        pattern=STORABLE,
        description="A run: its id or the start of it, the name of a baseline, or `latest`.",
        examples=["latest"],
    ),
]
#: Not validated here: without such a resource, the response is 404.
_ID: dict[str, Any] = {"alias": "id", "json_schema_extra": {"format": "uuid"}}
CaseId = Annotated[str, Path(**_ID, description="UUID of test case.", examples=[CASE_ID])]
RunId = Annotated[str, Path(**_ID, description="The id of a run.", examples=[RUN_ID])]


class StrictModel(BaseModel):
    """An object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Page(StrictModel):
    """The query parameters of a list."""

    limit: Limit = LIMIT
    skip: Annotated[int, Field(ge=0, description="Number to skip."), Whole] = 0


class TestCaseQuery(Page):
    __test__ = False  # or pytest would collect the class for its name

    tag: Annotated[
        Storable,
        Field(
            description="Filter by tag: any part of a tag, ignoring case; empty means all.",
            examples=["geography"],
        ),
    ] = OMITTED


class RunQuery(StrictModel):
    limit: Limit = LIMIT
    before: Annotated[Uuid, Field(description="Only runs before this one: `next` of a page.")] = (
        OMITTED
    )


class GroupQuery(Page):
    """A page of the cases on which the targets differ."""


class CompareQuery(StrictModel):
    base: RunName
    candidate: RunName
    gate: Annotated[Gate, Field(description="What fails the comparison.")] = "regression"
    margin: Annotated[
        float,
        Field(ge=0, le=1, description="The difference in pass rates that does not matter."),
    ] = 0.02
    strict: Annotated[
        bool,
        Field(description="Also fail if the comparison is inconclusive."),
        BeforeValidator(_FLAGS.get),
    ] = False


class TrendQuery(StrictModel):
    suite: Annotated[Storable, Field(description="Only this suite, by its file or its name.")] = (
        OMITTED
    )
    target: Annotated[Storable, Field(description="Only runs of this target, by its name.")] = (
        OMITTED
    )
    last: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="How many runs."), Whole] = LAST


class Body(StrictModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True)


class Empty(Body):
    """No fields."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})


class NewTestCase(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "input": "What is the capital of France?",
                    "expected_output": "Paris",
                    "description": "Basic geography question",
                    "tags": ["geography", "basic"],
                }
            ]
        }
    )

    id: Uuid = OMITTED
    input: Text
    expected_output: Text
    description: Description | None = None
    tags: Tags = Field([])


class TestCaseChanges(Body):
    """What is left out stays. `id`, `created_at` and `modified_at` may only be sent back unchanged.

    If the request includes `modified_at` and it is out of date, the update is rejected.
    """

    __test__ = False
    model_config = ConfigDict(json_schema_extra={"examples": [{"input": "Updated input text"}]})

    id: Annotated[Any, UUID_SCHEMA] = OMITTED
    input: Text = OMITTED
    expected_output: Text = OMITTED
    description: Description | None = OMITTED
    tags: Tags = OMITTED
    created_at: _SENT_BACK = OMITTED
    modified_at: Annotated[str, Field(json_schema_extra={"pattern": TIME})] = OMITTED


class NewRun(Body):
    """Which cases to run: test cases by id or by tag, or suites by path. And how."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name]} for name in ("test_cases", "tag", "suites")],
            "examples": [{"tag": "geography", "target": "agent", "options": {"repeat": 3}}],
        }
    )

    test_cases: Annotated[
        list[Uuid],
        Field(min_length=1, max_length=MAX_IDS, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_different),
    ] = OMITTED
    tag: Tag = OMITTED
    suites: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_PATH, pattern=STORABLE)]],
        Field(min_length=1, max_length=MAX_PATHS),
    ] = OMITTED
    target: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_TARGET,
            pattern=STORABLE,
            description="The name of a target in the server's configuration; others are refused.",
        ),
    ] = OMITTED
    evaluators: Annotated[
        list[Any], Field(max_length=MAX_EVALUATORS), AfterValidator(_encodable)
    ] = OMITTED
    options: Annotated[dict[str, Any], AfterValidator(_encodable)] = OMITTED


TargetName = Annotated[str, Field(min_length=1, max_length=MAX_TARGET, pattern=STORABLE)]


class NewGroup(NewRun):
    """Which cases to run with several targets: a run for each."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name]} for name in ("test_cases", "tag", "suites")],
            "examples": [{"tag": "geography", "target": ["gpt", "claude"]}],
        }
    )

    target: Annotated[  # type: ignore[assignment]  # the name of one in a run
        list[TargetName],
        Field(
            min_length=1,
            max_length=MAX_TARGETS,
            json_schema_extra={"uniqueItems": True},
            description="The names of targets in the server's configuration.",
        ),
        AfterValidator(_different),
    ]


Author = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=STORABLE)]
Named = Annotated[str, Field(max_length=MAX_TARGET, pattern=STORABLE)]
Repeat = Annotated[int, Field(ge=0, le=MAX_LIMIT)]


class NewLabel(Body):
    """A person's verdict on an answer; `evaluator` and `criterion` say about what."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"passed": True, "author": "ann", "evaluator": "polite"}]}
    )

    passed: bool
    author: Author
    evaluator: Named = ""
    criterion: Named = ""
    repeat: Repeat = 0


class LabelQuery(StrictModel):
    author: Author
    evaluator: Named = ""
    criterion: Named = ""
    repeat: Annotated[Repeat, Whole] = 0


class NewBaseline(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"run": "latest"}]})

    run: Annotated[str, Field(min_length=1, max_length=MAX_RUN, pattern=STORABLE)]
    accept: bool = False
