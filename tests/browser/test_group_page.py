"""Several targets on one page, with hostile names: for everybody, ended and in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from assay.stores.sqlite import SqliteStore
from assay.testing.stores import make_run, saved
from browser.hostile import PAYLOADS
from browser.sites import Site, served
from browser.tabs import Tab
from e2e.projects import Project
from unit.sample_groups import GROUP, TARGETS, fill_group, run_id, trial

pytestmark = pytest.mark.full

#: Groups with hostile names, without, and in progress.
HOSTILE = GROUP
PLAIN, GOING = (f"01938c4{n}-0000-7000-8000-0000000000aa" for n in (5, 6))
_NAMES = [name for name in PAYLOADS if name.isprintable()]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on three groups; another process, which is this one, works on the last."""
    root = tmp_path_factory.mktemp("groups")
    with ExitStack() as stack:
        store = SqliteStore(root / ".assay" / "assay.db")
        stack.callback(store.close)
        fill(store)
        stack.enter_context(store.lease(run_id(1, GOING)))
        yield stack.enter_context(served(Project(root)))


def fill(store: SqliteStore) -> None:
    ids = [*_NAMES[:12]]
    letters = {f"{name}{n}": "PF"[n % 2] * 6 + "PF" * 3 for n, name in enumerate(_NAMES[12:16])}
    fill_group(store, letters, group=HOSTILE, case_ids=ids, cost_usd=0.001)
    fill_group(store, TARGETS, group=PLAIN)
    fill_group(store, {"done": "PF"}, group=GOING)
    store.begin(replace(make_run(run_id(1, GOING)), target="going", group=GOING))


def test_the_page_can_be_used_by_everybody(tab: Tab, grouped: Site) -> None:
    for group in (HOSTILE, PLAIN, GOING):
        tab.go(f"{grouped.url}/groups/{group}")
        tab.check()


def test_the_best_target_is_found_and_a_click_leads_to_the_cause(tab: Tab, grouped: Site) -> None:
    tab.go(f"{grouped.url}/groups/{PLAIN}")
    assert tab.page.locator("h1").inner_text().startswith("Best: gpt and claude")
    row = tab.page.locator("table.cells tr", has_text="case-11")
    row.get_by_role("link", name="case-11, claude: failed").click()
    tab.page.get_by_text("expected ice, got sun from claude").first.wait_for()
    tab.page.get_by_role("link", name="mini").first.click()
    tab.page.get_by_text("expected ice, got sun from mini").first.wait_for()
    tab.page.get_by_role("link", name="all targets").click()
    assert tab.page.locator("h1").inner_text().startswith("Best: gpt and claude")


def test_rows_are_chosen_by_keys(open_tab: Callable[..., Tab], grouped: Site) -> None:
    tab = open_tab()
    tab.go(f"{grouped.url}/groups/{PLAIN}")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url(f"**/runs/{run_id(0, PLAIN)}/cases/*")


def test_numbers_of_each_run_change_as_it_goes(
    open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    names = [run_id(place) for place in (0, 1)]
    with ExitStack() as stack:
        store = SqliteStore(tmp_path / ".assay" / "assay.db")
        stack.callback(store.close)
        runs = [replace(make_run(name), target=name[-2:], group=GROUP) for name in names]
        store.begin(*runs)
        for name in names:
            stack.enter_context(store.lease(name))
        site = stack.enter_context(served(Project(tmp_path)))
        tab = open_tab()
        tab.go(f"{site.url}/groups/{GROUP}")
        saved(store, *(trial(names[1], n, 0, f"case-{n}", "P", "b") for n in (0, 1)))
        row = tab.page.locator(f'[data-run="{names[1]}"]')
        row.get_by_text("2 of 2 judged trials").wait_for()
        other = tab.page.locator(f'[data-run="{names[0]}"]')
        assert "0 of 0 judged trials" in other.inner_text()
        for name in names:
            store.finish(name, "finished", "2026-01-31T12:01:00Z", {"verdict": {"exitCode": 0}})
        tab.page.get_by_role("heading", name="Cannot tell").wait_for()


def test_the_report_can_be_used_by_everybody(tab: Tab, grouped: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    grouped.project.run("report", HOSTILE, "-o", str(report))
    tab.page.goto(report.as_uri())
    tab.check()


def test_a_case_of_the_report_leads_to_its_answers(tab: Tab, grouped: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    grouped.project.run("report", PLAIN, "-o", str(report))
    tab.page.goto(report.as_uri())
    answer = tab.page.get_by_text("mini says case-11")
    assert not answer.is_visible()
    tab.page.get_by_role("link", name="case-11").click()
    answer.wait_for()
