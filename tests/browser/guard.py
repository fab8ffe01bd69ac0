"""Watches everything that a tab does: in no test may a page do what our policy is to prevent."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
#: Without a host: what a page, or the file of a report, has in itself.
_LOCAL = frozenset({"file", "data", "blob", "about"})
_STATUS = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")
#: Chromium reports a violation on the console only while the page can hear of it.
_LISTEN = """addEventListener("securitypolicyviolation", (event) =>
    console.error("policy: " + event.violatedDirective + " " + event.blockedURI), true)"""


class Guard:
    """Collects what must not happen in the tabs of a context."""

    def __init__(self, context: BrowserContext) -> None:
        self.faults: list[str] = []
        self._expected: set[int] = set()
        self._windows = 1
        context.add_init_script(_LISTEN)
        context.on("console", self._on_console)
        context.on("request", self._on_request)
        context.on("dialog", self._on_dialog)
        context.on("weberror", lambda error: self.faults.append(f"an exception: {error.error}"))
        context.on("page", self._on_page)
        self._pages: list[Page] = []

    def expect_status(self, *statuses: int) -> None:
        """The browser logs an error for these responses, and the test asks for them."""
        self._expected.update(statuses)

    def expect_window(self) -> None:
        """The test opens one more tab."""
        self._windows += 1

    def check(self) -> None:
        """Fail with everything that was seen."""
        assert not self.faults, "\n".join(self.faults)

    def _on_page(self, page: Page) -> None:
        self._pages.append(page)
        if len(self._pages) > self._windows:
            self.faults.append(f"a second window: {page.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        status = _STATUS.match(message.text)
        if status is None or int(status[1]) not in self._expected:
            place = message.location["url"]
            self.faults.append(f"{message.type} on the console: {message.text[:500]} ({place})")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in _LOCAL and address.hostname not in _LOOPBACK:
            self.faults.append(f"a request to {request.url[:200]}")

    def _on_dialog(self, dialog: Dialog) -> None:
        # The unsaved-changes question is the browser's own: a test that wants it answers it.
        if dialog.type == "beforeunload":
            dialog.accept()
            return
        self.faults.append(f"a dialog: {dialog.message[:200]}")
        dialog.dismiss()
