"""The OpenAPI descriptions of the routes of runs, baselines, comparisons and the server itself."""

from __future__ import annotations

from typing import Any, get_args

from assay.comparison.outcomes import MAX_NAME, NAME_PATTERN
from assay.model.comparison import GateVerdict
from assay.model.options import Gate, RunOptions
from assay.model.result import Outcome
from assay.model.run import RunStatus
from assay.model.spelling import plainly
from assay.model.test_case import MAX_TAG
from assay.server.feed import ServerSentEvent
from assay.server.openapi_operation import (
    COUNT,
    LIMIT,
    SKIP,
    STORABLE,
    UUID,
    Schema,
    bounded,
    nullable,
    operation,
    page,
    parameter,
    record,
    ref,
    response,
)
from assay.server.openapi_results import (
    ANY,
    COMPARISON,
    NUMBER,
    POINT,
    RESULT,
    RUN_ID,
    STARTED,
    TEXT,
    TEXTS,
)
from assay.server.run_requests import (
    MAX_EVALUATORS,
    MAX_IDS,
    MAX_PATH,
    MAX_PATHS,
    MAX_REPEATS,
    MAX_TARGET,
    MAX_WORKERS,
    OPTIONS,
)

_NONEMPTY: Schema = {"type": "string", "minLength": 1, "pattern": STORABLE}
_STORABLE: Schema = {"type": "string", "pattern": STORABLE}
_STATUS: Schema = {"type": "string", "enum": list(get_args(RunStatus))}
_OUTCOME: Schema = {"type": "string", "enum": list(get_args(Outcome))}
_COUNTS = {
    name: nullable(COUNT) for name in ("totalCases", "passed", "failed", "errored", "skipped")
}
_LISTED_RUN: dict[str, Schema] = {
    "runId": TEXT,
    "startedAt": TEXT,
    "finishedAt": nullable(TEXT),
    "status": _STATUS,
    "target": TEXT,
    "suites": TEXTS,
    **_COUNTS,
    "verdict": nullable({"type": "string", "enum": list(get_args(GateVerdict))}),
    "exitCode": nullable({"type": "integer"}),
    "baselines": TEXTS,
}
_PROGRESS = record(
    {
        "runId": TEXT,
        "planned": nullable(COUNT),
        **dict.fromkeys(("done", "passed", "failed", "errored", "skipped"), COUNT),
        "costUsd": NUMBER,
    }
)
_BASELINE = record(
    {"name": TEXT, "runId": TEXT, "startedAt": TEXT, "target": TEXT, "status": _STATUS}
)


def _options() -> Schema:
    """The schema of the options of a run, made from the fields of RunOptions."""
    with plainly():
        known: Schema = bounded(RunOptions.model_json_schema()["properties"])
    properties = {name: known[name] for name in OPTIONS}
    for name, most in (("workers", MAX_WORKERS), ("repeat", MAX_REPEATS)):
        properties[name]["anyOf"][0]["maximum"] = most
    for name in ("judge", "baseline"):
        properties[name]["anyOf"][0]["pattern"] = STORABLE
    decided = {"properties": {"stop_when": {"const": "decided"}}, "required": ["stop_when"]}
    compared = {"properties": {"baseline": TEXT}, "required": ["baseline"]}
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "if": decided,
        "then": compared,
    }


_NEW_RUN = {
    "type": "object",
    "properties": {
        "test_cases": {
            "type": "array",
            "items": UUID,
            "uniqueItems": True,
            "minItems": 1,
            "maxItems": MAX_IDS,
        },
        "tag": {"type": "string", "minLength": 1, "maxLength": MAX_TAG, "pattern": STORABLE},
        "suites": {
            "type": "array",
            "items": _NONEMPTY | {"maxLength": MAX_PATH},
            "minItems": 1,
            "maxItems": MAX_PATHS,
        },
        "target": _NONEMPTY | {"maxLength": MAX_TARGET},
        "evaluators": {
            "type": "array",
            "items": ref("GivenEvaluator"),
            "maxItems": MAX_EVALUATORS,
        },
        "options": ref("RunOptions"),
    },
    "oneOf": [{"required": [name]} for name in ("test_cases", "tag", "suites")],
    "additionalProperties": False,
}

SCHEMAS: dict[str, Schema] = {
    "ListedRun": record(_LISTED_RUN),
    "Run": record(
        {
            **_LISTED_RUN,
            "options": ANY,
            "environment": ANY,
            "summary": nullable(ANY),
            "reasons": TEXTS,
            "notes": TEXTS,
            "progress": nullable(ref("Progress")),
        }
    ),
    "Progress": _PROGRESS,
    "NewRun": _NEW_RUN,
    "RunOptions": _options(),
    "Baseline": _BASELINE,
}

_LISTED_EXAMPLE: dict[str, Any] = {
    "runId": RUN_ID,
    "startedAt": STARTED,
    "finishedAt": "2026-01-15T10:30:08.500Z",
    "status": "finished",
    "target": "agent",
    "suites": ["store:"],
    "totalCases": 2,
    "passed": 1,
    "failed": 1,
    "errored": 0,
    "skipped": 0,
    "verdict": "failed",
    "exitCode": 1,
    "baselines": ["main"],
}
_FINISHED_EXAMPLE = _LISTED_EXAMPLE | {
    "options": {"target": "agent"},
    "environment": {"assay": "0.1.0", "door": "serve"},
    "summary": {"totalCases": 2, "passed": 1, "failed": 1, "coverage": 1.0},
    "reasons": ["1 case failed"],
    "notes": [],
    "progress": None,
}
_RUNNING_EXAMPLE = _FINISHED_EXAMPLE | {
    **dict.fromkeys(("finishedAt", "verdict", "exitCode", "summary", *_COUNTS)),
    "status": "running",
    "reasons": [],
    "progress": {
        "runId": RUN_ID,
        "planned": 2,
        **dict.fromkeys(("done", "passed", "failed", "errored", "skipped"), 0),
        "costUsd": 0.0,
    },
}
_BASELINE_EXAMPLE = {
    "name": "main",
    "runId": RUN_ID,
    "startedAt": STARTED,
    "target": "agent",
    "status": "finished",
}
_EVENTS = b"".join(
    event.encoded()
    for event in (
        ServerSentEvent(
            "started", "feed-1", {"run_id": RUN_ID, "target": "agent", "planned": 2, "done": 0}
        ),
        ServerSentEvent("finished", "feed-2", {"status": "finished"}),
    )
).decode()
_ID = parameter("id", "path", UUID, "The id of a run.", example=RUN_ID)
_NAME = parameter("name", "path", TEXT, "The name of a baseline.", example="main")
#: No pattern can express that a name must be printable.
_NEW_NAME = parameter(
    "name",
    "path",
    {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": NAME_PATTERN},
    "The name of a baseline: printable characters, and nothing that means something else.",
    example="main",
)
_LINKS = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/data/runId"}}
    for name in ("get_run", "list_results", "cancel_run", "resume_run")
}

START_RUN = operation(
    "start_run",
    "Start a run of test cases, by id or by tag, or of suites, by path below the served root",
    response(202, "The run, which is recorded and under way", ref("Run"), _RUNNING_EXAMPLE, _LINKS),
    body={
        "schema": ref("NewRun"),
        "example": {"tag": "geography", "target": "agent", "options": {"repeat": 3}},
    },
    errors=("MISSING_FIELD", "INVALID_LENGTH"),
)
LIST_RUNS = operation(
    "list_runs",
    "The runs, the newest first",
    page("runs", "ListedRun", _LISTED_EXAMPLE, next=(nullable(TEXT), None)),
    parameters=(
        LIMIT,
        parameter("before", "query", UUID, "Only runs before this one: `next` of a page."),
    ),
)
GET_RUN = operation(
    "get_run",
    "One run: how far it is, or what came of it",
    response(200, "The run", ref("Run"), _FINISHED_EXAMPLE),
    parameters=(_ID,),
    errors=("NOT_FOUND",),
)
LIST_RESULTS = operation(
    "list_results",
    "The results of a run, in the order of its cases",
    page("results", "Result", RESULT, total=(COUNT, 2), next=(nullable(COUNT), None)),
    parameters=(
        _ID,
        LIMIT,
        SKIP,
        parameter("outcome", "query", _OUTCOME, "Only results with this outcome."),
        parameter("q", "query", _STORABLE, "Only results with this text: id, answer or reason."),
        parameter(
            *("after", "query", {"type": "integer", "minimum": 0}),
            "Only results after this position: `next` of a page, which is faster than `skip`.",
        ),
    ),
    errors=("NOT_FOUND",),
)
FOLLOW_RUN = operation(
    "follow_run",
    "The events of a run while it goes on, as server-sent events",
    {
        "200": {
            "description": "`progress`, `started`, `trial` and `notice`, `finished` at the end",
            "content": {"text/event-stream": {"schema": TEXT, "example": _EVENTS}},
        }
    },
    parameters=(
        _ID,
        parameter(
            "Last-Event-ID", "header", TEXT, "The `id` of the last event that the client has seen."
        ),
    ),
    errors=("NOT_FOUND",),
)
CANCEL_RUN = operation(
    "cancel_run",
    "Stop a run: trials in flight may finish; a second time they may not",
    response(202, "The run, which is stopping", ref("Run"), _RUNNING_EXAMPLE),
    parameters=(_ID,),
    body={"schema": record({}), "example": {}},
    errors=("NOT_FOUND",),
)
RESUME_RUN = operation(
    "resume_run",
    "Resume a run of a server that was cancelled or failed: only what is missing is asked",
    response(202, "The run, which is under way again", ref("Run"), _RUNNING_EXAMPLE),
    parameters=(_ID,),
    body={"schema": record({}), "example": {}},
    errors=("NOT_FOUND",),
)
LIST_BASELINES = operation(
    "list_baselines",
    "The runs that have a name to compare others with",
    response(
        200,
        "All baselines",
        record(
            {
                "baselines": {"type": "array", "items": ref("Baseline")},
                "count": COUNT,
                "total": COUNT,
            }
        ),
        {"baselines": [_BASELINE_EXAMPLE], "count": 1, "total": 1},
    ),
)
SET_BASELINE = operation(
    "set_baseline",
    "Call a run by a name; refused if it is partial or lost cases, unless that is accepted",
    response(200, "The baseline", ref("Baseline"), _BASELINE_EXAMPLE),
    parameters=(_NEW_NAME,),
    body={
        "schema": record(
            {"run": _NONEMPTY | {"maxLength": 200}, "accept": {"type": "boolean"}}, "accept"
        ),
        "example": {"run": "latest"},
    },
    errors=("MISSING_FIELD", "INVALID_LENGTH", "NOT_FOUND"),
)
REMOVE_BASELINE = operation(
    "remove_baseline",
    "Forget the name; the run stays",
    {"204": {"description": "It is forgotten"}},
    parameters=(_NAME,),
    errors=("NOT_FOUND",),
)
_RUN = "A run: its id or the start of it, the name of a baseline, or `latest`."
COMPARE = operation(
    "compare",
    "What changed between two runs, and whether it is chance",
    response(200, "The comparison", ref("Comparison"), COMPARISON),
    parameters=(
        parameter("base", "query", _NONEMPTY, _RUN, required=True, example="main"),
        parameter("candidate", "query", _NONEMPTY, _RUN, required=True, example="latest"),
        parameter(
            *("gate", "query", {"type": "string", "enum": list(get_args(Gate))}),
            "What fails the comparison.",
        ),
        parameter(
            *("margin", "query", {"type": "number", "minimum": 0, "maximum": 1, "default": 0.02}),
            "The difference in pass rates that does not matter.",
        ),
        parameter("strict", "query", {"type": "boolean"}, "No clear decision fails it too."),
    ),
    errors=("MISSING_FIELD", "NOT_FOUND"),
)
TREND = operation(
    "trend",
    "The pass rate of the finished runs with its interval, target by target, the newest last",
    response(
        200,
        "The points of the trend",
        record({"points": {"type": "array", "items": ref("Point")}, "count": COUNT}),
        {"points": [POINT], "count": 1},
    ),
    parameters=(
        parameter("suite", "query", _STORABLE, "Only this suite, by its file or its name."),
        parameter("target", "query", _STORABLE, "Only runs of this target, by its name."),
        parameter(
            *("last", "query", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}),
            "How many runs.",
        ),
    ),
    errors=("NOT_FOUND",),
)


HEALTH = operation(
    "health",
    "Is the server well, and its store?",
    response(
        200,
        "It is",
        record({"status": {"const": "ok"}, "version": TEXT, "runs": COUNT}),
        {"status": "ok", "version": "0.1.0", "runs": 0},
    ),
    errors=("UNAVAILABLE",),
)
