"""JSON text to a `Document`.

The stdlib parser does the work. Positions, duplicate keys and other faults that it does not
report are found by a second, slower scan, which runs only when something is wrong. Lines that
cannot have such a fault, nearly all of them, are left to msgspec, which is faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec

from assay.errors import EvalFileErrors
from assay.problems import Problem, Problems
from assay.quick_search import quick_search
from assay.wire.document import (
    MAX_DEPTH,
    MAX_SCALAR,
    Document,
    LineIndex,
    Marks,
    TextMark,
    bad_number,
    fail,
    problem_at,
    too_deep,
)
from assay.wire.text_files import decode

_SUSPECT_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_TOKEN = re.compile(r'[ \t\r\n]*([{}\[\]:,"]|[^\s{}\[\]:,"]+)')
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Finds an escaped colon, which `keeps_all_keys` would miscount, or NUL. False alarms only cost
#: time: they go to the slower parser.
_has_escaped_colon_or_nul = quick_search(r"u003a|u003A|\\u0000")
#: Finds a number that may not fit 64 bits.
has_long_number = quick_search("[0-9]{19}")
_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


def parse(text: str, file: str) -> Document:
    """The JSON value that is the whole `text`."""
    return Reader(file).parse(text)


class Reader:
    """Parses the texts of one file; JSONL lines share one reader, as creating it takes time."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.hooks, self.decode = _decoder()

    def line(self, data: bytes, number: int) -> Document:
        """Parse a line of the file."""
        value = plain_object(data)
        if value is None:
            return self.parse(line_text(data, self.file, number), number)

        def marks() -> Marks:
            return _Scanner(line_text(data, self.file, number), self.file, number).marks()

        return Document(self.file, value, [], marks, TextMark(number - 1, 0, 0))

    def parse(self, text: str, first_line: int = 1) -> Document:
        """Parse `text`, which starts on `first_line` of the file."""
        hooks, file = self.hooks, self.file
        hooks.suspect = False
        try:
            data = self.decode(text)
        except json.JSONDecodeError as error:
            raise _syntax_error(text, file, first_line, error) from None
        except RecursionError:
            data, hooks.suspect = None, True
        if not hooks.suspect:
            deep = text.count("[") + text.count("{") > MAX_DEPTH and too_deep(data)
            hooks.suspect = deep or len(text) > MAX_SCALAR or bool(_SUSPECT_ESCAPE.search(text))
        problems = _Scanner(text, file, first_line).problems() if hooks.suspect else []
        if any(problem.code == "bad-character" for problem in problems):
            data = _escape_surrogates(data)
        start = TextMark(first_line - 1, 0, 0)
        if text[:1].isspace():
            start = LineIndex(text, first_line).mark(len(text) - len(text.lstrip()))
        return Document(file, data, problems, _Scanner(text, file, first_line).marks, start)


def _escape_surrogates(value: Any) -> Any:
    """Escape lone surrogates, which are reported here, so that no later step fails on them."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list):
        return [_escape_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {key: _escape_surrogates(item) for key, item in value.items()}
    return value


def line_text(data: bytes, file: str, number: int) -> str:
    """Decode a line, without its line break."""
    return decode(data, file, number).rstrip("\r\n")


def plain_object(data: bytes) -> dict[str, Any] | None:
    """Parse a line with the fast parser; None when the slower one has to look for faults."""
    if suits_fast_parser(data) and not has_long_number(data) and is_shallow(data):
        return fast_object(data)
    return None


def suits_fast_parser(data: bytes) -> bool:
    """Whether the fast parser reports every fault but depth, duplicate keys and large numbers."""
    return data.startswith(b"{") and len(data) <= MAX_SCALAR and not _has_escaped_colon_or_nul(data)


def is_shallow(data: bytes) -> bool:
    """Whether there are too few brackets to be nested too deeply."""
    return data.count(b"{") + data.count(b"[") <= MAX_DEPTH


def fast_object(data: bytes) -> dict[str, Any] | None:
    """Parse an object that suits the fast parser; None when it is invalid or a key repeats."""
    try:
        value: dict[str, Any] = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if keeps_all_keys(value, data) else None


def keeps_all_keys(value: Any, data: bytes) -> bool:
    """Whether a value has all keys of the text it was parsed from.

    A duplicate key is lost in the value, which then has fewer colons when it is encoded again.
    """
    return _encode(value).count(b":") == data.count(b":")


def fits_64_bits(number: int) -> bool:
    """Whether an integer fits a signed or an unsigned 64-bit integer."""
    return -(2**63) <= number < 2**64


def _decoder() -> tuple[_Hooks, Callable[[str], Any]]:
    """The stdlib decoder and its hooks, which do not refer to it: a cycle would outlive its use."""
    hooks = _Hooks()
    decoder = json.JSONDecoder(
        object_pairs_hook=hooks.mapping,
        parse_int=hooks.integer,
        parse_float=hooks.number,
        parse_constant=hooks.constant,
    )
    return hooks, decoder.decode


class _Hooks:
    """Callbacks of the stdlib decoder; they only flag that something is wrong."""

    suspect = False

    def mapping(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            self.suspect = True
            result = dict(reversed(pairs))  # keep the first one, as the scanner's marks do
            return {key: result[key] for key, _ in pairs}
        return result

    def integer(self, text: str) -> int:
        if len(text) < 19:
            return int(text)
        if len(text) > 20 or not fits_64_bits(int(text)):
            self.suspect = True
            return 0
        return int(text)

    def number(self, text: str) -> float:
        number = float(text)
        if number - number != 0:
            self.suspect = True
            return 0.0
        return number

    def constant(self, text: str) -> float:
        self.suspect = True
        return 0.0


class _Scanner:
    """Scans well-formed JSON token by token, for marks and faults."""

    def __init__(self, text: str, file: str, first_line: int) -> None:
        self.text, self.file, self.first_line = text, file, first_line
        self.found = Problems(file)

    def problems(self) -> list[Problem]:
        try:
            self.marks()
        except EvalFileErrors as error:
            self.found += error.problems
            raise EvalFileErrors(self.found.sorted()) from None
        return self.found.sorted()

    def marks(self) -> Marks:
        lines = LineIndex(self.text, self.first_line)
        hooks, decode = _decoder()
        stack: list[tuple[Marks, dict[str, TextMark] | None]] = []
        marks: Marks = []
        keys: dict[str, TextMark] | None = None  # the keys so far when inside an object
        expect_key = False
        at = 0
        while token := _TOKEN.match(self.text, at):
            at = token.end()
            word, mark = token[1], lines.mark(token.start(1))
            if word == '"':
                value, at = scanstring(self.text, at, False)
                self._check_text(value, mark)
                if expect_key and keys is not None:
                    expect_key = False
                    if value in keys:
                        self._duplicate(value, keys[value], mark)
                        at = self._skip_value(at)
                        continue
                    keys[value] = mark
            elif word in "{[":
                self._check_depth(len(stack), mark)
                stack.append((marks, keys))
                marks, keys = [mark], ({} if word == "{" else None)
                expect_key = word == "{"
                continue
            elif word in "}]":
                parent, keys = stack.pop()
                parent.append(marks)
                marks, expect_key = parent, False
                continue
            elif word in ",:":
                expect_key = word == "," and keys is not None
                continue
            elif word not in ("true", "false", "null"):
                decode(word)
                if hooks.suspect:
                    hooks.suspect = False
                    self._bad_number(word, mark, next(reversed(keys)) if keys else None)
            marks.append(mark)
        return marks[0] if marks else TextMark(self.first_line - 1, 0, 0)

    def _skip_value(self, at: int) -> int:
        """The end of the value of a duplicate key, which gets no marks."""
        colon = _TOKEN.match(self.text, at)
        start = colon.end() if colon else at
        blank = re.compile(r"[ \t\r\n]*").match(self.text, start)
        try:
            return json.JSONDecoder().raw_decode(self.text, blank.end() if blank else start)[1]
        except (ValueError, RecursionError):
            return start

    def _check_depth(self, depth: int, mark: TextMark) -> None:
        if depth >= MAX_DEPTH:
            raise fail(self.file, mark, "too-deep", f"nested deeper than {MAX_DEPTH} levels")

    def _check_text(self, value: str, mark: TextMark) -> None:
        if len(value) > MAX_SCALAR:
            message = f"a text of {len(value):,} characters; the limit is {MAX_SCALAR:,}"
            self._note(mark, "too-large", message)
        elif lone := _SURROGATE.search(value):
            message = f"\\u{ord(lone[0]):04x} is half of a surrogate pair"
            self._note(mark, "bad-character", message, "write the character itself")
        elif "\0" in value:
            self._note(
                mark, "bad-character", "the text holds a NUL character", "remove the \\u0000"
            )

    def _bad_number(self, word: str, mark: TextMark, key: str | None) -> None:
        self._note(mark, "bad-number", bad_number(word, key), "put it in quotes if it is text")

    def _duplicate(self, key: str, first: TextMark, mark: TextMark) -> None:
        where = f"line {first.line + 1}, column {first.column + 1}"
        message = f"the key {key!r} appears twice; first on {where}"
        self._note(mark, "duplicate-key", message, "keep one of the two")

    def _note(self, mark: TextMark, code: str, message: str, hint: str = "") -> None:
        problem = problem_at(self.file, mark, code, message, hint)
        self.found.append(problem)
        if self.found.full:
            raise EvalFileErrors([problem])


def _syntax_error(
    text: str, file: str, first_line: int, error: json.JSONDecodeError
) -> EvalFileErrors:
    mark = LineIndex(text, first_line).mark(error.pos)
    hint = ""
    before = text[: error.pos].rstrip()
    if before.endswith(",") and text[error.pos : error.pos + 1] in ("}", "]"):
        hint = "remove the comma before the closing bracket"
    elif error.msg == "Extra data" and text[error.pos :].strip() == ",":
        hint = "remove the comma at the end"
    elif text[error.pos : error.pos + 1] == "'":
        hint = "JSON text goes in double quotes"
    elif text[error.pos : error.pos + 2] in ("//", "/*"):
        hint = "JSON has no comments"
    message = error.msg[:1].lower() + error.msg[1:]
    return fail(file, mark, "json-syntax", message, hint)
