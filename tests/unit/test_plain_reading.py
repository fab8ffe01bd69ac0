"""Fast ways of reading give what the slow ones give, or leave the matter to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.documents.json import Reader, line_text, plain_object
from assay.errors import EvalFileErrors
from assay.loaders.cases import CaseReader
from assay.loaders.locators import LineLocator
from assay.loaders.plain import plain_case, plain_line
from assay.model.case import EvalCase
from assay.model.reading import Reading
from assay.registry import evaluators
from assay.settings import Settings


class Pairs(tuple[tuple[str, Any], ...]):
    """An object as it is written: a key may stand in it twice."""


texts = st.text(alphabet=st.sampled_from('a":\\ {}[],é\t\x7f😀u0'), max_size=6)
keys = st.sampled_from(["a", "b", 'q"', "c:", "é", "x\\"])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**66), 2**66), st.floats(allow_nan=False), texts
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(st.tuples(keys, inner), max_size=3).map(Pairs)
    ),
    max_leaves=8,
)


def written(value: Any, draw: Any) -> str:
    """JSON with any space and any escapes."""
    space = draw(st.sampled_from(["", "", "", " ", "\t"]))
    colon = f"{space}:{draw(st.sampled_from(['', ' ']))}"
    if isinstance(value, Pairs):
        pairs = [f"{written(key, draw)}{colon}{written(item, draw)}" for key, item in value]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(item, draw) for item in value) + "]"
    if isinstance(value, str) and draw(st.booleans()):
        return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in value) + '"'
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def lines(draw: Any) -> bytes:
    pairs = Pairs(draw(st.lists(st.tuples(keys, values), max_size=4)))
    line = written(pairs, draw).encode()
    if draw(st.booleans()):
        return line
    at = draw(st.integers(0, len(line)))
    changed: bytes = line[:at] + draw(st.binary(max_size=2)) + line[at + draw(st.integers(0, 2)) :]
    return changed


@given(lines())
@example(b'{"a":1,"a":2,"b":"x\\"\\u003a"}')
@example(b'{"a":1,"a":2,"b":"x\\u0022:"}')
@example(b'{"a" :1,"a":2}')
@example(b'{"a":18446744073709551616}')
@example(b'{"a":1e400}')
@example(b'{"a":"\\u0000"}')
@example(b'{"a":"\\ud800"}')
@example(b'{"a":' + b"[" * 101 + b"]" * 101 + b"}")
@example(b'{"a":1}\r\n')
def test_a_plain_line_says_what_the_careful_reader_says(line: bytes) -> None:
    value = plain_object(line)
    if value is None:
        return
    document = Reader("f").parse(line_text(line, "f", 2), 2)
    assert repr(document.data) == repr(value)
    assert document.problems == []
    plain = Reader("f").line(line, 2)
    assert plain.marks == document.marks
    assert plain.position(()) == document.position(())


def test_most_lines_are_plain() -> None:
    line = {"id": "é", "input": 'say "x": y', "n": [1, 2.5, {"a": None}], "far": -(2**53)}
    assert plain_object(json.dumps(line).encode() + b"\n") == line
    assert plain_object(json.dumps(line, ensure_ascii=False).encode()) == line


CHECKS: list[Any] = [
    {"type": "contains", "value": "x"},
    {"type": "not_contains", "value": "x"},
    {"type": "contains", "value": ""},
    {"type": "contains", "value": 3},
    {"type": "icontains", "value": "x", "weight": 2},
    {"type": "regex", "value": "("},
    {"type": "regex", "value": "a+", "name": "own"},
    {"type": "equals"},
    {"type": "starts-with", "value": "x"},
    {"type": "nothing"},
    {"type": "contains", "valu": "x"},
    "contains",
]
FIELDS: dict[str, list[Any]] = {
    "id": ["a", "", " a", "a\nb", 3, None, "a\u2028b"],
    "description": ["", "d", 3, None],
    "input": ["ask", " ", "", [], [{"role": "user", "content": "x"}], [{"role": "x"}], {}],
    "threshold": [0.9, 1, 2.0, "1", None, True],
    "tags": [["a"], [], [""], "a", None, [3]],
    "metadata": [{}, {"a": [1]}, [], None],
    "x-own": [1],
    "input_messages": ["ask"],
    "skip": ["why"],
}


@st.composite
def raw_cases(draw: Any) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True))
    raw: dict[str, Any] = {"id": "a", "input": "ask"}
    raw |= {key: draw(st.sampled_from(FIELDS[key])) for key in chosen}
    raw["evaluators"] = draw(st.lists(st.sampled_from(CHECKS[:5]), max_size=3))
    raw["evaluators"] += draw(st.lists(st.sampled_from(CHECKS), max_size=1))
    return raw


def read(raw: list[dict[str, Any]], *, plainly: bool) -> tuple[list[EvalCase | None], list[str]]:
    """What one reader makes of cases one after the other, and what it minds."""
    reader = CaseReader(Path("f.eval.jsonl"), Settings(Path.cwd()))
    found = []
    for number, entry in enumerate(raw, 1):
        data = json.dumps(entry).encode()
        locate = LineLocator("f", number, data, None)
        line = plain_line(data) if plainly else None
        case = None
        if line is not None:
            case = plain_case(line, reader.reading, reader.inherited, locate)
        found.append(case or reader.read(Reader("f").line(data, number), (), locate=locate))
    return found, [str(problem) for problem in reader.problems.told()]


@given(st.lists(raw_cases(), min_size=1, max_size=4))
def test_a_plain_case_is_what_validation_makes_of_it(raw: list[dict[str, Any]]) -> None:
    fast, slow = read(raw, plainly=True), read(raw, plainly=False)
    assert fast == slow
    for one, other in zip(fast[0], slow[0], strict=True):
        if one is not None and other is not None:
            assert one.origin_of("evaluators.0.value") == other.origin_of("evaluators.0.value")
            fingerprints = [[s.fingerprint() for s in c.evaluators] for c in (one, other)]
            assert fingerprints[0] == fingerprints[1]
            given_keys = [[s.model_fields_set for s in c.evaluators] for c in (one, other)]
            assert given_keys[0] == given_keys[1]


def plainly(line: bytes) -> EvalCase | None:
    """The case on a line, read after one with the same evaluators."""
    reader = CaseReader(Path("f.eval.jsonl"), Settings(Path.cwd()))
    reader.read(Reader("f").line(PLAIN, 1), (), locate=LineLocator("f", 1, PLAIN, None))
    locate, plain = LineLocator("f", 2, line, None), plain_line(line)
    return None if plain is None else plain_case(plain, reader.reading, reader.inherited, locate)


PLAIN = (
    b'{"id": "a", "input": [{"role": "user", "content": "x: y"}], "threshold": 1, "tags": ["t"],'
    b' "evaluators": [{"type": "contains", "value": "x"}], "metadata": {"a": {"b": 1}}}'
)


def test_most_cases_are_plain() -> None:
    case = plainly(PLAIN)
    assert case is not None
    assert (case.threshold, case.tags, case.metadata) == (1.0, ("t",), {"a": {"b": 1}})


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1e300])
def test_a_great_number_is_plain(number: float) -> None:
    case = plainly(PLAIN.replace(b'{"b": 1}', b"%b" % json.dumps(number).encode()))
    assert case is not None
    assert case.metadata == {"a": number}


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (b'"id": "a"', b'"id": "a", "id": "b"'),
        (b'"role": "user"', b'"role": "user", "role": "user"'),
        (b'"value": "x"', b'"value": "x", "value": "x"'),
        (b'"a": {"b": 1}', b'"a": {"b": 1, "b": 2}'),
        (b'"a": {"b": 1}', b'"a": {"b": "\\u003a", "b": 2}'),
        (b'"input"', b'"inputs"'),
        (b'"id": "a"', b'"id": "a\\u0000"'),
        (b'"b": 1', b'"b": 123456789012345678901'),
        (b'"a": {"b": 1}', b'"a": 18446744073709551616'),
        (b'"a": {"b": 1}', b'"a": -9223372036854775809'),
        (b'"value": "x"', b'"value": "x", "weight": 18446744073709551616'),
    ],
)
def test_a_line_that_needs_a_closer_look_is_not_plain(part: bytes, instead: bytes) -> None:
    assert part in PLAIN
    assert plainly(PLAIN.replace(part, instead)) is None


@pytest.mark.parametrize("name", [n for n in evaluators if evaluators.get(n).free_text])
def test_a_free_text_needs_no_validation(name: str) -> None:
    cls, reading = evaluators.get(name), Reading(Path, Path, evaluators.get)
    cls.model_rebuild()
    validate = cls.__pydantic_validator__.validate_python
    model = validate({"type": name, cls.free_text: "x"}, context=reading)
    for text in ("y", " ", "(", "\n", "{{seed:a.b}}"):
        expected = validate({"type": name, cls.free_text: text}, context=reading)
        made = model.saying(text)
        assert made == expected
        assert made.model_fields_set == expected.model_fields_set
        assert made.model_copy() == expected
        assert made.model_dump() == expected.model_dump()


def test_what_is_wrong_with_a_line_is_told_with_its_place() -> None:
    document = Reader("f").line(b'{"a": 1, "a": 2}\n', 3)
    assert [(p.line, p.column, p.code) for p in document.problems] == [(3, 10, "duplicate-key")]
    with pytest.raises(EvalFileErrors) as refused:
        Reader("f").line(b'{"a": [}', 3)
    assert [(p.line, p.code) for p in refused.value.problems] == [(3, "json-syntax")]
