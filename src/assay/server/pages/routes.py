"""The routes of all pages except log-in; see `rendering` for how to add one."""

from __future__ import annotations

from starlette.routing import Route

from assay.server import docs
from assay.server.pages import case, live, run, runs, test_cases
from assay.server.pages.rendering import STATIC_FILES

PAGES: list[Route] = [
    *runs.ROUTES,
    *run.ROUTES,
    *case.ROUTES,
    *live.ROUTES,
    *test_cases.ROUTES,
    *docs.ROUTES,
    STATIC_FILES,
]
