"""`/test-cases`: the list by tag, from which a selection can be run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from assay.errors import AssayError
from assay.model.run import TEST_CASES
from assay.model.test_case import TestCase
from assay.ports import Store
from assay.server.envelope import ApiError, invalid, sentence
from assay.server.forms import read_form
from assay.server.pages.rendering import render
from assay.server.requests import quoted
from assay.server.run_requests import parse_run_request
from assay.server.schemas import MAX_IDS, NewRun, uuid_or_none
from assay.server.state import state_of
from assay.service.options import options_of
from assay.suites.test_cases import all_cases

LIST = "/test-cases"
#: How many test cases are on a page, and how many tags are offered.
ROWS, MAX_TAGS = 50, 30
_NUMBER = re.compile("[0-9]{1,9}")
#: The names of the boxes of test cases in the form begin with this.
_BOX = "case-"


class ListedCases(msgspec.Struct, frozen=True):
    """A page of the list. `tags` are the most frequent ones with their counts."""

    cases: list[TestCase]
    total: int
    all: int
    tags: list[tuple[str, int]]
    more_tags: int
    tag: str
    skip: int


def _listed(store: Store, tag: str, skip: int) -> ListedCases:
    page_ = store.test_cases.page(ROWS, skip, tag or None)
    total = page_.total if not tag else store.test_cases.page(0).total
    counts = sorted(store.test_cases.tags().items(), key=lambda item: (-item[1], item[0]))
    more = max(len(counts) - MAX_TAGS, 0)
    return ListedCases(page_.test_cases, page_.total, total, counts[:MAX_TAGS], more, tag, skip)


async def list_page(request: Request) -> Response:
    """The test cases, all or those with a tag."""
    given = request.query_params
    skip = int(given["skip"]) if _NUMBER.fullmatch(given.get("skip", "")) else 0
    deleted = uuid_or_none(given.get("deleted")) or ""
    return await _draw(request, given.get("tag", ""), skip, deleted=deleted)


async def run_selection(request: Request) -> Response:
    """Start a run of the ticked test cases, or of all in the list, and go to its page."""
    form, state = await read_form(request), state_of(request)
    tag = form.get("tag", "")
    try:
        body = await asyncio.to_thread(_request, form, state.store)
        paths, options = await asyncio.to_thread(parse_run_request, body, state)
        run_id = await state.run_manager.start(paths, options)
    except (AssayError, ApiError) as error:
        message = error.detail if isinstance(error, ApiError) else sentence(error)
        return await _draw(request, tag, 0, status=400, problem=message, chosen=form)
    return RedirectResponse(f"/runs/{run_id}", 303)


def _request(form: Mapping[str, str], store: Store) -> NewRun:
    """The request of a form; raises ApiError if it chooses nothing."""
    sent = [name.removeprefix(_BOX) for name in form if name.startswith(_BOX)]
    ids = list(dict.fromkeys(uuid_or_none(each) or "" for each in sent))
    if form.get("which") == "all":
        ids = [case.id for case in all_cases(store, form.get("tag") or None)]
    if not ids:
        raise invalid("Tick the test cases to run first")
    if len(ids) > MAX_IDS or "" in ids:
        raise invalid(f"A form can run up to {MAX_IDS:,} test cases; see `assay run {TEST_CASES}`")
    given: dict[str, Any] = {"test_cases": ids}
    if form.get("target"):
        given["target"] = form["target"]
    if _NUMBER.fullmatch(form.get("repeat", "")):
        given["options"] = {"repeat": int(form["repeat"])}
    try:
        return NewRun(**given)
    except ValidationError:  # the ids are checked, and the options are not yet
        raise invalid(f"The target {quoted(form['target'])} cannot be one") from None


async def _draw(request: Request, tag: str, skip: int, status: int = 200, **more: Any) -> Response:
    state = state_of(request)
    found = await state.read(partial(_listed, state.store, tag, skip), quick=False)
    settings = state.settings
    values: dict[str, Any] = {
        "found": found,
        "tag_chips": [(n, size, _address(n), n == tag.casefold()) for n, size in found.tags],
        "page_link": partial(_address, tag),
        "targets": settings.target_names,
        "default_target": options_of({}, settings).target,
    }
    values |= {"deleted": "", "problem": "", "chosen": {}, "box": _BOX, "rows": ROWS}
    return render("test_cases.html", request, status, **values | more)


def _address(tag: str, skip: int = 0) -> str:
    given = {"tag": tag, "skip": skip or ""}
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{LIST}?{query}" if query else LIST
