"""The pages of runs and cases in a browser: by keyboard, hostile, live, and with many rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from browser import accessibility
from browser.conftest import LOOKS, Look
from browser.sites import Site, served
from browser.tabs import Tab
from e2e.projects import Project

pytestmark = pytest.mark.full


def test_the_pages_of_the_example_are_for_everybody(tab: Tab, site: Site) -> None:
    run = f"{site.url}/runs/{site.run}"
    for address in (site.url + "/", f"{site.url}/runs/new", run, f"{run}?filter=outcome%3Afailed"):
        tab.go(address)
        tab.check()
    failed = tab.page.locator("tbody a[data-row]")
    expect(failed).to_have_count(1)
    tab.go(f"{site.url}{failed.get_attribute('href')}")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Regressed: oslo-alert")
    tab.check()
    tab.go(f"{run}?filter=outcome%3Afaild")
    expect(tab.page.get_by_role("alert")).to_contain_text("did you mean 'failed'")
    tab.check()


def test_a_regression_is_found_by_keyboard(open_tab: Callable[..., Tab], site: Site) -> None:
    tab = open_tab()
    tab.go(site.url + "/")
    page = tab.page
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/runs/{site.run}")
    page.get_by_role("link", name="See 1 regression").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("filter=changed%3Aregressed"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Regressed: oslo-alert")
    page.get_by_role("link", name="Run it again").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#copy-command")).to_be_in_viewport()
    expect(page.locator("#copy-command")).to_contain_text("--select id:oslo-alert")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Back to the list")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page).to_have_url(re.compile("filter=changed%3Aregressed"))
    page.keyboard.press("/")
    expect(page.get_by_label("Filter", exact=True)).to_be_focused()


@pytest.mark.parametrize("look", [Look(), Look(script=False, dark=True, width=400)], ids=str)
def test_a_failed_case_is_made_a_regression_case(
    open_tab: Callable[..., Tab], own_site: Site, look: Look
) -> None:
    tab = open_tab(look)
    tab.guard.expect_status(400)
    tab.go(f"{own_site.url}/runs/{own_site.run}?filter=changed%3Aregressed")
    tab.page.get_by_role("link", name="oslo-alert").click()
    tab.page.get_by_text("Make it a regression case").click()
    tab.page.get_by_label("Tool", exact=True).fill("a/b")
    tab.page.get_by_label("Bug", exact=True).fill("WX-9")
    tab.check()
    tab.page.get_by_role("button", name="Add and lock it").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("'a/b' is not a valid tool name")
    expect(tab.page.get_by_label("Bug", exact=True)).to_have_value("WX-9")
    tab.page.get_by_label("Tool", exact=True).fill("")
    tab.page.get_by_role("button", name="Add and lock it").click()
    expect(tab.page.get_by_role("status")).to_contain_text("Added and locked rg-get_alerts-001")
    expect(tab.page.get_by_role("status")).to_be_in_viewport()
    tab.check()
    assert (own_site.project.root / "evals/get_alerts.regression.lock.json").exists()


@pytest.mark.parametrize("look", LOOKS[:1] + LOOKS[2:3], ids=str)
def test_hostile_runs_and_cases_do_nothing(
    open_tab: Callable[..., Tab], hostile: Site, look: Look
) -> None:
    tab = open_tab(look)
    tab.go(hostile.url + "/")
    tab.go(f"{hostile.url}/runs/{hostile.run}")
    tab.check()
    total = httpx2.get(f"{hostile.url}/api/runs/{hostile.run}/cases").json()["data"]["total"]
    assert total >= 80
    for position in range(total):
        tab.go(f"{hostile.url}/runs/{hostile.run}/cases/{position}")
        tab.guard.check()
    tab.check()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of 3,000 cases."""
    project = Project(tmp_path_factory.mktemp("long"))
    target = {"name": "echo", "provider": "echo"}
    project.write("assay.yaml", {"targets": [target], "defaults": {"target": "echo"}})
    cases = ({"id": f"case-{n:04}", "input": "x", "expected_output": "x"} for n in range(3000))
    project.write("evals/many.eval.jsonl", "\n".join(map(json.dumps, cases)))
    project.run("run", "evals/")
    return project


def test_a_long_list_draws_only_the_rows_in_sight(
    open_tab: Callable[..., Tab], long: Project
) -> None:
    with served(long) as site:
        tab = open_tab()
        tab.go(f"{site.url}/runs/{site.run}")
        page = tab.page
        table = page.locator("table.virtual")
        expect(table).to_have_attribute("aria-rowcount", "3001")
        expect(page.get_by_role("link", name="case-0000")).to_be_attached()
        for _ in range(30):
            page.keyboard.press("j")
        expect(page.get_by_role("link", name="case-0029")).to_be_focused()
        page.keyboard.press("End")
        last = page.get_by_role("link", name="case-2999")
        expect(last).to_be_visible()
        assert page.locator("tr[data-at]").count() < 100
        assert accessibility.faults(page) == []  # what can be focused changes on the way
        last.click()
        expect(page.get_by_text("3,000 of 3,000")).to_be_visible()
        plain = open_tab(LOOKS[2])
        plain.go(f"{site.url}/runs/{site.run}")
        plain.page.get_by_role("link", name="Next page").click()
        expect(plain.page.get_by_role("link", name="case-0050")).to_be_visible()


SLOW = """
import time
def answer(message):
    time.sleep(0.05)
    return "Paris"
"""


def test_a_run_is_started_watched_in_two_tabs_and_cancelled(
    open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    project = Project(tmp_path)
    project.write("slow.py", SLOW)
    target = {"name": "slow", "provider": "python", "callable": "slow:answer"}
    project.write("assay.yaml", {"targets": [target], "defaults": {"target": "slow", "workers": 1}})
    cases = ({"id": f"c{n}", "input": "x", "expected_output": "Rome"} for n in range(5000))
    project.write("evals/slow.eval.jsonl", "\n".join(map(json.dumps, cases)))
    with served(project) as site:
        tab = open_tab()
        tab.go(f"{site.url}/runs/new")
        page = tab.page
        page.get_by_role("button", name="Start the run").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("of 5,000 trials")
        expect(page.locator("[data-failures] a").first).to_be_visible()
        assert accessibility.faults(page) == []  # what can be focused changes with the run
        tab.guard.expect_window()
        other = page.context.new_page()
        streams: list[str] = []
        other.on("request", lambda request: streams.append(request.url))
        other.goto(page.url)
        first = other.locator("[data-live=done]").inner_text()
        expect(other.locator("[data-live=done]")).not_to_have_text(first)
        assert not [address for address in streams if "/live?" in address]
        page.get_by_role("button", name="Cancel the run").click()
        for each in (page, other):
            expect(each.get_by_role("heading", level=1)).to_contain_text("Interrupted")
