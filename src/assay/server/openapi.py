"""`/openapi.json`: what FastAPI makes of the routes, and what their types cannot express."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response

from assay.model.options import RunOptions
from assay.results.schema import components
from assay.server import cases, comparisons, groups, runs, test_cases
from assay.server.envelope import BODIES, JSON, REF
from assay.server.openapi_evaluators import bounded, evaluator_schemas
from assay.server.requests import check_query
from assay.server.run_requests import MAX_REPEATS, MAX_WORKERS, OPTIONS
from assay.server.schemas import MAX_EVALUATORS, STORABLE
from assay.version import __version__
from assay.wire.key_names import without_aliases

Schema = dict[str, Any]
_ROUTERS = (test_cases.router, runs.router, cases.router, groups.router, comparisons.router)
ROUTES = [route for router in _ROUTERS for route in router.routes]
_DESCRIPTION = """Test cases, runs, baselines, comparisons and trends of one project.

Every response with a body is an envelope: `success`, `data` and `error`, which has a `code` and a \
`message`. Two are not: this document, and the stream of events of a run."""


async def get_document(request: Request) -> Response:
    check_query(request)
    return Response(json.dumps(document()), media_type=JSON)


@cache
def document() -> Schema:
    """The OpenAPI 3.1 document of the API."""
    made = get_openapi(
        title="Assay",
        version=__version__,
        description=_DESCRIPTION,
        routes=ROUTES,
        servers=[{"url": "/"}],
    )
    schemas = made["components"]["schemas"]
    schemas |= evaluator_schemas(REF) | components(BODIES, REF)[1] | {"RunOptions": _options()}
    for name in ("NewRun", "NewGroup"):
        schemas[name]["properties"] |= {
            "evaluators": {
                "type": "array",
                "items": {"$ref": f"{REF}GivenEvaluator"},
                "maxItems": MAX_EVALUATORS,
            },
            "options": {"$ref": f"{REF}RunOptions"},
        }
    for name in ("HTTPValidationError", "ValidationError"):  # see `problems` for ours
        del schemas[name]
    for path in made["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    # A server on loopback may have no tokens, and then asks for none.
    made["security"] = [{"token": []}, {}]
    return made


def resolved(schema: Schema) -> Schema:
    """The schema that a reference leads to, or that a value has that is not null."""
    if "$ref" in schema:
        found: Schema = document()["components"]["schemas"][schema["$ref"].removeprefix(REF)]
        return found
    return next(one for one in schema.get("anyOf", [schema]) if one.get("type") != "null")


def _options() -> Schema:
    """The options of a run, from the fields of RunOptions."""
    with without_aliases():
        known: Schema = bounded(RunOptions.model_json_schema()["properties"])
    properties = {name: known[name] for name in OPTIONS}
    for name, most in (("workers", MAX_WORKERS), ("repeat", MAX_REPEATS)):
        properties[name]["anyOf"][0]["maximum"] = most
    for name in ("judge", "baseline"):
        properties[name]["anyOf"][0]["pattern"] = STORABLE
    decided = {"properties": {"stop_when": {"const": "decided"}}, "required": ["stop_when"]}
    compared = {"properties": {"baseline": {"type": "string"}}, "required": ["baseline"]}
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "if": decided,
        "then": compared,
    }
