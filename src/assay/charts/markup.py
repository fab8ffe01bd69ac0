"""SVG and HTML as text. Everything that was not written here is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from assay.text import cut_middle, printable

#: As many characters of a long text are kept in a title.
MAX_TITLE = 300
#: What the table of a chart is called.
_NUMBERS = "The numbers"
#: Drawings wider than this are reduced on a phone, so that their text must be larger.
_WIDE = 500


class Html(str):
    """Markup that is complete and escaped: templates insert it as it is."""

    __slots__ = ()

    def __html__(self) -> Html:
        return self


class Chart(msgspec.Struct, frozen=True):
    """A drawing, and a table with the same numbers; a template shows both as one figure."""

    svg: Html
    table: Html

    def __html__(self) -> Html:
        summary = element("summary", text(_NUMBERS))
        # It scrolls where it does not fit, for which a keyboard must be able to reach it.
        named = {"role": "region", "tabindex": "0", "aria_label": _NUMBERS}
        rest = element("div", self.table, cls="scroll", **named)
        return element("figure", self.svg, element("details", summary, rest, cls="chart-table"))


def text(value: str) -> Html:
    """A text that may come from anyone."""
    return Html(escape(printable(value)))


def element(name: str, *inside: Html, cls: str = "", **attributes: str | float) -> Html:
    """An element; an underscore in the name of an attribute stands for a hyphen."""
    head = f' class="{cls}"' if cls else ""
    for key, value in attributes.items():
        written = number(value) if isinstance(value, int | float) else text(value)
        head += f' {key.replace("_", "-")}="{written}"'
    return Html(f"<{name}{head}>{''.join(inside)}</{name}>")


def drawing(label: str, width: float, height: float, marks: Iterable[Html]) -> Html:
    """The marks as one image; `label` says in words what it shows."""
    inside = Html("").join(marks)
    view = f"0 0 {number(width)} {number(height)}"
    # The links in an image could not be reached with a screen reader.
    role = "group" if "<a " in inside else "img"
    cls = "chart wide" if width > _WIDE else "chart"
    return element(
        "svg", Html(inside), cls=cls, viewBox=view, width=width, role=role, aria_label=label
    )


def titled(title: str, *marks: Html, cls: str = "") -> Html:
    """Marks that show a title when they are pointed at."""
    return element("g", element("title", text(cut_middle(title, MAX_TITLE))), *marks, cls=cls)


def words(value: str, x: float, y: float, cls: str = "", room: int = 0) -> Html:
    """A text in a drawing; with `room`, its middle is left out beyond that many columns."""
    shown = cut_middle(printable(value), room) if room else value
    if not x:
        return element("text", text(shown), cls=cls, y=y)
    return element("text", text(shown), cls=cls, x=x, y=y)


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Html:
    path = f"M{number(x1)} {number(y1)}"
    path += f"H{number(x2)}" if y1 == y2 else f"L{number(x2)} {number(y2)}"
    return Html(f'<path class="{cls}" d="{path}"/>')


def dot(x: float, y: float, cls: str, radius: float = 4) -> Html:
    return Html(f'<circle class="{cls}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')


def box(x: float, y: float, width: float, height: float, cls: str) -> Html:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return Html(f'<rect class="{cls}" {place}/>')


def linked(mark: Html, address: str) -> Html:
    """The mark as a link, if there is an address."""
    return element("a", mark, href=address) if address else mark


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table; the first cell of each row is its head, and the others are numbers."""
    titles = (element("th", text(head), scope="col") for head in heads)
    lines = (
        element("tr", element("th", text(first), scope="row"), *_cells(rest))
        for first, *rest in rows
    )
    return element(
        "table",
        element("caption", text(caption)),
        element("thead", element("tr", *titles)),
        element("tbody", *lines),
    )


def _cells(values: Iterable[str]) -> Iterable[Html]:
    return (element("td", text(value), cls="number") for value in values)


def number(value: float) -> str:
    """A coordinate: at most one decimal place."""
    shown = f"{value:.1f}"
    return "0" if shown == "-0.0" else shown.removesuffix(".0")
