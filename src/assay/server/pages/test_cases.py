"""`/test-cases/{id}`: the editor of test cases."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from assay.errors import NotInStore, Outdated
from assay.model.test_case import MAX_DESCRIPTION, MAX_TAG, MAX_TAGS, MAX_TEXT, TestCase
from assay.reporters.word_diff import Sign
from assay.server.forms import read_form
from assay.server.pages.rendering import page, render
from assay.server.pages.test_case_form import LABELS, Conflict, TestCaseForm, merged
from assay.server.pages.test_case_list import LIST, list_page, run_selection
from assay.server.pages.test_case_versions import (
    case_id_of,
    differences,
    live_case,
    version_of,
    versions_page,
)
from assay.server.schemas import uuid_or_none
from assay.server.state import state_of
from assay.server.test_cases import not_found

#: The largest number of characters of each field, or of tags.
_LIMITS = {
    "input": MAX_TEXT,
    "expected_output": MAX_TEXT,
    "description": MAX_DESCRIPTION,
    "tags": MAX_TAGS,
}
_DELETED = "This test case was deleted while you edited it. Saving adds your text as a new one."


class Editor(msgspec.Struct, frozen=True):
    """The page with the form. Without a `case`, saving adds a new test case.

    After a conflict, `diffs` goes from the saved text to that of this edit.
    """

    form: TestCaseForm
    case: TestCase | None = None
    problems: dict[str, str] = {}
    notice: str = ""
    tone: str = ""
    conflict: Conflict | None = None
    diffs: dict[str, list[tuple[Sign, str]]] = {}

    def page(self, request: Request, status: int = 200) -> Response:
        more: dict[str, Any] = {name: getattr(self, name) for name in self.__struct_fields__}
        more |= {"labels": LABELS, "limits": _LIMITS, "max_tag": MAX_TAG}
        return render("test_case.html", request, status, **more)


async def new_page(request: Request) -> Response:
    """An empty form, or one with the texts of a version of a test case."""
    given = request.query_params
    if "from" not in given:
        return Editor(TestCaseForm(tags=given.get("tag", ""))).page(request)
    version = await version_of(request, uuid_or_none(given["from"]) or "", given.get("version", ""))
    return Editor(TestCaseForm.of(version)).page(request)


async def create(request: Request) -> Response:
    """Add a test case, or show the form again with what is wrong."""
    form, state = TestCaseForm.sent(await read_form(request)), state_of(request)
    if form.problems:
        return Editor(form, problems=form.problems).page(request, 400)
    made = await wrap_future(state.store.test_cases.add(form.new(), state.now()))
    return RedirectResponse(f"{LIST}/{made.id}?saved=1", 303)


async def edit_page(request: Request) -> Response:
    """The form of a test case, with its texts or those of an older version."""
    case, given = await live_case(request), request.query_params
    if case is None:
        raise not_found("This test case was deleted")
    if "version" in given:
        old = await version_of(request, case.id, given["version"])
        notice = f"This is the text of version {old.version}. Save it to make it the current one."
        return Editor(TestCaseForm.of(old), case, notice=notice).page(request)
    notices = {"saved": f"Saved as version {case.version}.", "same": "There was nothing to save."}
    notice = next((text for name, text in notices.items() if name in given), "")
    tone = "better" if "saved" in given else ""
    return Editor(TestCaseForm.of(case), case, notice=notice, tone=tone).page(request)


async def save(request: Request) -> Response:
    """Change a test case. If it was changed since the form was opened, show both texts."""
    fields = await read_form(request)
    form, case = TestCaseForm.sent(fields), await live_case(request)
    if case is None:
        return Editor(form, notice=_DELETED, tone="unclear").page(request, 404)
    base = await version_of(request, case.id, fields.get("version", ""))
    if form.problems:  # the form stays one of the version that it was opened with
        return Editor(form, base, problems=form.problems).page(request, 400)
    if case.version == base.version:
        if not form.changed(TestCaseForm.of(case)):
            return RedirectResponse(f"{LIST}/{case.id}?same=1", 303)
        try:
            await _change(request, form, case)
            return RedirectResponse(f"{LIST}/{case.id}?saved=1", 303)
        except Outdated:  # another edit was saved first
            case = await live_case(request) or case
    return await _conflict(request, form, base, case)


async def _change(request: Request, form: TestCaseForm, case: TestCase) -> None:
    state = state_of(request)
    changes, known = form.changes(case), case.modified_at
    try:
        await wrap_future(state.store.test_cases.change(case.id, changes, state.now(), known))
    except NotInStore:
        raise not_found("This test case was deleted") from None


async def _conflict(
    request: Request, form: TestCaseForm, base: TestCase, case: TestCase
) -> Response:
    theirs = TestCaseForm.of(case)
    conflict = merged(TestCaseForm.of(base), form, theirs)
    diffs = await differences(theirs, form, conflict.both)
    editor = Editor(conflict.fields, case, conflict=conflict, diffs=diffs)
    return editor.page(request, 409)


async def delete(request: Request) -> Response:
    """Delete a test case; its versions can still be read."""
    state, case_id = state_of(request), case_id_of(request)
    try:
        await wrap_future(state.store.test_cases.remove(case_id, state.now()))
    except NotInStore:
        raise not_found() from None
    return RedirectResponse(f"{LIST}?deleted={case_id}", 303)


_ONE = f"{LIST}/{{id}}"
ROUTES = [
    page(LIST, list_page, "tag", "skip", "deleted"),
    page(f"{LIST}/run", run_selection, method="POST"),
    page(f"{LIST}/new", new_page, "from", "version", "tag"),
    page(f"{LIST}/new", create, method="POST"),
    page(_ONE, edit_page, "version", "saved", "same"),
    page(_ONE, save, method="POST"),
    page(f"{_ONE}/delete", delete, method="POST"),
    page(f"{_ONE}/versions", versions_page, "old", "new"),
]
