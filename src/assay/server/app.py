"""The application: its routes, its access control, and how errors become responses."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from assay.errors import AssayError, EvalFileErrors, NotInStore, UsageError
from assay.ports import Store
from assay.redaction import redacted
from assay.server import openapi
from assay.server.callers import Authentication, wants_page
from assay.server.envelope import UNEXPECTED, ApiError, invalid, sentence
from assay.server.pages import routes
from assay.server.pages.login import LoginPages
from assay.server.pages.rendering import error_page
from assay.server.preparing import Preparer
from assay.server.problems import first_error
from assay.server.requests import Route
from assay.server.run_manager import Clock, RunManager, utc_now
from assay.server.security import Access, Guard
from assay.server.sessions import Sessions
from assay.server.state import State
from assay.server.throttle import Throttle
from assay.service.secrets import project_redactor
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
    """The application that serves a project; the caller closes the store.

    `root` is the folder whose eval files may be run; by default the whole project.
    """
    root = Path(os.path.realpath(root or settings.root))
    settings = replace(settings, bounds=root)
    run_manager = RunManager(settings, store, root, now)
    access = access or Access()

    state = State(settings, store, run_manager, now, access.origin)
    preparer = Preparer(state)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_manager.recover()
        preparer.start()
        yield
        await run_manager.shut_down()
        await preparer.stop()

    app = FastAPI(
        title="Assay",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.assay = state
    sessions = Sessions(store, access.tokens, now, secure=access.origin.startswith("https:"))
    app.add_middleware(
        Guard,
        access=access,
        authentication=Authentication(access.tokens, sessions, access.origin),
        redactor=cache(lambda: project_redactor(settings)),
    )
    login = LoginPages(access, sessions, Throttle(now))
    app.router.routes += [*openapi.ROUTES, *_heads(), *login.routes(), *routes.PAGES]
    app.add_route("/openapi.json", openapi.get_document, ["GET"], include_in_schema=False)
    app.openapi = openapi.document  # type: ignore[method-assign]
    for kind in (RequestValidationError, HTTPException, AssayError):
        app.add_exception_handler(kind, _respond)
    return app


def _heads() -> list[Route]:
    """A route that answers HEAD for each that answers GET."""
    getting = (r for r in openapi.ROUTES if isinstance(r, Route) and r.methods == {"GET"})
    return [Route(r.path, r.endpoint, methods=["HEAD"], response_model=None) for r in getting]


async def _respond(request: Request, error: Any) -> Response:
    found = _api_error(request, error)
    if wants_page(request.scope, request.headers):
        return error_page(request, found)
    return found.response()


def _api_error(request: Request, error: Any) -> ApiError:
    """The error as the client gets to see it."""
    match error:
        case ApiError():
            return error
        case RequestValidationError():
            return first_error(error, request)
        case HTTPException(status_code=405):
            allowed = ", ".join(_allowed_methods(request))
            message = f"{request.method} is not allowed here; allowed are {allowed}"
            return ApiError("METHOD_NOT_ALLOWED", message, {"allow": allowed})
        case HTTPException(status_code=404):
            return ApiError("NOT_FOUND", f"There is no route {request.url.path}")
        case HTTPException():
            return invalid(str(error.detail))
        case EvalFileErrors():
            return invalid("; ".join(f"{p.place}: {p.advice}" for p in error.problems[:10]))
        case UsageError():
            return invalid(sentence(error))
        case NotInStore():
            return ApiError("NOT_FOUND", sentence(error))
    # The client cannot fix it: a fault of the store, the configuration or a plugin.
    log.error("%s %s failed: %s", request.method, request.url.path, redacted(str(error)))
    return ApiError("INTERNAL_ERROR", UNEXPECTED)


def _allowed_methods(request: Request) -> list[str]:
    """The methods of all routes that match the path."""
    routes = request.app.router.routes
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in matching for method in route.methods})
