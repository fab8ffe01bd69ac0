"""`/test-cases/{id}/versions`: what was changed when. Also finds the case that a page is about."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import Response

from assay.errors import NotInStore
from assay.model.test_case import TestCase
from assay.reporters.word_diff import Sign, word_diff
from assay.server.pages.rendering import render
from assay.server.pages.test_case_form import LABELS, TestCaseForm
from assay.server.schemas import uuid_or_none
from assay.server.state import state_of
from assay.server.test_cases import not_found

#: How many versions are listed: the newest ones.
SHOWN = 100
_NUMBER = re.compile("[0-9]{1,9}")


async def versions_page(request: Request) -> Response:
    """The versions of a test case, and the difference between two of them."""
    case_id, cases = case_id_of(request), state_of(request).store.test_cases
    read, given = state_of(request).read, request.query_params
    try:
        total = (await read(partial(cases.versions, case_id, 1))).total
        skip = max(total - SHOWN - 1, 0)
        found = await read(partial(cases.versions, case_id, SHOWN + 1, skip), quick=False)
    except NotInStore:
        raise not_found() from None
    new = await version_of(request, case_id, given.get("new", str(total)))
    old = await version_of(request, case_id, given.get("old", str(max(new.version - 1, 1))))
    listed, forms = _listed(found.test_cases), (TestCaseForm.of(old), TestCaseForm.of(new))
    return render(
        "test_case_versions.html",
        request,
        listed=listed[::-1][:SHOWN],
        total=total,
        old=old,
        new=new,
        diffs=await differences(*forms),
        same=forms[1],
        labels=LABELS,
        deleted=(await read(partial(cases.find, [case_id])))[case_id] is None,
    )


async def differences(
    old: TestCaseForm, new: TestCaseForm, names: set[str] | None = None
) -> dict[str, list[tuple[Sign, str]]]:
    """The word diffs of the fields that differ, or of these, in the order of the form."""
    wanted = old.changed(new) if names is None else names

    def compare() -> dict[str, list[tuple[Sign, str]]]:
        texts = {n: (getattr(old, n), getattr(new, n)) for n in LABELS if n in wanted}
        return {name: word_diff(*pair) for name, pair in texts.items()}

    return await asyncio.to_thread(compare)


def _listed(versions: list[TestCase]) -> list[tuple[TestCase, list[str]]]:
    """Each version with the names of the fields that it changed."""
    forms = [TestCaseForm.of(version) for version in versions]
    changed = [now.changed(before) for before, now in pairwise(forms)]
    names = [[LABELS[n].lower() for n in LABELS if n in fields] for fields in ({*()}, *changed)]
    return list(zip(versions, names, strict=True))


async def live_case(request: Request) -> TestCase | None:
    """The test case in the path; None if it was deleted."""
    state, case_id = state_of(request), case_id_of(request)
    found = await state.read(partial(state.store.test_cases.find, [case_id]))
    if case_id not in found:
        raise not_found()
    return found[case_id]


async def version_of(request: Request, case_id: str, given: str) -> TestCase:
    """A version of a test case by its number in a query or a form."""
    state = state_of(request)
    if _NUMBER.fullmatch(given):
        pin = (case_id, int(given))
        found = await state.read(partial(state.store.test_cases.find_versions, [pin]))
        if pin in found:
            return found[pin]
    raise not_found("This test case has no such version")


def case_id_of(request: Request) -> str:
    found = uuid_or_none(request.path_params["id"])
    if found is None:
        raise not_found()
    return found
