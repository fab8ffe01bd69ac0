"""A tab of the browser, with what most tests of a page do."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page, Response

from browser import accessibility
from browser.guard import Guard
from timeouts import WAIT_SECONDS

HEIGHT = 900


class Tab:
    """A guarded page. `page` is playwright's own.

    Do not call `page.wait_for_function`: it evaluates text, which our policy refuses. Wait with
    locators and `expect`.
    """

    def __init__(self, page: Page, guard: Guard) -> None:
        self.page, self.guard = page, guard

    def go(self, url: str, status: int = 200) -> Response:
        """Open a page, which has this status."""
        if status >= 400:
            self.guard.expect_status(status)
        response = self.page.goto(url)
        assert response is not None
        assert response.status == status, f"{response.status} for {url}"
        return response

    def check(self) -> None:
        """Fail if the page cannot be used by everybody, or does what it must not."""
        accessibility.check(self.page)
        self.guard.check()

    def picture(self, file: Path) -> None:
        """Write a picture of the whole page, for a person to look at."""
        self.page.screenshot(path=file, full_page=True)

    def close(self) -> None:
        self.page.context.close()


def chromium() -> str:
    """The path of Debian's browser."""
    found = shutil.which("chromium")
    assert found, "no chromium on PATH: `make chromium` installs it, or says what to do"
    return found


def opened(browser: Browser, script: bool, dark: bool, width: int) -> Tab:
    """A new tab in a profile of its own."""
    context = browser.new_context(
        java_script_enabled=script,
        color_scheme="dark" if dark else "light",
        viewport={"width": width, "height": HEIGHT},
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(WAIT_SECONDS * 1000)
    guard = Guard(context)
    return Tab(context.new_page(), guard)
