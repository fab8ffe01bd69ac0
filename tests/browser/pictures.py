"""Takes the pictures in docs/pictures from the example. Called by `make pictures`.

Ids, times and durations are replaced by fixed ones, so that a picture changes only if a page does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import httpx2
from playwright.sync_api import sync_playwright

from browser.sites import Site, example_site
from browser.tabs import Tab, chromium, opened

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_SIZE = {"width": 1200, "height": 780}
_FIXED = Path(__file__).with_name("pictures.js")


def take(site: Site, tab: Tab) -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    base, run = site.runs
    report = site.project.root / "report.html"
    site.project.run("report", run, "-o", report.name)
    listed = httpx2.get(f"{site.url}/api/runs/{run}/cases?filter=changed:regressed").json()
    lost = listed["data"]["cases"][0]["position"]
    addresses = {
        "run": f"{site.url}/runs/{run}",
        "case": f"{site.url}/runs/{run}/cases/{lost}",
        "compare": f"{site.url}/compare?base={base}&candidate={run}",
        "report": report.as_uri(),
    }
    tab.page.set_viewport_size(_SIZE)
    for name, address in addresses.items():
        tab.page.goto(address)
        tab.page.locator("h1").first.wait_for()
        tab.page.evaluate(_FIXED.read_text(encoding="utf-8"), [base, run])
        file = PICTURES / f"{name}.png"
        tab.page.screenshot(path=file)
        print(f"{file.relative_to(PICTURES.parents[1])}: {file.stat().st_size:,} bytes")
    tab.guard.check()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        with example_site(Path(folder) / "weather") as site:
            take(site, opened(browser, script=True, dark=False, width=_SIZE["width"]))
        browser.close()


if __name__ == "__main__":
    main()
