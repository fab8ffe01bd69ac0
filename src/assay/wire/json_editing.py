"""Adds or removes one item of a list in a JSON text, and keeps the layout of the rest."""

from __future__ import annotations

import json
import re
from typing import Any

from assay.wire.document import DocPath, Document

_DECODER = json.JSONDecoder()


def without_item(text: str, document: Document, base: DocPath, index: int) -> str:
    """The text of a document without one item of the list at `base`."""
    starts = _starts(document, base)
    end = _end(text, starts[index])
    if index + 1 < len(starts):
        return text[: starts[index]] + text[starts[index + 1] :]
    if index > 0:
        return text[: _end(text, starts[index - 1])] + text[end:]
    opening = text.rindex("[", 0, starts[0])
    return text[: opening + 1] + text[end:].lstrip()


def with_item(text: str, document: Document, base: DocPath, item: Any) -> str:
    """The text with an item appended to the list at `base`, laid out like the one before it."""
    starts = _starts(document, base)
    if not starts:
        return _with_first_item(text, document.mark(base).index, item)
    start, end = starts[-1], _end(text, starts[-1])
    whitespace = text[len(text[:start].rstrip(" \t\r\n")) : start]
    margin = whitespace.rpartition("\n")[2] if "\n" in whitespace else ""
    dumped = _dump(item, _indent(text[start:end], margin), margin, _newline(text))
    return f"{text[:end]},{whitespace or ' '}{dumped}{text[end:]}"


def _with_first_item(text: str, opening: int, item: Any) -> str:
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    outer = line[: len(line) - len(line.lstrip())]
    newline, margin = _newline(text), outer + "  "
    dumped = _dump(item, "  ", margin, newline)
    inside = f"{newline}{margin}{dumped}{newline}{outer}"
    return f"{text[: opening + 1]}{inside}]{text[_end(text, opening) :]}"


def _starts(document: Document, base: DocPath) -> list[int]:
    return [document.mark((*base, i)).index for i in range(len(document.get(base)))]


def _end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(item: str, margin: str) -> str | None:
    """How much further than the item its keys are indented; None when it is on one line."""
    second = re.search(r"\n([ \t]*)", item)
    return None if second is None else second[1].removeprefix(margin) or "  "


def _dump(item: Any, indent: str | None, margin: str, newline: str) -> str:
    dumped = json.dumps(item, indent=indent, ensure_ascii=False)
    return dumped.replace("\n", newline + margin)
