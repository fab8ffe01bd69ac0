"""The tests of pages can fail: each fault is noticed on a page that has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from browser import accessibility
from browser.conftest import Look
from browser.hostile import PAYLOADS
from browser.tabs import Tab

pytestmark = pytest.mark.full
ADDRESS = "http://127.0.0.1:9/page"
OPEN = {"content-type": "text/html"}


def show(tab: Tab, body: str, **headers: str) -> None:
    """Open a page with this body, without a policy unless one is given."""
    head = '<!doctype html><html lang="en"><title>x</title>'
    given = OPEN | {name.replace("_", "-"): value for name, value in headers.items()}
    tab.page.route(ADDRESS, lambda route: route.fulfill(body=head + body, headers=given))
    tab.page.goto(ADDRESS)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>alert(1)</script>", "a dialog: 1"),
        ("<script>console.error('x')</script>", "error on the console: x"),
        ("<script>nothing.at.all</script>", "an exception"),
        ("<img src=//planted.example/a.png>", "a request to http://planted.example/a.png"),
        ("<script>open('about:blank')</script>", "a second window"),
    ],
)
def test_the_guard_notices_what_a_page_does(
    open_tab: Callable[..., Tab], body: str, fault: str
) -> None:
    tab = open_tab()
    tab.page.route("**/planted.example/**", lambda route: route.abort())
    show(tab, body)
    expect(tab.page).to_have_title("x")
    tab.page.evaluate("1")
    assert any(fault in found for found in tab.guard.faults), tab.guard.faults
    tab.guard.faults.clear()


@pytest.mark.parametrize("body", ["<p style='color: red'>x", "<script>alert(1)</script>"])
@pytest.mark.parametrize("script", [True, False])
def test_the_guard_notices_a_violation_of_the_policy(
    open_tab: Callable[..., Tab], body: str, script: bool
) -> None:
    tab = open_tab(Look(script=script))
    show(tab, body, content_security_policy="default-src 'none'")
    tab.page.evaluate("1")
    if script or "style" in body:  # without JavaScript there is no script to refuse
        assert any("policy" in found.lower() for found in tab.guard.faults), tab.guard.faults
    tab.guard.faults.clear()


GOOD = "<main><h1>x</h1>"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (GOOD + "<input>", "no label: <input>"),
        (GOOD + "<button></button>", "no label: <button>"),
        (GOOD + "<h3>y</h3>", "a level of headings is left out before h3"),
        ("<main><p>x</p>", "0 headings of level 1"),
        ("<h1>x</h1>", "there must be one <main>"),
        (GOOD + "<table><tr><td>1</td></tr></table>", "a table without headers"),
        (GOOD + "<table><tr><th>1</th></tr></table>", "a header without scope"),
        (GOOD + "<p style='color: #999'>y</p>", "contrast 2.85, at least 4.5"),
        (GOOD + "<p style='opacity: 1; color: rgb(0 0 0 / 40%)'>y</p>", "contrast"),
        (GOOD + "<div role=grid aria-rowcount=9><div role=row>y</div></div>", "aria-rowindex"),
        (GOOD + "<div style='width: 2000px'>y</div>", "the page is"),
        (GOOD + "<svg width=9 height=9></svg>", "an <svg> without a label"),
        (GOOD + "<nav><a href=/>x</a></nav><nav><a href=/>y</a></nav>", "without a label: nav"),
    ],
)
def test_a_fault_of_accessibility_is_noticed(
    open_tab: Callable[..., Tab], body: str, fault: str
) -> None:
    tab = open_tab()
    show(tab, body)
    assert any(fault in found for found in accessibility.faults(tab.page)), accessibility.faults(
        tab.page
    )


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<style>a { outline: none }</style><a href=/>x</a>", "focus cannot be seen on a"),
        ("<a href=/a>x</a><a href=/b tabindex=1>y</a>", "the order of focus is"),
    ],
)
def test_a_fault_of_focus_is_noticed(open_tab: Callable[..., Tab], body: str, fault: str) -> None:
    tab = open_tab()
    show(tab, body)
    assert any(fault in found for found in accessibility.focus_faults(tab.page))


def test_hostile_texts_do_something_where_nothing_protects_a_page(
    open_tab: Callable[..., Tab],
) -> None:
    """Else the tests of pages that show them would prove nothing."""
    tab = open_tab()
    tab.page.route("**/planted.example/**", lambda route: route.abort())
    show(tab, "".join(f"<div>{payload}</div>" for payload in PAYLOADS[5:18]))
    tab.page.evaluate("1")
    assert any("a dialog" in found for found in tab.guard.faults)
    tab.guard.faults.clear()
