"""The comparison of two runs and the trend in a browser, by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.sites import Site
from browser.tabs import Tab

pytestmark = pytest.mark.full


def test_a_person_goes_from_the_verdict_to_the_reason_by_keyboard(tab: Tab, site: Site) -> None:
    tab.go(f"{site.url}/compare")
    page = tab.page
    expect(page.get_by_role("heading", level=1)).to_contain_text("Worse: 1 lost (1 repeated)")
    tab.check()
    page.get_by_role("link", name="See 1 regressed case").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="oslo-alert").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("oslo-alert")
    expect(page.get_by_text('call 1 is get_weather(city="Oslo")')).to_be_visible()
    tab.check()


def test_two_runs_are_picked(tab: Tab, site: Site) -> None:
    tab.go(f"{site.url}/compare")
    page = tab.page
    page.get_by_label("Base").select_option(site.runs[1])
    page.get_by_label("Candidate").select_option("main")
    page.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#cases").get_by_role("link", name="both-units")).to_be_visible()
    tab.check()


def test_the_trend_has_a_table_behind_each_chart(tab: Tab, site: Site) -> None:
    tab.go(f"{site.url}/trend")
    page = tab.page
    tab.check()
    page.get_by_text("The numbers").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Pass rate").first).to_be_visible()
    tab.check()


@pytest.mark.parametrize("path", ["", "?list=both-passed", "?list=still-failing", "?list=flaky"])
def test_hostile_texts_do_nothing_in_lists(tab: Tab, hostile: Site, path: str) -> None:
    tab.go(f"{hostile.url}/compare{path}")
    tab.check()


def test_hostile_texts_do_nothing_on_the_page_of_a_case(tab: Tab, hostile: Site) -> None:
    for name in ("regressed", "still-failing", "both-passed", "not-judged"):
        tab.go(f"{hostile.url}/compare?list={name}")
        rows = tab.page.locator("a[data-row]")
        links = [rows.nth(at).get_attribute("href") for at in range(0, rows.count(), 6)]
        for link in links:
            tab.go(f"{hostile.url}{link}")
            tab.check()
