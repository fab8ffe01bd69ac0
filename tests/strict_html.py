"""A strict reader of our own HTML: what browsers would repair is an error here.

`read(text)` returns the page, or raises AssertionError with all faults: elements not closed or
nested wrongly, ids given twice, references to no element, fields without a label, and pictures
without a name, and anything that the content policy of our pages forbids.
"""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
#: Elements that only take text and marks within it.
PHRASES = {"p", "h1", "h2", "h3", "h4", "a", "span", "code", "pre", "label", "button", "summary"}
PHRASES |= {"dt", "small", "b", "em", "del", "ins", "mark", "kbd", "time", "title", "option"}
BLOCKS = {
    "p",
    "div",
    "section",
    "table",
    "ul",
    "ol",
    "dl",
    "pre",
    "form",
    "nav",
    "header",
    "footer",
}
BLOCKS |= {"h1", "h2", "h3", "h4", "main", "details", "blockquote", "figure"}
PARENTS = {
    "li": {"ul", "ol"},
    "tr": {"thead", "tbody", "tfoot"},
    "td": {"tr"},
    "th": {"tr"},
    "thead": {"table"},
    "tbody": {"table"},
    "dt": {"dl", "div"},
    "dd": {"dl", "div"},
    "option": {"select", "datalist", "optgroup"},
    "summary": {"details"},
}
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls", "list", "data-copy")
NEEDS_LABEL = {"input", "select", "textarea"}


class Element(NamedTuple):
    tag: str
    attributes: dict[str, str]
    line: int


class HtmlPage(HTMLParser):
    """The elements of a page, its text, and what is wrong with it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text = ""
        self._in_label = 0

    def fault(self, message: str) -> None:
        self.faults.append(f"line {self.getpos()[0]}: {message}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.fault(f"<{tag}> has an attribute twice")
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append(Element(tag, attributes, self.getpos()[0]))
        self._check_policy(tag, attributes)
        parent = self.open[-1] if self.open else ""
        if tag in PARENTS and parent not in PARENTS[tag]:
            self.fault(f"<{tag}> in <{parent}>")
        if tag in BLOCKS and (phrase := PHRASES & set(self.open)):
            self.fault(f"<{tag}> in <{sorted(phrase)[0]}>")
        if tag in ("a", "button") and {"a", "button"} & set(self.open):
            self.fault(f"<{tag}> in another link or button")
        named = "id" in attributes or "aria-label" in attributes or "label" in self.open
        if tag in NEEDS_LABEL and attributes.get("type") != "hidden" and not named:
            self.fault(f"<{tag}> has no label")
        if tag == "img" and "alt" not in attributes:
            self.fault("<img> has no alt")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "svg" not in self.open:
            self.fault(f"<{tag}/> is XML")
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.fault(f"</{tag}> closes {self.open[-1:]}")
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"] and data.strip():
            self.fault("inline script")
        if data.strip() and {*self.open[-1:]} & {"table", "tbody", "thead", "tr", "ul", "ol", "dl"}:
            self.fault(f"text in <{self.open[-1]}>: {data.strip()[:40]!r}")
        if not {"script", "head"} & set(self.open):
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.fault("a comment")

    def _check_policy(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("style", "iframe", "object", "embed", "base", "foreignobject"):
            self.fault(f"<{tag}>")
        for name, value in attributes.items():
            if name == "style" or name.startswith("on"):
                self.fault(f"attribute {name}")
            address = value.strip().lower()
            if name in ("href", "src", "action", "formaction", "xlink:href") and (
                address.startswith(("javascript:", "data:", "http:", "https:", "//"))
            ):
                self.fault(f"{name}={value[:60]!r}")

    def finish(self) -> None:
        if self.open:
            self.fault(f"not closed: {self.open}")
        ids = Counter(e.attributes["id"] for e in self.elements if "id" in e.attributes)
        self.faults += [f"the id {name!r} is used {n} times" for name, n in ids.items() if n > 1]
        labels = {e.attributes.get("for") for e in self.elements if e.tag == "label"}
        for tag, attributes, line in self.elements:
            for name in REFERENCES:
                for wanted in attributes.get(name, "").split():
                    if wanted not in ids:
                        self.faults.append(f"line {line}: {name}={wanted!r} is no id")
            if attributes.get("href", "").startswith("#") and attributes["href"][1:] not in ids:
                self.faults.append(f"line {line}: no {attributes['href']!r}")
            labelled = "aria-label" in attributes or attributes.get("id") in {None, *labels}
            if tag in NEEDS_LABEL and attributes.get("type") != "hidden" and not labelled:
                self.faults.append(f"line {line}: <{tag}> has no label")

    def links(self) -> list[str]:
        """The addresses of all links, without those within the page."""
        found = [e.attributes["href"] for e in self.elements if e.tag == "a"]
        return [href for href in found if not href.startswith("#")]


def read(text: str) -> HtmlPage:
    """The page; raises AssertionError if anything is wrong with it."""
    page = HtmlPage()
    if not text.startswith("<!doctype html>\n<html lang="):
        page.faults.append("no doctype, or no language")
    page.feed(text)
    page.close()
    page.finish()
    titles = [e for e in page.elements if e.tag == "title"]
    headings = [e for e in page.elements if e.tag == "h1"]
    if len(titles) < 1 or len(headings) != 1:
        page.faults.append(f"{len(titles)} titles and {len(headings)} main headings")
    assert page.faults == [], "\n".join(page.faults[:20])
    return page
