"""Every page that the server has for everybody is strict HTML; and the strict reader is strict."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from assay.server.app import create_app
from assay.server.security import Access
from assay.server.tokens import tokens_of
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS
from strict_html import assert_strict, faults


def piece(text: str) -> list[str]:
    return faults(text, page=False)


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<p id="a">x</p><p id="a">y</p>', "the id 'a' is there 2 times"),
        ("<p>x", "line 1: <p> is not closed"),
        ("<b><i>x</b></i>", "</b> closes nothing"),
        ("<div>x</span></div>", "</span> closes nothing"),
        ("<div/>", "<div/> is not closed by its slash"),
        ("<br></br>", "</br>: this element has no end tag"),
        ("<p>1 < 2</p>", "an unescaped <"),
        ('<img src="/a.png">', "<img> has no alt"),
        ('<input name="a">', "<input name='a'> has no label"),
        ('<label for="b">B</label><input id="a" name="a">', "has no label"),
        ('<label for="a">A</label>', "no element has the id 'a'"),
        ('<p style="color: red">x</p>', "inline attribute style"),
        ('<p onclick="x()">x</p>', "inline attribute onclick"),
        ("<script>x()</script>", "an inline script"),
        ("<style>p { }</style>", "<style> does not belong"),
        ("<p class=a>x</p>", "not in double quotes"),
        ("<p class='a'>x</p>", "not in double quotes"),
        ('<p class="a" class="b">x</p>', "<p> has class twice"),
        ('<a href="javascript:x()">x</a>', "<a> has href="),
        ('<a href=" JAVA&#9;script:x()">x</a>', "<a> has href="),
        ('<a href="data:text/html,x">x</a>', "<a> has href="),
        ('<a href="/"><button>x</button></a>', "<button> in a link or a button"),
        ("<form><div><form></form></div></form>", "<form> in <form>"),
        ("<p><ul></ul></p>", "<ul> in <p>"),
        ("<ul>x</ul>", "text directly in <ul>"),
        ("<svg></svg>", "<svg> has neither aria-label nor aria-hidden"),
        ('<svg aria-hidden="true"><b>x</b></svg>', "<b> in <svg>"),
        ('<p tabindex="3">x</p>', "tabindex='3'"),
        ('<a href="https://a.example" target="_blank">x</a>', "rel lacks noopener"),
    ],
)
def test_a_fault_is_found(html: str, fault: str) -> None:
    assert any(fault in found for found in piece(html)), piece(html)


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<p>x</p>", "does not begin with <!doctype html>"),
        ("<!doctype html><html></html>", "<html> has no lang"),
        ("<!doctype html><main><h1>x</h1><h3>y</h3></main>", "<h3> follows a heading of level 1"),
        ("<!doctype html><main></main><main></main>", "2 <main> and 0 <h1>"),
        ("<!doctype html><main><tr></tr></main>", "<tr> directly in <main>"),
    ],
)
def test_a_fault_of_a_page_is_found(html: str, fault: str) -> None:
    assert any(fault in found for found in faults(html)), faults(html)


@pytest.mark.parametrize(
    "html",
    [
        "<p>1 &lt; 2 &amp; <b>x</b><br></p>",
        '<label>A <input name="a"></label><input type="hidden" name="b" value="">',
        '<label for="a">A</label><select id="a"><option>x</option></select>',
        '<input aria-label="A" disabled>',
        '<svg role="img" aria-label="x"><path d="M0 0"/><text>1</text></svg>',
        '<a href="/runs/1?a=b&amp;c=d#e">x</a><a href="https://a.example">y</a>',
        '<img alt="" src="data:image/png;base64,AA==">',
        '<script type="module" src="/static/a.js"></script>',
    ],
)
def test_good_html_has_no_fault(html: str) -> None:
    assert piece(html) == []


def test_a_file_that_stands_alone_has_its_style_and_scripts_in_itself() -> None:
    html = "<style>p > a { }</style><script>if (1 < 2) x()</script>"
    assert faults(html, page=False, alone=True) == []


@pytest.mark.parametrize("path", ["/login", "/login?next=/%22%3E%3Cscript%3E", "/docs"])
def test_a_page_is_strict_html(settings: Settings, path: str) -> None:
    access = Access.of("127.0.0.1", tokens_of("" if path == "/docs" else "write:t"))
    client = TestClient(create_app(settings, MemoryStore(), access), ADDRESS)
    assert_strict(client.get(path).text)
