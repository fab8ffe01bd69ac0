"""Chromium before a real server: with and without JavaScript, light and dark, wide and narrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browser.sites import Site
    from browser.tabs import Tab

# Playwright is only there for the full tests.
if os.environ.get("ASSAY_TEST_PROFILE") != "full":
    collect_ignore_glob = ["test_*.py"]


class Look(NamedTuple):
    """How a page is looked at."""

    script: bool = True
    dark: bool = False
    width: int = 1280

    def __str__(self) -> str:
        script, scheme = "script" if self.script else "plain", "dark" if self.dark else "light"
        return f"{script}-{scheme}-{self.width}"


#: Every pair of values is among them.
LOOKS = (
    Look(),
    Look(dark=True, width=400),
    Look(script=False, width=400),
    Look(script=False, dark=True),
)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's browser. Its event loop belongs to this package: other tests have their own."""
    from playwright.sync_api import sync_playwright

    from browser.tabs import chromium as path_of_chromium

    with sync_playwright() as playwright:
        path = path_of_chromium()
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`assay serve` on the example, with a baseline and a run that is worse. Do not change it."""
    from browser.sites import example_site

    with example_site(tmp_path_factory.mktemp("example")) as site:
        yield site


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`assay serve` on the hostile run."""
    from browser.sites import hostile_site

    with hostile_site(tmp_path_factory.mktemp("hostile")) as site:
        yield site


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """The example on a server of the test's own: it may change what is there."""
    from browser.sites import example_site

    with example_site(tmp_path) as site:
        yield site


@pytest.fixture
def open_tab(chromium: Browser) -> Iterator[Callable[..., Tab]]:
    """A function that opens a guarded tab with a look. After the test each is checked."""
    from browser.tabs import opened

    tabs: list[Tab] = []

    def open_one(look: Look = LOOKS[0]) -> Tab:
        tabs.append(opened(chromium, look.script, look.dark, look.width))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.close()
    for tab in tabs:
        tab.guard.check()


@pytest.fixture(params=LOOKS, ids=str)
def look(request: pytest.FixtureRequest) -> Look:
    found: Look = request.param
    return found


@pytest.fixture
def tab(open_tab: Callable[..., Tab], look: Look) -> Tab:
    """A guarded tab, once for each look."""
    return open_tab(look)
