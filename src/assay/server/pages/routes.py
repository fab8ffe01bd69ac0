"""The routes of all pages except log-in; see `rendering` for how to add one."""

from __future__ import annotations

from starlette.routing import Route

from assay.server import docs
from assay.server.pages import (
    case,
    compare,
    group,
    labelling,
    live,
    regression,
    run,
    runs,
    test_cases,
    trend,
)
from assay.server.pages.rendering import STATIC_FILES

PAGES: list[Route] = [
    *runs.ROUTES,
    *run.ROUTES,
    *group.ROUTES,
    *case.ROUTES,
    *regression.ROUTES,
    *live.ROUTES,
    *compare.ROUTES,
    *trend.ROUTES,
    *labelling.ROUTES,
    *test_cases.ROUTES,
    *docs.ROUTES,
    STATIC_FILES,
]
