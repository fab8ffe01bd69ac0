"""Fast ways of reading give what the slow ones give, or leave the matter to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import EvalFileErrors
from assay.wire.json import Reader, line_text, plain_object


class Pairs(tuple[tuple[str, Any], ...]):
    """An object as it is written: a key may occur twice."""


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
def test_the_fast_path_gives_the_same_result_as_the_general_reader(line: bytes) -> None:
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


def test_an_invalid_line_is_reported_with_its_position() -> None:
    document = Reader("f").line(b'{"a": 1, "a": 2}\n', 3)
    assert [(p.line, p.column, p.code) for p in document.problems] == [(3, 10, "duplicate-key")]
    with pytest.raises(EvalFileErrors) as refused:
        Reader("f").line(b'{"a": [}', 3)
    assert [(p.line, p.code) for p in refused.value.problems] == [(3, "json-syntax")]
