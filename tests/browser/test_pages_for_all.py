"""The log-in page and `/docs`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.sites import Site, served
from browser.tabs import Tab
from e2e.projects import Project

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with tokens."""
    project = Project(tmp_path_factory.mktemp("closed"))
    project.write("assay.yaml", {"targets": [{"name": "agent", "provider": "echo"}]})
    project.run("run", "--json", code=2)  # makes the store
    with served(project, env={"ASSAY_API_TOKENS": "write:token-of-the-test"}) as site:
        yield site


def test_a_person_logs_in_by_keyboard_and_out_again(tab: Tab, closed: Site) -> None:
    tab.go(f"{closed.url}/docs")
    page = tab.page
    expect(page).to_have_title("Log in · Assay")
    tab.check()
    page.get_by_label("Token").focus()
    page.keyboard.type("wrong")
    tab.guard.expect_status(401)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
    tab.check()
    page.get_by_label("Token").focus()
    page.keyboard.type("token-of-the-test")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{closed.url}/docs")
    page.get_by_role("button", name="Log out").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{closed.url}/login")


def test_the_page_of_the_routes_is_for_everybody(tab: Tab, site: Site) -> None:
    tab.go(f"{site.url}/docs")
    tab.check()
