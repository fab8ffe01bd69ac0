"""Labelling in a browser: with four keys, and without JavaScript with buttons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import LOOKS, Look
from browser.labels_project import judged_project
from browser.sites import Site, served
from browser.tabs import Tab
from e2e.projects import Project

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    project = Project(tmp_path_factory.mktemp("judged"))
    judged_project(project)
    with served(project) as site:
        yield site


def begin(tab: Tab, site: Site, author: str) -> Page:
    tab.go(f"{site.url}/label/{site.run}")
    tab.check()
    tab.page.get_by_label("Your name").focus()
    tab.page.keyboard.type(author)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("h1")).to_have_text("Is this answer right?")
    return tab.page


def labelled(page: Page) -> int:
    found = re.search(r"(\d+) of 40 labelled", page.locator(".heading").inner_text())
    assert found is not None
    return int(found[1])


def test_answers_are_labelled_with_four_keys(open_tab: Callable[..., Tab], judged: Site) -> None:
    tab = open_tab()
    page = begin(tab, judged, "Keys")
    before = labelled(page)
    question = page.locator(".subject").inner_text()
    for number, key in enumerate("pfp", 1):
        page.keyboard.press(key)
        expect(page.locator(".heading")).to_contain_text(f"{before + number} of 40 labelled")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("after="))
    expect(page.locator(".heading")).not_to_contain_text("the last one")
    for number in (2, 1, 0):
        page.keyboard.press("u")
        expect(page.locator(".heading")).to_contain_text(f"{before + number} of 40 labelled")
    assert page.locator(".subject").inner_text() == question
    tab.check()


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_buttons_do_the_same_and_results_are_shown(
    open_tab: Callable[..., Tab], judged: Site, look: Look
) -> None:
    tab = open_tab(look)
    page = begin(tab, judged, f"Buttons {look}")
    before = labelled(page)
    for number, name in enumerate(("Pass", "Fail"), 1):
        page.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        expect(page.locator(".heading")).to_contain_text(f"{before + number} of 40 labelled")
    page.locator(".so-far > summary").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Judge and people")).to_be_visible()
    expect(page.get_by_text("both say the same")).to_be_visible()
    tab.check()


@pytest.mark.parametrize("look", [Look(), Look(script=False, dark=True, width=400)], ids=str)
def test_hostile_answers_stay_texts(
    open_tab: Callable[..., Tab], hostile: Site, look: Look
) -> None:
    tab = open_tab(look)
    page = tab.page
    tab.go(f"{hostile.url}/label/{hostile.run}")
    page.get_by_label("Your name").fill("<b onclick=alert(1)>")
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_text("as <b onclick=alert(1)>")).to_be_visible()
    tab.guard.check()
    addresses = [link.get_attribute("href") for link in page.locator("p.actions a").all()]
    # Both looks share the site: each labels the answer of another judge.
    tab.go(f"{hostile.url}/label/{hostile.run}{addresses[int(look.script)]}")
    page.get_by_role("button", name="Pass").click()
    expect(page.locator("h1")).not_to_have_text("Is this answer right?")
    tab.guard.check()
    assert len(addresses) > 20  # each case has a judge of its own
    for address in addresses:
        tab.go(f"{hostile.url}/label/{hostile.run}{address}")
        tab.guard.check()
