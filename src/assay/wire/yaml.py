"""YAML text to a `Document`, through libyaml's event stream.

The dialect is YAML 1.2 core with one difference: digits with a leading zero are text.
So `no`, `on`, `2025-01-01` and `012` are text. Merge keys are supported. Refused with a
position: duplicate keys, tags, several documents, cyclic or explosive aliases, deep nesting.
PyYAML's own constructors are not used: they crash the process on deep nesting, follow
YAML 1.1, and keep no positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from assay.errors import EvalFileErrors
from assay.problems import Problem, Problems
from assay.wire.document import (
    MANY,
    MAX_DEPTH,
    MAX_SCALAR,
    Document,
    LineIndex,
    Mark,
    Marks,
    TextMark,
    bad_number,
    fail,
    measure,
    problem_at,
)

#: How many nodes all aliases of a document may expand to.
MAX_ALIASED = 1_000_000

_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_NUMBER_STARTS = frozenset("0123456789-+.")
_NUL_ESCAPE = re.compile(r"\\(?:0|x00|u0000|U00000000)")


def parse(text: str, file: str) -> Document:
    """Parse the document in `text`; raises on broken syntax, notes problems that can be skipped."""
    builder = _Builder(text, file)
    try:
        data, marks = builder.build()
    except yaml.reader.ReaderError as error:
        builder.problems.append(_unprintable_problem(text, file, error))
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax_problem(text, file, error))
    except EvalFileErrors as error:
        builder.problems += error.problems
    else:
        return Document(file, data, builder.problems.sorted(), marks)
    raise EvalFileErrors(builder.problems.sorted())


class _Builder:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems = Problems(file)
        self.placeholders = _placeholders(text)
        self.next_event: Callable[[], Any] = yaml.CSafeLoader(
            text.translate({ord(real): free for free, real in self.placeholders.items()})
            if self.placeholders
            else text
        ).get_event
        # Searched once in the whole text, so that the loop need not check every scalar.
        long, nul = len(text) > MAX_SCALAR, _NUL_ESCAPE.search(text)
        self.check_texts = long or nul is not None or bool(self.placeholders)
        self.special = self.check_texts or "&" in text or "!" in text or "<<" in text
        self.anchors: dict[str, tuple[Any, Marks]] = {}
        self.open_anchors: set[str] = set()
        self.anchored: dict[int, str] = {}  # anchors of open containers, by id()
        self.merges: dict[int, list[tuple[Any, Marks]]] = {}  # the mappings that they merge
        self.aliased = 0
        self.measured: dict[int, tuple[int, int]] = {}

    def build(self) -> tuple[Any, Marks]:
        self.next_event()  # StreamStart
        event = self.next_event()
        if type(event) is StreamEndEvent:
            return None, TextMark(0, 0, 0)
        data, marks = self._node()
        event = self.next_event()
        if type(event) is not DocumentEndEvent:  # pragma: no cover - libyaml guarantees it
            raise AssertionError(event)
        event = self.next_event()
        if type(event) is not StreamEndEvent:
            self._note(
                event.start_mark,
                "multiple-documents",
                "a second YAML document starts here; an eval file holds one",
                "remove the '---' or put the documents in files of their own",
            )
        return data, marks

    def _node(self) -> tuple[Any, Marks]:
        """Build the root node, with an explicit stack instead of recursion.

        The loop runs once for every value of the file: so names are local, and only the common
        cases are inline.
        """
        next_event, special = self.next_event, self.special
        merges, anchored = self.merges, self.anchored
        scalar, no_key, constants, number_starts = ScalarEvent, _NO_KEY, _CONSTANTS, _NUMBER_STARTS
        stack: list[tuple[Any, Any, Marks]] = []
        container: Any = None  # the open dict or list; None above the root
        marks: Marks = None  # its marks
        key: Any = None  # in a dict: the key whose value is next, or _NO_KEY when a key is next
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is scalar:
                value, mark = event.value, event.start_mark
                if key is no_key:
                    unusual = special or value in container
                    key = self._special_key(event, container, marks) if unusual else value
                    marks.append(mark)
                    continue
                if event.implicit[0]:
                    if value in constants:
                        value = constants[value]
                    elif value[0] in number_starts:
                        value = self._number(value, mark, key)
                if special:
                    value = self._special_scalar(event, value)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                if key is no_key or event.tag is not None or len(stack) >= MAX_DEPTH:
                    self._check_start(event, key is no_key, len(stack))
                stack.append((container, key, marks))
                marks = [event.start_mark]
                container, key = ({}, no_key) if kind is MappingStartEvent else ([], None)
                if event.anchor is not None:
                    self._open_anchor(event.anchor, container)
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                value, mark = container, marks
                if merges or anchored:
                    self._close(value, mark)
                container, key, marks = stack.pop()
            else:
                value, mark = self._alias(event, len(stack))
                if key is no_key:
                    key = self._alias_key(event, value, container, marks)
                    marks.append(event.start_mark)
                    continue

            if key is None:  # in a list, or above the root
                if container is None:
                    return value, mark
                container.append(value)
                marks.append(mark)
                continue
            if type(key) is str:
                container[key] = value
                marks.append(mark)
            else:
                self._merge_or_drop(key, value, mark, container, marks)
            key = no_key

    def _special_key(self, event: Any, container: dict[str, Any], marks: Marks) -> Any:
        """A key that may be a duplicate, a merge key, or need the checks of `_special_scalar`."""
        mark, key = event.start_mark, self._special_scalar(event, event.value)
        if key in container:
            return self._duplicate(container, marks, key, mark)
        if key == "<<" and event.implicit[0]:
            return self._merge_key(id(container) in self.merges, mark)
        return key

    def _special_scalar(self, event: Any, value: Any) -> Any:
        """A scalar that may have a tag or an anchor, or a text to check."""
        if self.check_texts and type(value) is str:
            value = self._text(value, event.start_mark)
        if event.tag is not None:
            self._tag(event)
        if event.anchor is not None:
            self._close_anchor(event.anchor, value, event.start_mark)
        return value

    def _merge_or_drop(
        self, key: Any, value: Any, mark: Mark, container: Any, marks: Marks
    ) -> None:
        """Keep the value of `<<` to be merged when the mapping ends; drop that of a duplicate."""
        key_mark = marks.pop()
        if key is _MERGE:
            self.merges[id(container)] = self._mergeable(value, mark, key_mark)

    def _open_anchor(self, name: str, container: Any) -> None:
        self.open_anchors.add(name)
        self.anchored[id(container)] = name

    def _close(self, container: Any, marks: Marks) -> None:
        """Complete a container: add what it merges, and make its anchor available."""
        if sources := self.merges.pop(id(container), None):
            self._merge(container, marks, sources)
        if name := self.anchored.pop(id(container), None):
            self._close_anchor(name, container, marks)

    def _close_anchor(self, name: str, value: Any, marks: Marks) -> None:
        self.open_anchors.discard(name)
        self.anchors[name] = (value, marks)

    def _check_start(self, event: Any, is_key: bool, depth: int) -> None:
        """Refuse a mapping or sequence that is a key, has a tag, or is too deep."""
        if is_key:
            hint = "put text that begins with '{' or '[' in quotes"
            raise fail(self.file, event.start_mark, "yaml-key", "a key must be text", hint)
        if depth >= MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
            raise fail(self.file, event.start_mark, "too-deep", message)
        self._tag(event)

    def _tag(self, event: Any) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        self._note(
            event.start_mark,
            "yaml-tag",
            f"the tag {tag!r} is not supported",
            "write the plain value, in quotes if it is text",
        )

    def _duplicate(self, container: dict[str, Any], marks: Marks, key: str, mark: Mark) -> Any:
        message = f"the key {key!r} appears twice"
        if self.problems.errors < MANY:  # finding the first one is a linear search
            first = marks[2 * list(container).index(key) + 1]
            message += f"; first on line {first.line + 1}"
        self._note(mark, "duplicate-key", message, "keep one of the two")
        return _DUPLICATE

    def _number(self, text: str, mark: Mark, key: Any) -> Any:
        if _INT.match(text) or _BASED.match(text):
            if len(text) > 24:
                return self._bad_number(text, mark, key)
            number = int(text, 10 if text[1:2] not in ("o", "x") else 0)
            return number if -(2**63) <= number < 2**64 else self._bad_number(text, mark, key)
        if _FLOAT.match(text):
            value = float(text)
            return value if value - value == 0 else self._bad_number(text, mark, key)
        return self._bad_number(text, mark, key) if _NOT_FINITE.match(text) else text

    def _bad_number(self, text: str, mark: Mark, key: Any) -> int:
        message = bad_number(text, key if type(key) is str else None)
        self._note(mark, "bad-number", message, "put it in quotes if it is text")
        return 0

    def _text(self, value: str, mark: Mark) -> str:
        """The text with placeholders replaced; refused when it is too long or has a NUL."""
        if len(value) > MAX_SCALAR:
            message = f"a text of {len(value):,} characters; the limit is {MAX_SCALAR:,}"
            raise fail(self.file, mark, "too-large", message)
        if "\0" in value:
            self._note(mark, "bad-character", "the text holds a NUL character", "remove the \\0")
        for placeholder, real in self.placeholders.items():
            value = value.replace(placeholder, real)
        return value

    def _alias_key(self, event: Any, value: Any, container: dict[str, Any], marks: Marks) -> Any:
        """An alias used as a key must stand for a text."""
        if type(value) is not str:
            raise fail(self.file, event.start_mark, "yaml-key", "a key must be text")
        if value in container:
            return self._duplicate(container, marks, value, event.start_mark)
        return value

    def _alias(self, event: Any, depth: int) -> tuple[Any, Marks]:
        name, mark = event.anchor, event.start_mark
        if name in self.open_anchors:
            raise fail(self.file, mark, "yaml-alias", f"the alias *{name} contains itself")
        if name not in self.anchors:
            message = f"no anchor &{name} comes before this alias"
            hint = "put text that begins with '*' in quotes"
            raise fail(self.file, mark, "yaml-alias", message, hint)
        value, marks = self.anchors[name]
        size, deep = measure(value, self.measured)
        self._count_aliased(size, mark)
        if depth + deep > MAX_DEPTH:
            raise fail(self.file, mark, "too-deep", f"nested deeper than {MAX_DEPTH} levels")
        return value, marks

    def _count_aliased(self, nodes: int, mark: Mark) -> None:
        self.aliased += nodes
        if self.aliased > MAX_ALIASED:
            message = f"aliases expand to more than {MAX_ALIASED:,} values"
            raise fail(
                self.file, mark, "yaml-alias", message, "write the values out, or fewer of them"
            )

    def _merge_key(self, again: bool, mark: Mark) -> object:
        if again:
            hint = "merge several mappings with '<<: [*a, *b]'"
            self._note(mark, "duplicate-key", "the key '<<' appears twice", hint)
        return _DUPLICATE if again else _MERGE

    def _mergeable(self, value: Any, marks: Marks, key_mark: Mark) -> list[tuple[Any, Marks]]:
        sources = [(value, marks)]
        if isinstance(value, list):
            sources = list(zip(value, marks[1:], strict=True))
        if not all(isinstance(source, dict) for source, _ in sources):
            self._note(key_mark, "wrong-type", "'<<' merges a mapping or a list of mappings")
            return []
        return sources

    def _merge(
        self, target: dict[str, Any], marks: Marks, sources: list[tuple[Any, Marks]]
    ) -> None:
        """Add the keys that the target does not have; earlier sources win."""
        for source, source_marks in sources:
            self._count_aliased(len(source), marks[0])
            for index, (key, value) in enumerate(source.items()):
                if key not in target:
                    target[key] = value
                    marks.extend(source_marks[2 * index + 1 : 2 * index + 3])

    def _note(self, mark: Mark, code: str, message: str, hint: str = "") -> None:
        problem = problem_at(self.file, mark, code, message, hint)
        self.problems.append(problem)
        if self.problems.full:
            raise EvalFileErrors([problem])


#: Line breaks for libyaml, as in YAML 1.1; ordinary characters in YAML 1.2.
_SEPARATORS = "\x85\u2028\u2029"


def _placeholders(text: str) -> dict[str, str]:
    """For each separator in the text an unused character that replaces it while parsing."""
    used = [character for character in _SEPARATORS if character in text]
    if not used:
        return {}
    free = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return dict(zip(free, used, strict=False))


_NO_KEY, _MERGE, _DUPLICATE = object(), object(), object()


def _syntax_problem(text: str, file: str, error: yaml.MarkedYAMLError) -> Problem:
    mark: Mark = error.problem_mark or TextMark(0, 0, 0)
    message = error.problem or "not valid YAML"
    if error.context:
        message += f" ({error.context})"
    if error.context_mark and any(words in message for words in _REPORTED_AT_START):
        mark = error.context_mark  # where it starts, not where the parser gave up
    before = text[mark.index - mark.column : mark.index]
    return problem_at(file, mark, "yaml-syntax", message, _hint(message, before, text, mark))


#: Errors that are reported where the construct starts.
_REPORTED_AT_START = ("unexpected end of stream", "could not find expected ':'")
_KEY = re.compile(r"[ -]*[\w.-]+")


def _hint(message: str, before: str, text: str, mark: Mark) -> str:
    """How to fix a syntax error; `before` is the line up to it."""
    here = text[mark.index : mark.index + 1]
    if "\t" in before + here and not before.strip():
        return "tabs cannot indent YAML: use spaces"
    if "mapping values are not allowed" in message:
        if _KEY.fullmatch(before):
            above = "this line continues the one above"
            return f"{above}: fix its indentation, or the space after a ':' there"
        return "put text that contains ': ' in quotes"
    if "(while parsing a block" in message:
        if before.rstrip().endswith(("'", '"')):
            return "text with quotes inside goes into quotes of the other kind"
        if before.strip():
            return "put the whole text in quotes"
        return "lines that belong together begin in the same column"
    if "cannot start any token" in message:
        return f"put text that begins with {here!r} in quotes"
    return next((hint for words, hint in _HINTS.items() if words in message), "")


_HINTS = {
    "unexpected end of stream": "no quote closes this one",
    "could not find expected ':'": "a key is followed by ': '",
    "expected ',' or ']'": "a '[' before is not closed",
    "expected ',' or '}'": "a '{' before is not closed",
    "unknown escape": "write a backslash twice, or use single quotes",
}


def _unprintable_problem(text: str, file: str, error: yaml.reader.ReaderError) -> Problem:
    before = text.encode("utf-8")[: error.position].decode("utf-8", "ignore")
    mark = LineIndex(before).mark(len(before))
    return problem_at(file, mark, "bad-character", f"{error.reason}: U+{error.character:04X}")
