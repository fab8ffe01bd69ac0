"""YAML text to a `Document`, through libyaml's event stream.

The dialect is YAML 1.2 core with one difference: digits with a leading zero are text.
So `no`, `on`, `2025-01-01` and `012` stay what the author sees. Merge keys work.
Refused with a position: duplicate keys, tags, several documents, cyclic or explosive
aliases, deep nesting. PyYAML's own constructors are not used: they crash the process on
deep nesting, follow YAML 1.1, and know no positions.
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

from assay.documents.document import (
    MANY,
    MAX_DEPTH,
    MAX_SCALAR,
    Document,
    LineIndex,
    Mark,
    Marks,
    TextMark,
    fail,
    measure,
    problem_at,
)
from assay.errors import EvalFileErrors, Problem, Problems

#: How many nodes all aliases of a document may stand for.
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
    """The one document in `text`; raises when its syntax is broken, notes what can be skipped."""
    builder = _Builder(text, file)
    try:
        data, marks = builder.build()
    except yaml.reader.ReaderError as error:
        builder.problems.append(_unprintable(text, file, error))
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax(text, file, error))
    except EvalFileErrors as error:
        builder.problems += error.problems
    else:
        return Document(file, data, builder.problems.told(), marks)
    raise EvalFileErrors(builder.problems.told())


class _Builder:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems = Problems(file)
        self.stand_ins = _stand_ins(text)
        self.next_event: Callable[[], Any] = yaml.CSafeLoader(
            text.translate({ord(real): other for other, real in self.stand_ins.items()})
            if self.stand_ins
            else text
        ).get_event
        # Looked for once in the text, so that the loop below need not look at every scalar.
        long, nul = len(text) > MAX_SCALAR, _NUL_ESCAPE.search(text)
        self.strange = long or nul is not None or bool(self.stand_ins)
        self.special = self.strange or "&" in text or "!" in text or "<<" in text
        self.anchors: dict[str, tuple[Any, Marks]] = {}
        self.open_anchors: set[str] = set()
        self.anchored: dict[int, str] = {}  # anchors of containers that are not complete, by id
        self.merges: dict[int, list[tuple[Any, Marks]]] = {}  # what they merge
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
        """The root node. One loop and an explicit stack: nesting costs no recursion.

        It runs once for every value of the file: names are local, and only what most files
        have is written out here.
        """
        next_event, special = self.next_event, self.special
        merges, anchored = self.merges, self.anchored
        scalar, no_key, constants, number_starts = ScalarEvent, _NO_KEY, _CONSTANTS, _NUMBER_STARTS
        stack: list[tuple[Any, Any, Marks]] = []
        container: Any = None  # the dict or list being filled; None above the root
        marks: Marks = None  # its marks
        key: Any = None  # in a dict, the key whose value comes next; _NO_KEY when a key comes
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is scalar:
                value, mark = event.value, event.start_mark
                if key is no_key:
                    odd = special or value in container
                    key = self._odd_key(event, container, marks) if odd else value
                    marks.append(mark)
                    continue
                if event.implicit[0]:
                    if value in constants:
                        value = constants[value]
                    elif value[0] in number_starts:
                        value = self._number(value, mark)
                if special:
                    value = self._odd_scalar(event, value)
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
                self._set_aside(key, value, mark, container, marks)
            key = no_key

    def _odd_key(self, event: Any, container: dict[str, Any], marks: Marks) -> Any:
        """A key that may be there already, decorated, a merge, or strange text."""
        mark, key = event.start_mark, self._odd_scalar(event, event.value)
        if key in container:
            return self._duplicate(container, marks, key, mark)
        if key == "<<" and event.implicit[0]:
            return self._merge_key(id(container) in self.merges, mark)
        return key

    def _odd_scalar(self, event: Any, value: Any) -> Any:
        """A scalar that may be strange text, or have a tag or an anchor."""
        if self.strange and type(value) is str:
            value = self._text(value, event.start_mark)
        if event.tag is not None:
            self._tag(event)
        if event.anchor is not None:
            self._close_anchor(event.anchor, value, event.start_mark)
        return value

    def _set_aside(self, key: Any, value: Any, mark: Mark, container: Any, marks: Marks) -> None:
        """The value of a key that is no key of the data: merged later, or repeated and dropped."""
        key_mark = marks.pop()
        if key is _MERGE:
            self.merges[id(container)] = self._mergeable(value, mark, key_mark)

    def _open_anchor(self, name: str, container: Any) -> None:
        self.open_anchors.add(name)
        self.anchored[id(container)] = name

    def _close(self, container: Any, marks: Marks) -> None:
        """A container is complete: add what it merges, and let aliases use it."""
        if sources := self.merges.pop(id(container), None):
            self._merge(container, marks, sources)
        if name := self.anchored.pop(id(container), None):
            self._close_anchor(name, container, marks)

    def _close_anchor(self, name: str, value: Any, marks: Marks) -> None:
        self.open_anchors.discard(name)
        self.anchors[name] = (value, marks)

    def _check_start(self, event: Any, is_key: bool, depth: int) -> None:
        """What a mapping or sequence must not be: a key, tagged, too deep."""
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
        if self.problems.errors < MANY:  # finding the first one takes time
            first = marks[2 * list(container).index(key) + 1]
            message += f"; first on line {first.line + 1}"
        self._note(mark, "duplicate-key", message, "keep one of the two")
        return _DUPLICATE

    def _number(self, text: str, mark: Mark) -> Any:
        if _INT.match(text) or _BASED.match(text):
            if len(text) > 24:
                return self._bad_number(text, mark)
            number = int(text, 10 if text[1:2] not in ("o", "x") else 0)
            return number if -(2**63) <= number < 2**64 else self._bad_number(text, mark)
        if _FLOAT.match(text):
            value = float(text)
            return value if value - value == 0 else self._bad_number(text, mark)
        return self._bad_number(text, mark) if _NOT_FINITE.match(text) else text

    def _bad_number(self, text: str, mark: Mark) -> int:
        shown = text if len(text) <= 40 else f"{text[:20]}... ({len(text):,} characters)"
        self._note(
            mark,
            "bad-number",
            f"{shown} is not a finite number that fits 64 bits",
            "put it in quotes if it is text",
        )
        return 0

    def _text(self, value: str, mark: Mark) -> str:
        """The text as it was written; refused when too long or when no database stores it."""
        if len(value) > MAX_SCALAR:
            message = f"a text of {len(value):,} characters; the limit is {MAX_SCALAR:,}"
            raise fail(self.file, mark, "too-large", message)
        if "\0" in value:
            self._note(mark, "bad-character", "the text holds a NUL character", "remove the \\0")
        for other, real in self.stand_ins.items():
            value = value.replace(other, real)
        return value

    def _alias_key(self, event: Any, value: Any, container: dict[str, Any], marks: Marks) -> Any:
        """An alias in the place of a key must stand for a text."""
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
        self._spend(size, mark)
        if depth + deep > MAX_DEPTH:
            raise fail(self.file, mark, "too-deep", f"nested deeper than {MAX_DEPTH} levels")
        return value, marks

    def _spend(self, nodes: int, mark: Mark) -> None:
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
        """Add the keys of the sources that the target does not have; earlier sources win."""
        for source, source_marks in sources:
            self._spend(len(source), marks[0])
            for index, (key, value) in enumerate(source.items()):
                if key not in target:
                    target[key] = value
                    marks.extend(source_marks[2 * index + 1 : 2 * index + 3])

    def _note(self, mark: Mark, code: str, message: str, hint: str = "") -> None:
        problem = problem_at(self.file, mark, code, message, hint)
        self.problems.append(problem)
        if self.problems.full:
            raise EvalFileErrors([problem])


#: Line breaks to libyaml, which follows YAML 1.1 here; plain characters in YAML 1.2.
_SEPARATORS = "\x85\u2028\u2029"


def _stand_ins(text: str) -> dict[str, str]:
    """For each separator in the text a character that is not, to be put back after parsing."""
    used = [character for character in _SEPARATORS if character in text]
    if not used:
        return {}
    free = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return {other: real for real, other in zip(used, free, strict=False)}


_NO_KEY, _MERGE, _DUPLICATE = object(), object(), object()


def _syntax(text: str, file: str, error: yaml.MarkedYAMLError) -> Problem:
    mark: Mark = error.problem_mark or TextMark(0, 0, 0)
    message = error.problem or "not valid YAML"
    if error.context:
        message += f" ({error.context})"
    if error.context_mark and any(words in message for words in _BEGUN):
        mark = error.context_mark  # where it begins, not where the parser gave up
    before = text[mark.index - mark.column : mark.index]
    return problem_at(file, mark, "yaml-syntax", message, _advice(message, before, text, mark))


#: What is wrong from where it begins.
_BEGUN = ("unexpected end of stream", "could not find expected ':'")
_KEY = re.compile(r"[ -]*[\w.-]+")


def _advice(message: str, before: str, text: str, mark: Mark) -> str:
    """What would be right; `before` is the start of the line."""
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


def _unprintable(text: str, file: str, error: yaml.reader.ReaderError) -> Problem:
    before = text.encode("utf-8")[: error.position].decode("utf-8", "ignore")
    mark = LineIndex(before).mark(len(before))
    return problem_at(file, mark, "bad-character", f"{error.reason}: U+{error.character:04X}")
