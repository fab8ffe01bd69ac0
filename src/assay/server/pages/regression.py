"""`POST /runs/{id}/cases/{position}/regression`: makes a failed case a regression case."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import AssayError
from assay.server.envelope import ApiError, invalid
from assay.server.forms import read_form
from assay.server.pages.case import FIELDS, REGRESSION, RegressionForm, position_in, show
from assay.server.pages.copies import below_root
from assay.server.pages.rendering import page
from assay.server.run_requests import path_below
from assay.server.runs import requested_run
from assay.server.state import State, state_of
from assay.service.bug_reports import BugReport, regression_of
from assay.service.cases import case_at
from assay.settings import shown_path

#: The most characters of a field.
MAX_FIELD = 1000


async def add(request: Request) -> Response:
    """Write the case to the regression file beside its eval file, and lock it."""
    state, record = state_of(request), await requested_run(request.path_params["id"], request)
    form = await _form(request)
    position = position_in(request)
    try:
        added = await asyncio.to_thread(_add, state, record.id, position, form)
    except AssayError as error:
        problem = "\n".join(each.message for each in error.problems)
        return await show(request, replace(form, problem=problem))
    return await show(request, replace(form, added=added))


async def _form(request: Request) -> RegressionForm:
    given = await read_form(request)
    known = [name for name, _, _ in FIELDS]
    for name, text in given.items():
        if name not in known:
            raise invalid(f"The form has no field {name!r}")
        if len(text) > MAX_FIELD or not text.isprintable():
            raise invalid(f"{name!r} must be one line of at most {MAX_FIELD} characters")
    return RegressionForm(**{name: text.strip() for name, text in given.items()})


def _add(state: State, run_id: str, position: int, form: RegressionForm) -> str:
    """Add the case; returns what to say about it."""
    row = case_at(state.store, state.store.run(run_id), position).row
    path = below_root(row.suite, state)
    if path is None:
        raise ApiError("NOT_FOUND", "The case is in no eval file below the served root")
    path_below(state.run_manager.root, path)  # refuses a link that leads outside
    contains = (form.must_contain,) if form.must_contain else ()
    source = f"{run_id}/{row.suite}:{row.id}"
    report = BugReport(source, form.bug, tool=form.tool, contains=contains)
    file, identity = regression_of(report, state.settings, state.store)
    return f"Added and locked {identity} in {shown_path(file)}: commit the file and its lock."


ROUTES = [
    page(f"/runs/{{id}}/cases/{{position}}{REGRESSION}", add, "filter", "sort", "at", method="POST")
]
