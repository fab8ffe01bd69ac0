"""`/openapi.json`: the document of all routes, assembled from their descriptions."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from assay.server import (
    bodies,
    openapi_evaluators,
    openapi_results,
    openapi_runs,
    openapi_test_cases,
)
from assay.server.envelope import JSON
from assay.version import __version__

_DESCRIPTION = """Test cases, runs, baselines, comparisons and trends of one project.

Every answer with a body is an envelope: `success`, `data` and `error`, which has a `code` and a \
`message`. Two are not: this document, and the stream of events of a run."""


def install(app: FastAPI) -> None:
    """Serve the document of all routes that the application has so far."""
    app.openapi = cache(lambda: document(app))  # type: ignore[method-assign]
    app.add_route("/openapi.json", _get_document, ["GET"], include_in_schema=False)


async def _get_document(request: Request) -> Response:
    bodies.query(request)
    return Response(json.dumps(request.app.openapi()), media_type=JSON)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the application."""
    paths: dict[str, dict[str, Any]] = {}
    for route in app.routes:
        if isinstance(route, APIRoute):
            for method in (route.methods or set()) - {"HEAD"}:  # the same as GET
                operation = {"tags": [route.path.split("/")[2]], **(route.openapi_extra or {})}
                paths.setdefault(route.path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assay", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {
                **openapi_test_cases.SCHEMAS,
                **openapi_runs.SCHEMAS,
                **openapi_results.schemas(),
                **openapi_evaluators.schemas(),
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # A server on loopback may have no tokens, and then asks for none.
        "security": [{"token": []}, {}],
    }
