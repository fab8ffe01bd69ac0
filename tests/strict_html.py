"""A strict reader of HTML: the faults that browsers repair in silence, and what a policy refuses.

`faults(text)` lists them. Pages are held to more than the standard asks: every element that may
have an end tag has one, attributes are quoted, and nothing inline can run or style.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
#: These may end with `/>`; elements of HTML may not, as browsers ignore the slash.
_SVG = frozenset(
    [
        "circle",
        "clippath",
        "defs",
        "desc",
        "g",
        "line",
        "marker",
        "path",
        "polygon",
        "polyline",
        "rect",
        "svg",
        "text",
        "title",
        "tspan",
        "use",
        "ellipse",
        "mask",
        "pattern",
        "symbol",
    ]
)
_CONTROLS = frozenset({"input", "select", "textarea"})
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "details",
        "div",
        "dl",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
    ]
)
#: Elements that may only be in these.
_PARENTS = {
    "li": {"ul", "ol", "menu"},
    "dt": {"dl", "div"},
    "dd": {"dl", "div"},
    "tr": {"table", "thead", "tbody", "tfoot"},
    "td": {"tr"},
    "th": {"tr"},
    "option": {"select", "optgroup", "datalist"},
    "summary": {"details"},
    "legend": {"fieldset"},
    "figcaption": {"figure"},
    "caption": {"table"},
}
_ADDRESSES = frozenset({"href", "src", "action", "formaction", "poster", "data", "xlink:href"})
_START_TAG = re.compile(r"<([a-zA-Z][^\s/>]*)((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_ATTRIBUTE = re.compile(r"\s+([^\s\"'<>/=]+)(?:=(\"[^\"]*\"))?")
_ALLOWED_SCHEMES = ("http:", "https:", "mailto:", "data:image/")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


class _Open(NamedTuple):
    tag: str
    line: int
    attributes: dict[str, str | None]


class _Seen(msgspec.Struct):
    """What is only known at the end of a page."""

    ids: list[str] = []
    labelled: set[str] = set()  # by `for`
    #: Ids that some attribute refers to, with the place.
    wanted: list[tuple[str, str]] = []
    #: Controls without a label of their own, with the place.
    unlabelled: list[tuple[str | None, str]] = []
    mains: int = 0
    h1s: int = 0


def faults(text: str, *, page: bool = True, alone: bool = False) -> list[str]:
    """What is wrong with a page, or with a piece of one.

    A file that stands `alone` carries its style and its scripts in itself.
    """
    reader = _Reader(page=page, alone=alone)
    if page and not text.lower().startswith("<!doctype html>"):
        reader.fault("the page does not begin with <!doctype html>")
    reader.feed(text)
    reader.close()
    reader.finish()
    return reader.faults


def assert_strict(text: str, *, page: bool = True, alone: bool = False) -> None:
    """Fail with the first faults of a page."""
    found = faults(text, page=page, alone=alone)
    assert not found, "\n".join(found[:20])


class _Reader(HTMLParser):
    def __init__(self, *, page: bool, alone: bool) -> None:
        super().__init__(convert_charrefs=False)  # else an escaped < would look like a bare one
        self.faults: list[str] = []
        self._page, self._alone = page, alone
        self._open, self._seen = list[_Open](), _Seen()
        self._level = 0

    def fault(self, what: str) -> None:
        self.faults.append(f"line {self.getpos()[0]}: {what}")

    @property
    def _tags(self) -> list[str]:
        return [one.tag for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._check_syntax(tag)
        attributes = dict(attrs)
        self._check_attributes(tag, attributes)
        self._check_place(tag)
        self._check_name(tag, attributes)
        if tag not in _VOID:
            self._open.append(_Open(tag, self.getpos()[0], attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in _VOID:
            return
        if "svg" not in self._tags:
            self.fault(f"<{tag}/> is not closed by its slash")
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            self.fault(f"</{tag}>: this element has no end tag")
        elif not self._open or self._open[-1].tag != tag:
            inner = (
                f"<{self._open[-1].tag}> of line {self._open[-1].line}" if self._open else "none"
            )
            self.fault(f"</{tag}> closes nothing: the innermost open element is {inner}")
            if tag in self._tags:  # go on as a browser does, or every later tag would be a fault
                while self._open.pop().tag != tag:
                    pass
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        tags = self._tags
        if "<" in data and not {"script", "style"} & set(tags):
            self.fault(f"an unescaped < in {data[:60]!r}")
        if (
            data.strip()
            and tags
            and tags[-1] in {"ul", "ol", "dl", "table", "tr", "tbody", "thead"}
        ):
            self.fault(f"text directly in <{tags[-1]}>: {data.strip()[:60]!r}")
        if data.strip() and tags[-1:] == ["script"] and not self._alone:
            self.fault("an inline script")

    def finish(self) -> None:
        for one in self._open:
            self.faults.append(f"line {one.line}: <{one.tag}> is not closed")
        seen = self._seen
        for one_id in sorted({i for i in seen.ids if seen.ids.count(i) > 1}):
            self.faults.append(f"the id {one_id!r} is there {seen.ids.count(one_id)} times")
        for wanted, place in seen.wanted:
            if wanted not in seen.ids:
                self.faults.append(f"{place}: no element has the id {wanted!r}")
        for own_id, place in seen.unlabelled:
            if own_id is None or own_id not in seen.labelled:
                self.faults.append(f"{place} has no label")
        if self._page and (seen.mains, seen.h1s) != (1, 1):
            self.faults.append(f"{seen.mains} <main> and {seen.h1s} <h1>; one of each is right")

    def _check_syntax(self, tag: str) -> None:
        raw = self.get_starttag_text() or ""
        match = _START_TAG.fullmatch(raw)
        rest = match[2] if match else ""
        found = _ATTRIBUTE.sub("", rest).strip()
        if match is None or found not in ("", "/"):
            self.fault(f"an attribute is not in double quotes: {raw[:100]!r}")
        names = [name.lower() for name, _ in _ATTRIBUTE.findall(rest)]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.fault(f"<{tag}> has {name} twice")

    def _check_attributes(self, tag: str, attributes: dict[str, str | None]) -> None:
        place = f"line {self.getpos()[0]}: <{tag}>"
        for name, value in attributes.items():
            if name == "style" or name.startswith("on"):
                self.fault(f"<{tag}> has the inline attribute {name}")
            if name in ("aria-labelledby", "aria-describedby", "aria-controls", "for", "form"):
                self._seen.wanted += [(one, place) for one in (value or "").split()]
            if name in _ADDRESSES and not _is_harmless(value or ""):
                self.fault(f"<{tag}> has {name}={value!r}")
            if name == "tabindex" and (value or "") not in ("0", "-1"):
                self.fault(f"<{tag}> has tabindex={value!r}, which changes the order of focus")
        if attributes.get("id") is not None:
            self._seen.ids.append(str(attributes["id"]))
        if tag == "label" and attributes.get("for"):
            self._seen.labelled.add(str(attributes["for"]))
        if attributes.get("target") == "_blank" and "noopener" not in (attributes.get("rel") or ""):
            self.fault(f"<{tag}> opens a window that can reach this one: rel lacks noopener")
        if tag == "html" and not attributes.get("lang"):
            self.fault("<html> has no lang")

    def _check_place(self, tag: str) -> None:
        tags = self._tags
        parent = tags[-1] if tags else ""
        if self._page and tag in _PARENTS and parent not in _PARENTS[tag]:
            self.fault(f"<{tag}> directly in <{parent}>")
        if tag in _BLOCKS and "p" in tags:
            self.fault(f"<{tag}> in <p>, which ends there")
        if tag in {"a", "button"} | _CONTROLS and {"a", "button"} & set(tags):
            self.fault(f"<{tag}> in a link or a button")
        if tag == "form" and "form" in tags:
            self.fault("<form> in <form>")
        if tag in ("base", "iframe", "object", "embed") or (tag == "style" and not self._alone):
            self.fault(f"<{tag}> does not belong on a page")
        if "svg" in tags and tag not in _SVG | {"a"}:
            self.fault(f"<{tag}> in <svg>")
        if tag == "main":
            self._seen.mains += 1
        if re.fullmatch("h[1-6]", tag):
            self._seen.h1s += tag == "h1"
            if int(tag[1]) > self._level + 1 and self._page:
                self.fault(f"<{tag}> follows a heading of level {self._level}")
            self._level = int(tag[1])

    def _check_name(self, tag: str, attributes: dict[str, str | None]) -> None:
        named = any(attributes.get(name) for name in ("aria-label", "aria-labelledby"))
        if tag == "img" and "alt" not in attributes:
            self.fault("<img> has no alt")
        if tag == "svg" and not named and attributes.get("aria-hidden") != "true":
            self.fault("<svg> has neither aria-label nor aria-hidden")
        silent = tag == "input" and attributes.get("type") in ("hidden", "submit", "button")
        if tag in _CONTROLS and not named and not silent and "label" not in self._tags:
            place = f"line {self.getpos()[0]}: <{tag} name={attributes.get('name')!r}>"
            self._seen.unlabelled.append((attributes.get("id"), place))


def _is_harmless(address: str) -> bool:
    """Is it a path of this server, or an address with a scheme that cannot run a script?"""
    plain = re.sub(r"[\x00-\x20]", "", unquote(address)).lower()
    return not _SCHEME.match(plain) or plain.startswith(_ALLOWED_SCHEMES)
