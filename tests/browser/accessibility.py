"""Accessibility of a page as drawn: names, headings, landmarks, tables, contrast, focus."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

#: So many elements are reached with the Tab key in one check; a list may have thousands.
MOST_STEPS = 60


def check(page: Page) -> None:
    """Fail with everything that is wrong."""
    found = faults(page) + focus_faults(page)
    assert not found, f"{page.url}\n" + "\n".join(found[:30])


def faults(page: Page) -> list[str]:
    """What is wrong with the page as it stands."""
    found: list[str] = page.evaluate(f"{_script()}; faults()")
    return found


def focus_faults(page: Page) -> list[str]:
    """What is wrong with going through the page with the Tab key.

    Focus goes in the order of the document, and is always visible.
    """
    page.evaluate(f"{_script()}; toStart()")
    expected: list[str] = page.evaluate(f"{_script()}; focusable()")
    seen: list[dict[str, Any]] = []
    for _ in expected[:MOST_STEPS]:
        page.keyboard.press("Tab")
        seen.append(page.evaluate(f"{_script()}; focused()"))
    reached = [one["element"] for one in seen]
    found = [f"focus cannot be seen on {one['element']}" for one in seen if not one["visible"]]
    if reached != expected[: len(reached)]:
        found.append(f"the order of focus is {reached}, and that of the document is {expected}")
    return found


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
