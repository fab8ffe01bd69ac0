"""The usual encodings of a secret: JSON, URL, base64, Python."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus


def encodings(secret: str) -> set[str]:
    """The secret as it is, and in every usual encoding."""
    forms = {secret, repr(secret)[1:-1], *_json_forms(secret)}
    return forms | {*_url_forms(secret), *_base64_forms(utf8(secret))}


def _json_forms(secret: str) -> Iterator[str]:
    """As a JSON string, and as JSON inside a JSON string: arguments of tool calls are sent so."""
    for ascii_only in (True, False):
        once = json_text(secret, ascii_only=ascii_only)
        yield from (once, json_text(once, ascii_only=True), json_text(once, ascii_only=False))


def _url_forms(secret: str) -> Iterator[str]:
    data = utf8(secret)
    for form in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _base64_forms(data: bytes) -> Iterator[str]:
    """On its own, and as a part of something longer, at each of the three alignments."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        yield whole
        yield whole.rstrip("=")
        for offset, first in ((0, 0), (1, 2), (2, 3)):
            last = (offset + len(data)) * 8 // 6
            yield encode(b"\0" * offset + data).decode()[first:last]


def json_text(text: str, *, ascii_only: bool) -> str:
    """The text as a JSON string, without the quotes."""
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
