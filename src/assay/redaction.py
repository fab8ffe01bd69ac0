"""Hides secrets in what is stored, reported or sent to a judge: `[redacted]` stands for them.

Secrets are the values that a project names, in every form they travel in, and whatever
looks like a key, a bearer token or a password. Hiding errs towards too much.

Texts are hostile, so every expression runs in an engine with linear time. Most texts hide
nothing: a quick search for the expressions of `_CHECKS` says so. RE2, which also tells where a
match is, sees only the rest.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any
from urllib.parse import quote, quote_plus

from assay.patterns import quick_search

MARK = "[redacted]"
#: Shorter values are too likely to be a part of something else.
SHORTEST_SECRET = 8
#: Without a digit, so long a value is no word.
LONGER_THAN_WORDS = 20
#: Hiding one thing may uncover the start of another.
_MOST_PASSES = 5
#: The Rust engine finds so many literals at once without slowing down.
_LITERALS_AT_ONCE = 60

Check = Callable[[str | bytes], bool]
Span = tuple[int, int]

_SPACE = r"(?:[ \t\r\n\f]|\\[nrt])"  # as it is, or as JSON writes it
_QUOTE = r"\\*[\"']"
_VALUE = r"[^ \t\r\n\f\"'<>\[\]{}(),;&\\`|]"
_TOKEN = "|".join(
    (
        r"(?:sk-|[spr]k_(?:live|test)_)[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, Stripe
        r"gh[pousr]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"A[KS]IA[A-Z0-9]{16}[A-Za-z0-9]*",  # Amazon
        r"AIza[A-Za-z0-9_-]{30,}",  # Google
        r"xox[a-z]-[A-Za-z0-9-]{10,}",  # Slack
        r"hf_[A-Za-z0-9]{30,}",
        # A JSON Web Token, by the keys that its header begins with: alg, typ, kid, cty, enc, x5t.
        r"eyJ(?:hbGci|0eXAi|raWQi|jdHki|lbmMi|4NXQ)[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*",
    )
)
_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY"
_PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.-]"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM = rf"{_PEM_BEGIN}(?: BLOCK)?-----(?:{_PEM_BODY}*?{_PEM_END}|{_PEM_BODY}*)"
_USER = r"://[^ \t\r\n\f/:@\"'<>]{1,100}:"
_PASSWORD = r"[^ \t\r\n\f/@\"'<>]{3,100}"
_BEARER = r"(?:[Bb]earer|BEARER)"


def _spelled(*words: str) -> str:
    """A name in the ways that it is written: api_key, apiKey, Api-Key, API_KEY."""
    mixed = "[_-]?".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in words)
    return mixed + "|" + "[_-]?".join(word.upper() for word in words)


_NAMES: list[tuple[str, ...]] = [
    ("password",),
    ("passwd",),
    ("passphrase",),
    ("secret",),
    ("authorization",),
]
_NAMES += [(word, "key") for word in ("api", "access", "private", "secret")]
_NAMES += [(w, "token") for w in ("access", "auth", "refresh", "session", "api", "bot")]
_NAME = "|".join(_spelled(*words) for words in _NAMES)
_ASSIGNED = rf"(?:{_NAME})(?:{_QUOTE})?{_SPACE}*[:=]"
_names_a_secret = re.compile(rf"(?:{_NAME})\Z").search

#: What is hidden wherever it stands: the first group that matched.
_SURE = rf"(?:^|[^A-Za-z0-9]|\\[nrt])({_TOKEN})|({_PEM})|{_USER}({_PASSWORD})@"  # one group each
#: What is hidden when it does not look like a word.
_LIKELY = (
    rf"(?:{_BEARER}{_SPACE}+"
    rf"|{_ASSIGNED}=?{_SPACE}*(?:{_QUOTE})?(?:(?:{_BEARER}|[Bb]asic|[Tt]oken){_SPACE}+)?)"
    rf"({_VALUE}{{{SHORTEST_SECRET},}})"
)
#: What a text must have in it to be looked at closely; apart, each has few literals to find.
_CHECKS = (_TOKEN + "|" + _PEM_BEGIN, rf"{_ASSIGNED}|{_BEARER}{_SPACE}", rf"{_USER}{_PASSWORD}@")
#: JSON that may spell any character in another way.
_ESCAPED = r"\\[u/]"


class Redactor:
    """Hides the secrets it is given, and what looks like one. Numbers stay as they are."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = _forms(secrets)
        self._forms = [_bytes(form) for form in known]
        in_json = dict.fromkeys(_json(form, ascii_only=False) for form in known)
        self._text_checks = (*_fixed_checks(), *_literal_checks(known))
        self._json_checks = (*_fixed_checks(), quick_search(_ESCAPED), *_literal_checks(in_json))

    def text(self, text: str) -> str:
        """The text with a mark in the place of every secret; the same text when it has none."""
        if text.isascii():
            return self._hidden(text) if _any(self._text_checks, text) else text
        try:
            data = text.encode()  # given the text itself, the check would leave a copy in it
        except UnicodeEncodeError:  # half of a surrogate pair, which no check can read
            return self._hidden(text)
        return self._hidden(text) if _any(self._text_checks, data) else text

    def json(self, value: Any) -> Any:
        """A copy of a JSON value with its texts and keys redacted; tuples become lists."""
        keys = _Keys(self)
        root = [value]
        todo: list[Any] = [root]
        while todo:  # no recursion: a value may be nested deeper than Python likes
            box = todo.pop()
            for place, part in list(box.items() if isinstance(box, dict) else enumerate(box)):
                if isinstance(part, str):
                    box[place] = self._value(place, part)
                elif isinstance(part, dict):
                    box[place] = {keys.redacted(key): item for key, item in part.items()}
                    todo.append(box[place])
                elif isinstance(part, (list, tuple)):
                    box[place] = list(part)
                    todo.append(box[place])
        return root[0]

    def encoded(self, data: bytes) -> bytes:
        """JSON bytes with their texts and keys redacted; all else stays byte for byte."""
        if _is_utf8(data) and not _any(self._json_checks, data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        try:
            text = "".join(self._literals(text))
        except ValueError:  # it is no JSON
            text = self.text(text)
        return text.encode("utf-8", "surrogateescape")

    def all_encoded(self, documents: list[bytes]) -> list[bytes]:
        """The same for several; quicker, as there is mostly nothing to hide in any."""
        together = b"\n".join(documents)
        if _is_utf8(together) and not _any(self._json_checks, together):
            return documents
        return [self.encoded(document) for document in documents]

    def _literals(self, text: str) -> Iterator[str]:
        """The parts of a JSON text; only those that hide something are written anew."""
        keys, name, end = _Keys(self), "", 0
        while (start := text.find('"', end)) >= 0:
            between = text[end:start]
            value, stop = scanstring(text, start + 1, False)
            if _colon(text, stop):
                name, new = value, keys.redacted(value)
            else:
                new = self._value(name if between.strip() == ":" else "", value)
            literal = text[start:stop]
            # What was written in ASCII stays so: it may be half of a surrogate pair.
            escaped = "\\u" in literal
            yield between
            yield literal if new == value else f'"{_json(new, ascii_only=escaped)}"'
            end = stop
        yield text[end:]

    def _value(self, name: object, text: str) -> str:
        """A text that stands under a name, or under a number in a list."""
        if isinstance(name, str) and _names_a_secret(name) and _is_long(text):
            return text if text.startswith(("${", "{{", "<", "[")) else MARK
        return self.text(text)

    def _hidden(self, text: str) -> str:
        data = _bytes(text)
        for _ in range(_MOST_PASSES):
            before, data = data, _marked(data, self._spans(data))
            if data == before:
                break
        return data.decode("utf-8", "surrogatepass")

    def _spans(self, data: bytes) -> Iterator[Span]:
        for form in self._forms:
            start = data.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = data.find(form, start + 1)
        sure, likely = _exact()
        for match in sure.finditer(data):
            yield next(span for span in map(match.span, (1, 2, 3)) if span[0] >= 0)
        for match in likely.finditer(data):
            if _is_long(match[1].decode("utf-8", "replace")):
                yield match.span(1)


class _Keys:
    """The keys of one document: two that are hidden must not become one."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._used = redactor, dict[str, int]()

    def redacted(self, key: Any) -> Any:
        new = self._redactor.text(key) if isinstance(key, str) else key
        if new == key:
            return key
        self._used[new] = count = self._used.get(new, 0) + 1
        return new if count == 1 else f"{new} ({count})"


_colon = re.compile(r"[ \t\r\n]*:").match


def _is_long(value: str) -> bool:
    """Whether a value under a telling name is one, and not a word about it."""
    if len(value) >= LONGER_THAN_WORDS:
        return True
    return len(value) >= SHORTEST_SECRET and any(character.isdigit() for character in value)


def _marked(data: bytes, spans: Iterable[Span]) -> bytes:
    """The data with one mark for each run of spans that overlap."""
    parts: list[bytes] = []
    end = hidden = 0
    for start, stop in sorted(spans):
        if start >= hidden:
            parts += (data[end:start], MARK.encode())
        end = hidden = max(stop, hidden)
    return b"".join((*parts, data[end:]))


def _forms(secrets: Iterable[str]) -> list[str]:
    """The secrets in every form they travel in, the longest first."""
    forms: set[str] = set()
    for secret in {text for given in secrets for text in (given, given.strip())}:
        if len(secret) < SHORTEST_SECRET:
            continue
        forms |= {secret, *_json_forms(secret)}
        forms |= {*_url_forms(secret), *_base64_forms(_bytes(secret))}
    # What is a part of the mark itself could never be hidden.
    return sorted((form for form in forms if form not in MARK), key=lambda f: (-len(f), f))


def _json_forms(secret: str) -> Iterator[str]:
    """In a JSON text, and in one that is a text in another: arguments of calls are sent so."""
    for ascii_only in (True, False):
        once = _json(secret, ascii_only=ascii_only)
        yield from (once, _json(once, ascii_only=True), _json(once, ascii_only=False))


def _url_forms(secret: str) -> Iterator[str]:
    data = _bytes(secret)
    for form in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Whole, and as it looks inside something longer, wherever in it the secret begins."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        yield whole
        yield whole.rstrip("=")
        for before, first in ((0, 0), (1, 2), (2, 3)):
            last = (before + len(data)) * 8 // 6
            yield encode(b"\0" * before + data).decode()[first:last]


def _json(text: str, *, ascii_only: bool) -> str:
    """The text as it stands between the quotes of a JSON text."""
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False


def _any(checks: Iterable[Check], data: str | bytes) -> bool:
    for check in checks:  # noqa: SIM110 - any() would make a generator of it, for every text
        if check(data):
            return True
    return False


@cache
def _fixed_checks() -> tuple[Check, ...]:
    return tuple(map(quick_search, _CHECKS))


def _literal_checks(literals: Iterable[str]) -> Iterator[Check]:
    readable = [text for text in literals if _is_utf8(_bytes(text))]
    # Where a longer form stands, the shorter one in it is found.
    least = [t for t in readable if not any(other in t for other in readable if other != t)]
    listed = [_literal(text) for text in least]
    for start in range(0, len(listed), _LITERALS_AT_ONCE):
        yield quick_search("|".join(listed[start : start + _LITERALS_AT_ONCE]))


def _literal(text: str) -> str:
    """An expression for the text itself, as both engines read it."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


@cache
def _exact() -> tuple[Any, Any]:
    import re2

    options = re2.Options()
    # Bytes are characters to it: the text may be no UTF-8, and every expression is ASCII.
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    sure, likely = (re2.compile(p.encode(), options) for p in (_SURE, _LIKELY))
    return sure, likely
