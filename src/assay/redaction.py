"""Replaces secrets with `[redacted]` in what is stored, reported or sent to a judge.

Secrets are the values that a project names, in all usual encodings, and whatever looks like a
key, a bearer token or a password. In doubt a value is redacted.

Part of a secret cannot be recognised. So every text that is shown in part goes through `cut`,
which redacts it before it truncates it.

Texts may be hostile, so every expression runs in an engine with linear time. Most texts have no
secret, and a quick search for the expressions of `_CHECKS` proves it. Only the others are given
to RE2, which also says where a match is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Literal

from assay.quick_search import quick_search
from assay.secret_encodings import encodings, json_text, utf8

MARK = "[redacted]"
#: Shorter values are too likely to occur by chance.
SHORTEST_SECRET = 8
#: A value of this length is taken for a secret even without a digit: it is not a word.
LONGER_THAN_WORDS = 20
#: No secret is longer, unless the project names one. Texts are redacted this far beyond a cut.
LONGEST_SECRET = 16 * 1024
#: Replacing one match may create another, so the search is repeated.
_MAX_PASSES = 5
#: With more literals in one expression the Rust engine slows down.
_LITERALS_AT_ONCE = 60

Check = Callable[[str | bytes], bool]
Span = tuple[int, int]

_SPACE = r"(?:[ \t\r\n\f]|\\[nrt])"  # plain, or escaped in JSON
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
        # A JSON Web Token, whose header begins with one of alg, typ, kid, cty, enc, x5t.
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


def _spellings(*words: str) -> str:
    """An expression for the spellings of a name: api_key, apiKey, Api-Key, API_KEY."""
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
_NAME = "|".join(_spellings(*words) for words in _NAMES)
_ASSIGNED = rf"(?:{_NAME})(?:{_QUOTE})?{_SPACE}*[:=]"
_names_a_secret = re.compile(rf"(?:{_NAME})\Z").search

#: Always redacted: the first group that matched.
_SURE = rf"(?:^|[^A-Za-z0-9]|\\[nrt])({_TOKEN})|({_PEM})|{_USER}({_PASSWORD})@"  # one group each
#: Redacted unless it looks like a word.
_LIKELY = (
    rf"(?:{_BEARER}{_SPACE}+"
    rf"|{_ASSIGNED}=?{_SPACE}*(?:{_QUOTE})?(?:(?:{_BEARER}|[Bb]asic|[Tt]oken){_SPACE}+)?)"
    rf"({_VALUE}{{{SHORTEST_SECRET},}})"
)
#: A text that matches none of these has no secret. They are separate to keep each one fast.
_CHECKS = (_TOKEN + "|" + _PEM_BEGIN, rf"{_ASSIGNED}|{_BEARER}{_SPACE}", rf"{_USER}{_PASSWORD}@")
#: JSON with escapes that may hide any character.
_ESCAPED = r"\\[u/]"


class Redactor:
    """Redacts the given secrets and what looks like one. Numbers are not changed."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(sorted(secrets))
        known = _forms(self._secrets)
        #: How many characters at an end of an incomplete text may be part of a secret.
        self._margin = max([LONGEST_SECRET, *map(len, known)])
        self._forms = [utf8(form) for form in known]
        in_json = dict.fromkeys(json_text(form, ascii_only=False) for form in known)
        self._text_checks = (*_fixed_checks(), *_literal_checks(known))
        self._json_checks = (*_fixed_checks(), quick_search(_ESCAPED), *_literal_checks(in_json))

    def __reduce__(self) -> Any:
        return _with_secrets, (self._secrets,)

    def text(self, text: str) -> str:
        """The text with every secret replaced; the same object if there is none."""
        if text.isascii():
            return self._redact(text) if _any(self._text_checks, text) else text
        try:
            data = text.encode()  # else the check would make the text cache its UTF-8
        except UnicodeEncodeError:  # half of a surrogate pair, which the checks cannot read
            return self._redact(text)
        return self._redact(text) if _any(self._text_checks, data) else text

    def start(self, text: str, limit: int) -> str:
        """The first `limit` characters of the redacted text; only as much as needed is read."""
        window = limit + self._margin
        while window < len(text):
            found = self.text(text[:window])
            if len(found) >= limit + self._margin:
                return found[:limit]
            window *= 4  # redaction makes texts shorter
        return self.text(text)[:limit]

    def end(self, text: str, limit: int, *, start_missing: bool = False) -> str:
        """The last `limit` characters of the redacted text.

        If its beginning was dropped, what is left may begin amid a secret, and is not shown.
        """
        window = limit + self._margin
        while window < len(text):
            found = self.text(text[-window:])
            if len(found) >= limit + self._margin:
                return found[-limit:]
            window *= 4
        return self.text(text)[self._margin if start_missing else 0 :][-limit:]

    def json(self, value: Any) -> Any:
        """A copy of a JSON value with its texts and keys redacted; tuples become lists."""
        keys = _Keys(self)
        root = [value]
        todo: list[Any] = [root]
        while todo:  # no recursion, as values may be nested too deep for it
            box = todo.pop()
            for place, part in list(box.items() if isinstance(box, dict) else enumerate(box)):
                if isinstance(part, str):
                    box[place] = self._redact_value(place, part)
                elif isinstance(part, dict):
                    box[place] = {keys.redacted(key): item for key, item in part.items()}
                    todo.append(box[place])
                elif isinstance(part, (list, tuple)):
                    box[place] = list(part)
                    todo.append(box[place])
        return root[0]

    def encoded(self, data: bytes) -> bytes:
        """JSON bytes with their texts and keys redacted; every other byte stays the same."""
        if _is_utf8(data) and not _any(self._json_checks, data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        try:
            text = "".join(self._redacted_parts(text))
        except ValueError:  # not JSON
            text = self.text(text)
        return text.encode("utf-8", "surrogateescape")

    def _redacted_parts(self, text: str) -> Iterator[str]:
        """The parts of a JSON text; only strings that change are encoded again."""
        keys, name, end = _Keys(self), "", 0
        while (start := text.find('"', end)) >= 0:
            between = text[end:start]
            value, stop = scanstring(text, start + 1, False)
            if _is_key(text, stop):
                name, new = value, keys.redacted(value)
            else:
                new = self._redact_value(name if between.strip() == ":" else "", value)
            literal = text[start:stop]
            # Escapes stay escapes: one may be half of a surrogate pair.
            escaped = "\\u" in literal
            yield between
            yield literal if new == value else f'"{json_text(new, ascii_only=escaped)}"'
            end = stop
        yield text[end:]

    def _redact_value(self, name: object, text: str) -> str:
        """The text, redacted; `name` is its key in a mapping, or its index in a list."""
        if isinstance(name, str) and _names_a_secret(name) and _is_likely_secret(text):
            return text if text.startswith(("${", "{{", "<", "[")) else MARK
        return self.text(text)

    def _redact(self, text: str) -> str:
        data = utf8(text)
        for _ in range(_MAX_PASSES):
            before, data = data, _replace_spans(data, self._spans(data))
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
            if _is_likely_secret(match[1].decode("utf-8", "replace")):
                yield match.span(1)


@cache
def patterns_only() -> Redactor:
    """A redactor without the secrets of a project: it redacts what looks like a secret."""
    return Redactor()


@lru_cache(maxsize=8)
def _with_secrets(secrets: tuple[str, ...]) -> Redactor:
    """A redactor that was pickled: a worker process gets the same one with every request."""
    return Redactor(secrets)


_source: ContextVar[Callable[[], Redactor]] = ContextVar("redactor", default=patterns_only)


@contextmanager
def redacting(source: Callable[[], Redactor]) -> Iterator[None]:
    """Have `cut` redact with what `source` returns, in this context and in tasks started in it."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def current() -> Redactor:
    """The redactor of this context."""
    return _source.get()()


def redacted(text: str) -> str:
    """The whole text, redacted as `cut` does."""
    return current().text(text)


def cut(text: str, limit: int, keep: Literal["start", "both"] = "start") -> str:
    """The text redacted, then truncated to `limit` characters with `...` for what is left out.

    A text that fits is returned unchanged: it is redacted as a whole where it is stored or printed.
    Errors keep `both` ends: the last words are often the ones that matter. For the columns of a
    terminal see `terminal.cut`, which takes text that is redacted already.
    """
    if len(text) <= limit:
        return text
    redactor = current()
    short = redactor.start(text, limit + 1)
    if len(short) <= limit:
        return short
    if keep == "start":
        return short[: limit - 3] + "..."
    half = (limit - 5) // 2
    return f"{short[:half]} ... {redactor.end(text, half)}"


def cut_to_end(text: str, limit: int, *, start_missing: bool = False) -> str:
    """The last `limit` characters of the redacted text, whose beginning may be missing already."""
    return current().end(text, limit, start_missing=start_missing)


class _Keys:
    """Redacts the keys of one document; two that are redacted stay different."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._used = redactor, dict[str, int]()

    def redacted(self, key: Any) -> Any:
        new = self._redactor.text(key) if isinstance(key, str) else key
        if new == key:
            return key
        self._used[new] = count = self._used.get(new, 0) + 1
        return new if count == 1 else f"{new} ({count})"


_is_key = re.compile(r"[ \t\r\n]*:").match


def _is_likely_secret(value: str) -> bool:
    """Is a value after a name such as `password` likely a secret, and not a word?"""
    if len(value) >= LONGER_THAN_WORDS:
        return True
    return len(value) >= SHORTEST_SECRET and any(character.isdigit() for character in value)


def _replace_spans(data: bytes, spans: Iterable[Span]) -> bytes:
    """The data with one mark for each group of overlapping spans."""
    parts: list[bytes] = []
    end = hidden = 0
    for start, stop in sorted(spans):
        if start >= hidden:
            parts += (data[end:start], MARK.encode())
        end = hidden = max(stop, hidden)
    return b"".join((*parts, data[end:]))


def _forms(secrets: Iterable[str]) -> list[str]:
    """The secrets in all usual encodings, the longest first."""
    whole = {text for given in secrets for text in (given, given.strip())}
    forms = {form for text in whole if len(text) >= SHORTEST_SECRET for form in encodings(text)}
    # A part of the mark itself would be found again after every replacement.
    return sorted((form for form in forms if form not in MARK), key=lambda f: (-len(f), f))


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False


def _any(checks: Iterable[Check], data: str | bytes) -> bool:
    for check in checks:  # noqa: SIM110 - any() would create a generator for every text
        if check(data):
            return True
    return False


@cache
def _fixed_checks() -> tuple[Check, ...]:
    return tuple(map(quick_search, _CHECKS))


def _literal_checks(literals: Iterable[str]) -> Iterator[Check]:
    readable = [text for text in literals if _is_utf8(utf8(text))]
    # A literal that contains another one need not be searched for itself.
    minimal = [t for t in readable if not any(other in t for other in readable if other != t)]
    patterns = [_literal(text) for text in minimal]
    for start in range(0, len(patterns), _LITERALS_AT_ONCE):
        yield quick_search("|".join(patterns[start : start + _LITERALS_AT_ONCE]))


def _literal(text: str) -> str:
    """The text as an expression for both engines."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


@cache
def _exact() -> tuple[Any, Any]:
    import re2

    options = re2.Options()
    # Match bytes: the text may not be UTF-8, and all expressions are ASCII.
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    sure, likely = (re2.compile(p.encode(), options) for p in (_SURE, _LIKELY))
    return sure, likely
