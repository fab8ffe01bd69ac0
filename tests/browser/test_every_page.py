"""Every page of the server on the hostile run: usable by everybody, and nothing planted runs."""

from __future__ import annotations

import pytest

from assay.server.pages.routes import PAGES
from browser.hostile import PAYLOADS
from browser.sites import Site
from browser.tabs import Tab

pytestmark = pytest.mark.full

#: An address of each page, by its route; `{run}` and `{base}` are the runs.
ADDRESSES = {
    "/": "/?suite=%3Cimg",
    "/runs/new": "/runs/new",
    "/runs/{id}": "/runs/{run}?filter=changed:regressed&sort=-score",
    "/runs/{id}/cases/{position}": "/runs/{run}/cases/0",
    "/groups/{id}": "",  # see `test_group_page`
    "/compare": "/compare?base={base}&candidate={run}",
    "/compare/case": "",  # see `test_compare_pages`, which follows the links
    "/trend": "/trend",
    "/label/{run}": "/label/{run}",
    "/test-cases": "/test-cases?tag=%3Cscript%3E",
    "/test-cases/new": "/test-cases/new?tag=%3C/textarea%3E%3Cscript%3Ealert(1)%3C/script%3E",
    "/test-cases/{id}": "",  # see `test_test_case_pages`
    "/test-cases/{id}/versions": "",
    "/docs": "/docs",
}
#: What is no page: files, downloads, the stream of events.
NO_PAGES = {"/static/{version}/{name}", "/runs/{id}/cases.{suffix}", "/runs/{id}/rows", "/live"}


def test_every_page_is_visited() -> None:
    found = {route.path for route in PAGES if "GET" in (route.methods or ())}
    assert found - NO_PAGES == set(ADDRESSES)


@pytest.mark.parametrize("route", [route for route, address in ADDRESSES.items() if address])
def test_a_page_can_be_used_by_everybody(tab: Tab, hostile: Site, route: str) -> None:
    base, run = hostile.runs
    tab.go(hostile.url + ADDRESSES[route].format(base=base, run=run))
    tab.check()


def test_an_error_is_a_page_too(tab: Tab, hostile: Site) -> None:
    for payload in PAYLOADS[:12]:
        tab.page.goto(f"{hostile.url}/")
        path = "".join(f"%{byte:02x}" for byte in payload.encode() if byte != ord("/"))
        tab.go(f"{hostile.url}/{path}", 404)
        tab.guard.check()
    tab.check()
