"""The pages of test cases in a browser, by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Look
from browser.hostile import PAYLOADS
from browser.sites import EXAMPLE, Site, served
from browser.tabs import Tab
from e2e.projects import Project

pytestmark = pytest.mark.full
PAGE = "/test-cases"
_number = count()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The targets of the example, and the test cases that tests add."""
    project = Project(tmp_path_factory.mktemp("kept"))
    for name in ("assay.yaml", "agent.py"):
        project.write(name, (EXAMPLE / name).read_text(encoding="utf-8"))
    project.write("evals/seed-manifest.json", {})
    with served(project) as site:
        yield site


def add(site: Site, text: str, **more: Any) -> str:
    """The address of a new test case."""
    body = {"input": text, "expected_output": "Paris", **more}
    response = httpx2.post(f"{site.url}/api/test-cases", json=body)
    assert response.status_code == 201, response.text
    return f"{PAGE}/{response.json()['data']['id']}"


def write(page: Page, label: str, text: str) -> None:
    """Type into a field, reached by its label."""
    page.get_by_label(label).focus()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def press(page: Page, name: str) -> None:
    """Press a button or follow a link by keyboard."""
    page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.focus()
    page.keyboard.press("Enter")


def test_a_test_case_is_written_changed_and_compared_by_keyboard(tab: Tab, kept: Site) -> None:
    tab.go(kept.url + PAGE)
    tab.check()
    page = tab.page
    press(page, "New test case")
    expect(page).to_have_title("New test case · Assay")
    tab.check()
    write(page, "Expected output", "Paris")
    tab.guard.expect_status(400)
    press(page, "Add the test case")
    expect(page.get_by_text("It is empty; 1 to 10,000 characters are expected.")).to_be_visible()
    expect(page.get_by_label("Expected output")).to_have_value("Paris")
    tab.check()
    write(page, "Input", "What is the capital of France?")
    write(page, "Tags", "geography")
    press(page, "Add the test case")
    expect(page.get_by_role("status")).to_have_text("Saved as version 1.")
    write(page, "Input", "What is the capital of Spain?")
    press(page, "Save")
    expect(page.get_by_role("status")).to_have_text("Saved as version 2.")
    tab.check()
    press(page, "2 versions")
    expect(page.locator("del")).to_have_text("France")
    expect(page.locator("ins")).to_have_text("Spain")
    tab.check()


def test_both_texts_of_a_conflict_are_shown(tab: Tab, kept: Site) -> None:
    address = kept.url + add(kept, "What is the capital of France?")
    tab.go(address)
    changed = httpx2.put(
        address.replace(PAGE, "/api/test-cases"), json={"input": "What is the capital of Peru?"}
    )
    assert changed.status_code == 200
    write(tab.page, "Input", "What is the capital of Spain?")
    tab.guard.expect_status(409)
    press(tab.page, "Save")
    expect(tab.page.get_by_role("alert")).to_contain_text("this test case was changed")
    expect(tab.page.locator("del")).to_have_text("Peru")
    expect(tab.page.locator("ins")).to_have_text("Spain")
    expect(tab.page.get_by_label("Input")).to_have_value("What is the capital of Spain?")
    tab.check()
    press(tab.page, "Save over it")
    expect(tab.page.get_by_role("status")).to_have_text("Saved as version 3.")


def test_a_ticked_test_case_is_run(tab: Tab, kept: Site) -> None:
    tag = f"run-{next(_number)}"
    for text in ("one", "two"):
        add(kept, text, tags=[tag])
    tab.go(f"{kept.url}{PAGE}?tag={tag}")
    page = tab.page
    page.get_by_label("Run two").focus()
    page.keyboard.press("Space")
    press(page, "Run the ticked")
    expect(page.locator("h1")).not_to_have_text("Test cases")
    (run,) = httpx2.get(f"{kept.url}/api/runs?limit=1").json()["data"]["runs"]
    assert page.url == f"{kept.url}/runs/{run['runId']}"


def test_unsaved_changes_are_not_left_without_a_question(
    open_tab: Callable[..., Tab], kept: Site
) -> None:
    tab, asked = open_tab(), list[str]()
    page = tab.page
    tab.go(kept.url + add(kept, "question"))
    expect(page.get_by_text("8 of 10,000 characters")).to_be_visible()
    page.on("dialog", lambda dialog: asked.append(dialog.type))
    press(page, "Cancel")
    expect(page).to_have_url(kept.url + PAGE)
    assert asked == []
    page.go_back()
    write(page, "Input", "changed 🏳️")
    expect(page.get_by_text("10 of 10,000 characters")).to_be_visible()
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    press(page, "Cancel")
    expect(page).to_have_url(kept.url + PAGE)
    assert asked == ["beforeunload"]
    page.go_back()
    write(page, "Input", "changed again")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status")).to_have_text("Saved as version 2.")
    assert asked == ["beforeunload"]


def test_rows_are_walked_through_by_keyboard(open_tab: Callable[..., Tab], kept: Site) -> None:
    tag = f"walk-{next(_number)}"
    addresses = [add(kept, text, tags=[tag]) for text in ("one", "two", "three")]
    tab = open_tab()
    tab.go(f"{kept.url}{PAGE}?tag={tag}")
    for key in "jjjk":
        tab.page.keyboard.press(key)
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(kept.url + addresses[1])
    tab.page.keyboard.press("v")
    expect(tab.page).to_have_url(f"{kept.url}{addresses[1]}/versions")
    tab.page.keyboard.press("?")
    expect(tab.page.get_by_role("dialog")).to_contain_text("Back to the test case")


@pytest.mark.parametrize("look", [Look(), Look(script=False, dark=True, width=400)], ids=str)
def test_hostile_texts_stay_texts(open_tab: Callable[..., Tab], kept: Site, look: Look) -> None:
    tag, tab = f"hostile-{next(_number)}", open_tab(look)
    addresses = [
        add(kept, text, description=text[:500], tags=[tag, text[:50]]) for text in PAYLOADS
    ]
    for skip in (0, 50):
        tab.go(f"{kept.url}{PAGE}?tag={tag}&skip={skip}")
        tab.guard.check()
    for address, text in zip(addresses, PAYLOADS, strict=True):
        tab.go(kept.url + address + ("" if look.script else "/versions"))
        if look.script:
            shown = tab.page.get_by_label("Input").input_value()
            assert shown == text.replace("\r\n", "\n"), address
        tab.guard.check()
