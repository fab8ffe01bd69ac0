"""The application: routes, who may ask them, and what errors become."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from assay.errors import AssayError, EvalFileErrors, NotInStore, UsageError
from assay.ports import Store
from assay.redaction import Redactor
from assay.roster.secrets import secrets_of
from assay.server import comparisons, openapi, runs, test_cases
from assay.server.envelope import UNEXPECTED, ApiError, sentence
from assay.server.jobs import Clock, Jobs, utc_now
from assay.server.security import Access, Guard
from assay.server.state import State
from assay.settings import Settings
from assay.version import __version__

log = logging.getLogger("assay.server")


def create_app(
    settings: Settings,
    store: Store,
    access: Access | None = None,
    *,
    root: Path | None = None,
    now: Clock = utc_now,
) -> FastAPI:
    """The server of a project. The store stays the caller's to close.

    `root` is the folder whose eval files can be run, when not the whole project.
    """
    served = Path(os.path.realpath(root or settings.root))
    settings = replace(settings, bounds=served)
    jobs = Jobs(settings, store, served, now)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await jobs.recover()
        yield
        await jobs.end()

    app = FastAPI(
        title="Assay",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.assay = State(settings, store, jobs, now)
    app.add_middleware(Guard, access=access or Access())
    for module in (test_cases, runs, comparisons):
        app.router.routes += module.router.routes
    for route in app.routes:
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            route.methods = {"GET", "HEAD"}
    openapi.install(app)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


async def _told(request: Request, error: Any) -> Response:
    response: Response = error.response()
    return response


async def _by_framework(request: Request, error: Any) -> Response:
    """What the router refuses: an unknown path, or a method that the path does not have."""
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        message = f"{request.method} is not allowed here; allowed are {allowed}"
        return ApiError("METHOD_NOT_ALLOWED", message, {"allow": allowed}).response()
    if error.status_code == 404:
        return ApiError("NOT_FOUND", f"There is no route {request.url.path}").response()
    return ApiError("INVALID_INPUT", str(error.detail)).response()


def _methods(request: Request) -> list[str]:
    """The methods of all routes with the path of the request."""
    routes = request.app.router.routes
    fitting = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in fitting for method in route.methods})


async def _misused(request: Request, error: Any) -> Response:
    return ApiError("INVALID_INPUT", _words(error)).response()


async def _missing(request: Request, error: Any) -> Response:
    return ApiError("NOT_FOUND", _words(error)).response()


async def _broken(request: Request, error: Any) -> Response:
    """What the client can do nothing about: the store, the configuration or a plugin."""
    state: State = request.app.state.assay
    reason = Redactor(secrets_of(state.settings)).text(str(error))
    log.error("%s %s failed: %s", request.method, request.url.path, reason)
    return ApiError("INTERNAL_ERROR", UNEXPECTED).response()


def _words(error: BaseException) -> str:
    """What went wrong, as a sentence."""
    if isinstance(error, EvalFileErrors):
        return "; ".join(f"{p.place}: {p.advice}" for p in error.problems[:10])
    return sentence(error)


HANDLERS = {
    ApiError: _told,
    HTTPException: _by_framework,
    UsageError: _misused,
    EvalFileErrors: _misused,
    NotInStore: _missing,
    AssayError: _broken,
}
