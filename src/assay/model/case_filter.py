"""CaseFilter: which cases to run or to show, such as `outcome:failed tag:billing score<0.6`.

All terms must hold; `-` negates one. `tag:a,b` matches either, and `*` matches any characters. A
word or a quoted text is searched for in the case, ignoring case.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Literal, NoReturn, get_args

import msgspec

from assay.errors import FilterError, FilterMistake, nearest
from assay.model.case import EvalCase
from assay.model.names import normal_name
from assay.model.result import Outcome

#: What became of a case compared with the baseline of its run.
Change = Literal["regressed", "fixed", "still-failing", "added", "not-comparable", "not-judged"]
Field = Literal[
    "id", "suite", "tag", "evaluator", "outcome", "changed", "flaky", "score", "cost", "latency"
]

#: The longest filter, in characters.
MAX_LENGTH = 2000
#: How many texts a filter can search for: each is looked for in all texts of a run.
MAX_TEXTS = 8
#: Fields with one of these values; other fields accept any text.
CHOICES: dict[str, tuple[str, ...]] = {"outcome": get_args(Outcome), "changed": get_args(Change)}
#: Fields that are compared with a number, and its unit.
NUMBERS = {"score": "a number from 0 to 1", "cost": "US dollars", "latency": "milliseconds"}
#: Fields without a value.
FLAGS = ("flaky",)
#: Fields that only a case of a run has.
OF_RESULTS = frozenset({"outcome", "changed", "flaky", *NUMBERS})
#: Operators of other query languages, which would be searched for, and what to write instead.
_OPERATORS = {
    "AND": "leave it out, as all terms must match",
    "OR": "separate alternatives by commas, as in tag:a,b",
    "NOT": "write - before the term, as in -tag:a",
}
#: A word this similar to a flag is a misspelt flag, not a text to search for.
_MISSPELT = 0.85

_FIELD = re.compile(r"([^\W\d][\w-]*)(:|<=|>=|<|>|=)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNQUOTED = re.compile(r'[^\s,"]+')
_WORD = re.compile(r'[^\s"]+')
_NEEDS_QUOTES = re.compile(r'[\s,"\\]')
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


class FilterRow(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a case that filters read; without a run, only the first five are known.

    `suites` are the `suite_names` of its suite. `evaluators` are names and types. `text` is folded.
    """

    id: str
    suites: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = ()
    text: str = ""
    outcome: Outcome | None = None
    changed: Change | None = None
    flaky: bool = False
    score: float | None = None
    cost: float | None = None
    latency: float | None = None


class Term(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition. `field` is `text` for a text to search for; `op` is a colon for a name.

    `values` are alternatives; a flag has none. A number is the only value of its term.
    """

    field: str
    op: str = ":"
    values: tuple[str | float, ...] = ()
    negated: bool = False

    def __str__(self) -> str:
        sign = "-" if self.negated else ""
        if self.field == "text":
            return sign + _quote(str(self.values[0]))
        if not self.values:
            return sign + self.field
        return f"{sign}{self.field}{self.op}{','.join(map(_shown, self.values))}"

    def matches(self, row: FilterRow) -> bool:
        """Does the case fulfil the condition?"""
        return self._holds(row) is not self.negated

    def _holds(self, row: FilterRow) -> bool:
        if self.field == "text":
            return str(self.values[0]) in row.text
        if self.field in FLAGS:
            return bool(getattr(row, self.field))
        if self.field in NUMBERS:
            number = getattr(row, self.field)
            return number is not None and _COMPARE[self.op](number, float(self.values[0]))
        names = _names(row, self.field)
        return any(matches_glob(str(value), name) for value in self.values for name in names)


class CaseFilter(msgspec.Struct, frozen=True):
    """Terms that must all hold; without any, every case matches."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """The filter as a text; equal filters give equal texts."""
        return " ".join(map(str, self.terms))

    def matches(self, row: FilterRow) -> bool:
        """Does the case fulfil all terms?"""
        return all(term.matches(row) for term in self.terms)

    @property
    def fields_of_results(self) -> list[str]:
        """The fields it uses that only a case of a run has."""
        return [term.field for term in self.terms if term.field in OF_RESULTS]


def parse_filter(text: str) -> CaseFilter:
    """Read a filter; raises FilterError with every mistake."""
    if len(text) > MAX_LENGTH:
        found = f"the filter has {len(text):,} characters, more than {MAX_LENGTH:,}"
        raise FilterError(text[:MAX_LENGTH], [FilterMistake(1, found)])
    parser = _Parser(text)
    terms = tuple(parser.terms())
    if parser.mistakes:
        raise FilterError(text, parser.mistakes)
    return CaseFilter(terms)


def suite_names(name: str, file: str) -> tuple[str, ...]:
    """The names of a suite: its own, its file with any of its folders, and without a suffix."""
    parts = PurePath(file).parts
    paths = ["/".join(parts[start:]) for start in range(len(parts))]
    stem = PurePath(file).stem.removesuffix(".eval")
    return tuple(dict.fromkeys(filter(None, (name, *paths, stem))))


def row_of_case(names: tuple[str, ...], case: EvalCase, chosen: CaseFilter) -> FilterRow:
    """What is known of a case that was not asked; its text only if the filter searches it."""
    specs = [spec for _, spec in case.walk_evaluators()]
    return FilterRow(
        id=case.id,
        suites=names,
        tags=case.tags,
        evaluators=tuple({name for spec in specs for name in (spec.name, spec.type)}),
        text=case_text(case) if any(term.field == "text" for term in chosen.terms) else "",
    )


def case_text(case: EvalCase) -> str:
    """The text of a case that filters search; a case of a run has its answers there too."""
    return folded("\n".join((case.id, case.description, *(m.text for m in case.input_messages))))


def folded(text: str) -> str:
    """The form in which texts are searched: upper and lower case are the same."""
    return normal_name(normal_name(text).casefold())


def matches_glob(pattern: str, name: str) -> bool:
    """Does a name match, if `*` stands for any characters?"""
    first, *rest = normal_name(pattern).split("*")
    name = normal_name(name)
    if not rest:
        return name == first
    *middle, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in middle:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return name.endswith(last) and place <= end


class _Parser:
    """Reads terms one by one; after a mistake it continues with the next term."""

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self._texts = 0
        self.mistakes: list[FilterMistake] = []

    def terms(self) -> Iterator[Term]:
        text = self._text
        while self._skip_space():
            negated = text[self._place] == "-"
            self._place += negated
            field = _FIELD.match(text, self._place)
            start = self._place
            try:
                term = self._condition(field) if field else self._word()
                if self._place < len(text) and not text[self._place].isspace():
                    self._fail(self._place, f"unexpected {text[self._place]!r}: expected a space")
            except _Mistake:
                self._skip_term(start)
            else:
                yield msgspec.structs.replace(term, negated=negated)

    def _skip_space(self) -> bool:
        """Move to the next term; false at the end."""
        while self._place < len(self._text) and self._text[self._place].isspace():
            self._place += 1
        return self._place < len(self._text)

    def _skip_term(self, start: int) -> None:
        """Move behind the term at `start`, whatever it holds."""
        self._place = start
        while self._place < len(self._text) and not self._text[self._place].isspace():
            quoted = _QUOTED.match(self._text, self._place)
            self._place = quoted.end() if quoted else self._place + 1

    def _condition(self, head: re.Match[str]) -> Term:
        field, op = head.groups()
        self._place = head.end()
        if field in FLAGS:
            self._fail(head.start(), f"{field!r} has no value", f"write {field} or -{field}")
        if field not in get_args(Field):
            hint = nearest(field, get_args(Field)) or f"known: {', '.join(get_args(Field))}"
            quoted = "put a text to search for in quotes"
            self._fail(head.start(), f"unknown field {field!r}: {quoted}", hint)
        if field in NUMBERS:
            return self._comparison(field, op, head.start(2))
        if op != ":":
            self._fail(head.start(2), f"unexpected {op!r}: expected '{field}:'")
        return Term(field, ":", tuple(self._values(field)))

    def _comparison(self, field: str, op: str, place: int) -> Term:
        if op == ":":
            self._fail(place, f"{field!r} is a number", f"compare it, as in {field}>0.5")
        start = self._place
        written = self._value(field)
        try:
            number = float(written)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self._fail(start, f"expected {NUMBERS[field]}, got {written!r}", f"as in {field}>0.5")
        return Term(field, op, (number,))

    def _values(self, field: str) -> Iterator[str]:
        """The alternatives behind a colon."""
        while True:
            start = self._place
            value = self._value(field)
            known = CHOICES.get(field)
            if known is not None and value not in known:
                hint = nearest(value, known) or f"known: {', '.join(known)}"
                self._fail(start, f"{field} cannot be {value!r}", hint)
            yield value
            if self._text[self._place : self._place + 1] != ",":
                return
            self._place += 1

    def _value(self, field: str) -> str:
        quoted = self._quoted()
        if quoted is not None:
            return quoted
        found = _UNQUOTED.match(self._text, self._place)
        if found is None:
            self._fail(self._place, f"{field!r} needs a value")
        self._place = found.end()
        return found[0]

    def _word(self) -> Term:
        """A flag, or a text to search for."""
        start = self._place
        text = self._quoted()
        if text is None:
            found = _WORD.match(self._text, self._place)
            if found is None:
                self._fail(start, "expected a term after '-'")
            self._place, text = found.end(), found[0]
            if text in FLAGS:
                return Term(text)
            self._check_word(text, start)
        if not text:
            self._fail(start, "the text to search for is empty")
        self._texts += 1
        if self._texts == MAX_TEXTS + 1:
            hint = "put a text of several words in quotes"
            self._fail(start, f"more than {MAX_TEXTS} texts to search for", hint)
        return Term("text", values=(folded(text),))

    def _check_word(self, word: str, start: int) -> None:
        """A word that was meant as a field or a flag would silently match nothing."""
        quoted = f'search for the text with "{word}"'
        if word in get_args(Field):
            form = f"{word}>0.5" if word in NUMBERS else f"{word}:VALUE"
            self._fail(start, f"{word!r} needs a value", f"write {form}, or {quoted}")
        if word in _OPERATORS:
            self._fail(start, f"{word!r} is not an operator", f"{_OPERATORS[word]}, or {quoted}")
        field = _FIELD.match(word, 1)
        if word[0] in "(!" and field is not None and field[1] in get_args(Field):
            hint = "all terms must match; write -tag:a for 'not', and tag:a,b for 'or'"
            self._fail(start, f"unexpected {word[0]!r} before {field[0]!r}", hint)
        if hint := nearest(word, FLAGS, _MISSPELT):
            self._fail(start, f"unknown term {word!r}", f"{hint} Or {quoted}")

    def _quoted(self) -> str | None:
        """The text in quotes at this place; None if there are no quotes."""
        if self._text[self._place : self._place + 1] != '"':
            return None
        found = _QUOTED.match(self._text, self._place)
        if found is None:
            start, self._place = self._place, len(self._text)
            self.mistakes.append(FilterMistake(start + 1, "the quote is not closed"))
            raise _Mistake
        self._place = found.end()
        return re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL)

    def _fail(self, place: int, found: str, hint: str = "") -> NoReturn:
        self.mistakes.append(FilterMistake(place + 1, found, hint))
        raise _Mistake


class _Mistake(Exception):
    """Ends the reading of a term; the mistake is recorded."""


def _names(row: FilterRow, field: str) -> Iterable[str]:
    """The names of a case that a field compares."""
    match field:
        case "id":
            return (row.id,)
        case "suite":
            return row.suites
        case "tag":
            return row.tags
        case "evaluator":
            return row.evaluators
    value: str | None = getattr(row, field)
    return () if value is None else (value,)


def _shown(value: str | float) -> str:
    if isinstance(value, float):
        return repr(value)
    return _quote(value) if _NEEDS_QUOTES.search(value) or not value else value


def _quote(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
