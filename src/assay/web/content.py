"""Text of agents and users as HTML: a subset of Markdown, and JSON as a tree.

Nothing of the text becomes markup but what is written here, and links are text with their address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import Any

import msgspec

from assay.charts.markup import Html

#: Longer texts are shown as they are.
MAX_DRAWN = 100_000
#: Marks within longer lines are shown as they are: each could begin an emphasis or a link.
_MAX_LINE = 4000
#: The most entries of a list or an object, and how deep they are drawn.
_MAX_ENTRIES, _MAX_DEPTH = 500, 20
# No two repetitions that follow each other match the same text: it would take quadratic time.
_FENCE = re.compile(r" {0,3}(?:```+|~~~)[^`]*")
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_BULLET = re.compile(r" *[-*+] +(.*)")
_NUMBERED = re.compile(r" *[0-9]{1,9}[.)] +(.*)")
_QUOTE = re.compile(r" {0,3}> ?(.*)")
_RULER = re.compile(r"(?=[^-]*-)[ :|-]+")
_MARKS = re.compile(
    r"(?<!`)(?P<ticks>`+)(?P<code>[^`]{1,500})(?P=ticks)"
    r"|\*\*(?P<strong>[^*]{1,500})\*\*|\*(?P<em>[^*\s][^*]{0,500})\*"
    r"|!?\[(?P<text>[^\[\]]{0,300})\]\((?P<to>[^()\s]{1,500})\)"
)


def visible(text: str) -> str:
    """The text with characters that would hide or reverse other text written out."""
    return text if text.isprintable() else text.translate(_INVISIBLE)


_CONTROLS = [*range(32), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F]
_CONTROLS += [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, *range(0xD800, 0xE000)]
_INVISIBLE = {
    code: "" if chr(code) == "\r" else chr(code).encode("unicode_escape").decode()
    for code in _CONTROLS
    if chr(code) not in "\n\t"
}


def answer_html(text: str) -> Html:
    """An answer as a person reads it: JSON as a tree, other text as Markdown."""
    stripped = text.strip()
    if len(text) > MAX_DRAWN:
        return Html(f"<pre>{_escaped(text)}</pre>")
    if stripped[:1] in ("{", "["):
        try:
            return json_tree(json.loads(stripped))
        except (ValueError, RecursionError):
            pass
    return markdown(text)


def json_tree(value: Any) -> Html:
    """A value with its parts in a list that can be folded."""
    return Html(f'<ul class="tree"><li>{_node(value, 0)}</li></ul>')


def _node(value: Any, depth: int) -> str:
    entries: Sequence[tuple[str, Any]]
    if isinstance(value, dict) and value:
        entries = [(str(key), item) for key, item in islice(value.items(), _MAX_ENTRIES)]
        size = f"{{{len(value):,}}}"
    elif isinstance(value, list) and value:
        entries = [(str(number), item) for number, item in enumerate(value[:_MAX_ENTRIES])]
        size = f"[{len(value):,}]"
    else:
        return _escaped(json.dumps(value, ensure_ascii=False))
    if depth >= _MAX_DEPTH:
        return f'<span class="key">{size}</span>'
    items = "".join(
        f'<li><span class="key">{_escaped(key)}:</span> {_node(item, depth + 1)}</li>'
        for key, item in entries
    )
    if len(value) > len(entries):
        items += f"<li>and {len(value) - len(entries):,} more</li>"
    state = " open" if depth < 3 else ""
    head = f'<summary class="key">{size}</summary>'
    return f"<details{state}>{head}<ul>{items}</ul></details>"


def markdown(text: str) -> Html:
    """Headings, lists, quotes, tables, code, emphasis and links; all else is text."""
    lines = text.replace("\r\n", "\n").split("\n")
    return Html("".join(_blocks(lines)))


class _Lines(msgspec.Struct):
    """Lines that are read from the front."""

    left: list[str]
    at: int = 0

    def __bool__(self) -> bool:
        return self.at < len(self.left)

    @property
    def first(self) -> str:
        return self.left[self.at]

    def take(self) -> str:
        self.at += 1
        return self.left[self.at - 1]

    def while_(self, matches: Callable[[str], re.Match[str] | None]) -> Iterator[str]:
        """The first groups of all lines up to one that does not match."""
        while self and (found := matches(self.first)) is not None:
            self.at += 1
            yield found[1]


def _blocks(given: list[str]) -> Iterator[str]:
    lines = _Lines(given)
    while lines:
        line = lines.first
        if not line.strip():
            lines.take()
        elif _FENCE.fullmatch(line):
            yield _fenced(lines)
        elif found := _HEADING.fullmatch(line):
            lines.take()
            yield f'<p class="heading-{len(found[1])}"><strong>{_inline(found[2])}</strong></p>'
        elif _BULLET.fullmatch(line):
            yield _list("ul", lines.while_(_BULLET.fullmatch))
        elif _NUMBERED.fullmatch(line):
            yield _list("ol", lines.while_(_NUMBERED.fullmatch))
        elif _QUOTE.fullmatch(line):
            inner = "<br>".join(_inline(part) for part in lines.while_(_QUOTE.fullmatch))
            yield f"<blockquote>{inner}</blockquote>"
        elif "|" in line and _begins_table(lines):
            yield _table(lines)
        else:
            yield f"<p>{'<br>'.join(map(_inline, _paragraph(lines)))}</p>"


def _paragraph(lines: _Lines) -> Iterator[str]:
    """Lines up to an empty one or another block; the first one always belongs to it."""
    yield lines.take()
    others = (_FENCE, _HEADING, _BULLET, _NUMBERED, _QUOTE)
    while lines and lines.first.strip() and not any(p.fullmatch(lines.first) for p in others):
        yield lines.take()


def _fenced(lines: _Lines) -> str:
    fence = lines.take().strip()[:3]
    inside = []
    while lines and not lines.first.strip().startswith(fence):
        inside.append(lines.take())
    if lines:
        lines.take()
    return f"<pre>{_escaped(chr(10).join(inside))}</pre>"


def _list(tag: str, items: Iterator[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</{tag}>"


def _begins_table(lines: _Lines) -> bool:
    return lines.at + 1 < len(lines.left) and bool(_RULER.fullmatch(lines.left[lines.at + 1]))


def _table(lines: _Lines) -> str:
    heads = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in _row(lines.take()))
    lines.take()
    body = ""
    while lines and "|" in lines.first:
        body += f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in _row(lines.take()))}</tr>"
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")][:50]


def _inline(line: str) -> str:
    if len(line) > _MAX_LINE:
        return _escaped(line)
    shown, end = "", 0
    for match in _MARKS.finditer(line):
        shown += _escaped(line[end : match.start()]) + _mark(match)
        end = match.end()
    return shown + _escaped(line[end:])


def _mark(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return f"<code>{_escaped(match['code'])}</code>"
    if match["strong"] is not None:
        return f"<strong>{_escaped(match['strong'])}</strong>"
    if match["em"] is not None:
        return f"<em>{_escaped(match['em'])}</em>"
    return f'{_escaped(match["text"])} <span class="address">({_escaped(match["to"])})</span>'


def _escaped(text: str) -> str:
    return escape(visible(text))
