"""The JSON reader: what it reads, the place of every part, and what it refuses."""

from __future__ import annotations

import gc
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import EvalFileErrors
from assay.wire.document import MAX_DEPTH, MAX_SCALAR, DocPath
from assay.wire.json import Reader, parse
from unit.parsed_texts import Texts, paths, place

FILE = "tool.golden.json"
_texts = Texts(parse, FILE)
read, noted, refused = _texts.read, _texts.noted, _texts.refused


# Reading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (" true ", True),
        ("0", 0),
        ("-0", 0),
        ("-0.0", -0.0),
        ("1e5", 1e5),
        ("1E-400", 0.0),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ('"\\u00e9\\/\\b\\""', 'é/\b"'),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\uD83D\\uDE00 \\\\ud800 \\\\u0000"', "😀 \\ud800 \\u0000"),
        ('"a\u2028b\u0085\x7f"', "a\u2028b\u0085\x7f"),
        ('{"": {"": 1}}', {"": {"": 1}}),
        ('{"__class__": 1, "__proto__": {"x": 2}}', {"__class__": 1, "__proto__": {"x": 2}}),
        ("[[], {}, [{}]]", [[], {}, [{}]]),
        ("\r\n\t [1\r,\n2]\r\n", [1, 2]),
        ("0." + "1" * 10_000, float("0." + "1" * 10_000)),
    ],
)
def test_values(text: str, value: object) -> None:
    found = read(text).data
    assert found == value
    assert type(found) is type(value)


# Places

PLACES = """\
 {
  "name": "quoted",
\t"list": [1, -2.5e3,   "x"
    , {"flow": [true, {"x": null}]}],
  "a:b,{}[]\\"\\\\": "c:d,{}[]\\"\\\\", "last" :
    "😀", "after": 7,
  "\\u00e9\\n": {"\\ud83d\\ude00": [[[0]]]}
}
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), (1, 2), (1, 2)),
        (("name",), (2, 3), (2, 11)),
        (("list",), (3, 2), (3, 10)),
        (("list", 0), (3, 11), (3, 11)),
        (("list", 1), (3, 14), (3, 14)),
        (("list", 2), (3, 24), (3, 24)),
        (("list", 3), (4, 7), (4, 7)),
        (("list", 3, "flow"), (4, 8), (4, 16)),
        (("list", 3, "flow", 0), (4, 17), (4, 17)),
        (("list", 3, "flow", 1, "x"), (4, 24), (4, 29)),
        (('a:b,{}[]"\\',), (5, 3), (5, 19)),
        (("last",), (5, 35), (6, 5)),
        (("after",), (6, 10), (6, 19)),
        (("é\n",), (7, 3), (7, 15)),
        (("é\n", "😀"), (7, 16), (7, 32)),
        (("é\n", "😀", 0, 0, 0), (7, 35), (7, 35)),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_positions(
    path: DocPath, key: tuple[int, int], value: tuple[int, int], newline: str
) -> None:
    document = read(PLACES.replace("\n", newline))
    assert document.position(path, key=True) == key
    assert document.position(path) == value


@pytest.mark.parametrize("text", ["5", ' "x"', "\n\nnull", '\r\n  {"a": 1}'])
def test_the_position_of_the_root(text: str) -> None:
    line, column = read(text).position(())
    assert offset(text, (line, column)) == len(text) - len(text.lstrip())


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\x1c"])
def test_only_line_breaks_of_an_editor_end_a_line(separator: str) -> None:
    if separator < "\x20":
        problem = refused(f'{{"a": "x{separator}y"}}')
        assert place(problem) == "1:9 json-syntax"
        return
    document = read(f'{{"a": "x{separator}y",\n"b": [1, 2]}}')
    assert document.position(("b", 1)) == (2, 10)


def test_a_missing_part_has_the_position_of_its_nearest_parent() -> None:
    document = read(PLACES)
    assert document.position(("nothing",)) == (1, 2)
    assert document.position(("nothing", 0), key=True) == (1, 2)
    assert document.position(("name", "nothing")) == (2, 11)
    assert document.position(("list", 4)) == (3, 10)
    assert document.position(("list", -1)) == (3, 10)
    assert document.position(("list", "0")) == (3, 10)
    assert document.position(("list", 3, "nothing", "x")) == (4, 7)
    assert document.position(("list", 3, "flow", 1, "x", "y")) == (4, 29)


def test_paths_of() -> None:
    document = read(PLACES)
    containers = [(p, v) for p, v in paths(document.data) if isinstance(v, (dict, list))]
    for path, value in containers:
        assert document.paths_of([value]) == {id(value): path}
    assert document.paths_of([{}]) == {}


def test_a_line_of_a_file_knows_its_number() -> None:
    reader = Reader("talk.jsonl")
    document = reader.parse('{"a": [1, {"b": 2}]}', 7)
    assert document.position(()) == (7, 1)
    assert document.position(("a", 1, "b")) == (7, 17)
    with pytest.raises(EvalFileErrors) as caught:
        reader.parse('{"a": }', 8)
    assert [place(p) for p in caught.value.problems] == ["8:7 json-syntax"]
    assert [place(p) for p in reader.parse('{"a": NaN}', 9).problems] == ["9:7 bad-number"]
    assert reader.parse('{"a": 1}', 10).problems == []


# What is refused


@pytest.mark.parametrize(
    ("text", "position", "word"),
    [
        ("", "1:1", "expecting value"),
        ("  ", "1:3", "expecting value"),
        ("{", "1:2", ""),
        ('{"a": 1,}', "1:9", "comma"),
        ("[1, 2,]", "1:7", "comma"),
        ("[1,\n 2,\n]", "3:1", "comma"),
        ("{'a': 1}", "1:2", "double quotes"),
        ("['a']", "1:2", "double quotes"),
        ("// no\n{}", "1:1", "no comments"),
        ('{"a": 1 /* no */}', "1:9", "no comments"),
        ("# no\n{}", "1:1", ""),
        ('{"a" 1}', "1:6", ""),
        ('{"a": 1 "b": 2}', "1:9", ""),
        ("{a: 1}", "1:2", "double quotes"),
        ("[1] [2]", "1:5", "extra data"),
        ('{"a": 1}, ', "1:9", "remove the comma at the end"),
        ("[1]\n[2]", "2:1", "extra data"),
        ('"abc', "1:1", "unterminated"),
        ('"a\nb"', "1:3", "control character"),
        ('"a\tb"', "1:3", "control character"),
        ('"\\x41"', "1:2", "escape"),
        ('"\\u12"', "1:3", "escape"),
        ("01", "1:2", "extra data"),
        ("+1", "1:1", ""),
        (".5", "1:1", ""),
        ("1.", "1:2", "extra data"),
        ("True", "1:1", ""),
        ("nul", "1:1", ""),
        ("[1\ufeff]", "1:3", ""),
        ("\ufeff1", "1:1", ""),
        ("[\u00a01]", "1:2", ""),
        ("[\x0c1]", "1:2", ""),
    ],
)
def test_broken_syntax(text: str, position: str, word: str) -> None:
    problem = refused(text)
    assert place(problem) == f"{position} json-syntax"
    assert word in f"{problem.message} {problem.hint}"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_broken_syntax_on_a_later_line(newline: str) -> None:
    text = f'{{{newline}  "a": 1,{newline}  "b": ?{newline}}}'
    assert place(refused(text)) == "3:8 json-syntax"


@pytest.mark.parametrize(
    "number",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "18446744073709551616",
        "-9223372036854775809",
        "9" * 10_000,
        "9" * 10_000 + ".5",
        "1e" + "9" * 10_000,
    ],
)
def test_numbers_that_do_not_fit(number: str) -> None:
    (problem,) = parse(f'{{"a": 1,\n "b": [{number}, 5]}}', FILE).problems
    assert place(problem) == "2:8 bad-number"
    assert number[:20] in problem.message
    assert len(problem.message) < 120


def test_a_number_that_does_not_fit_is_reported_with_its_key() -> None:
    text = '{"a": 1, "c": {"d": 1e999, "e": 2}, "f": NaN}'
    rule = "it must be a finite number that fits 64 bits"
    messages = [problem.message for problem in parse(text, FILE).problems]
    assert messages == [f"'d' is 1e999; {rule}", f"'f' is NaN; {rule}"]


@pytest.mark.parametrize("half", ["\\ud800", "\\uDFFF", "\\ude00\\ud83d", "x\\ud83dx\\ude00"])
def test_half_of_a_surrogate_pair(half: str) -> None:
    assert noted(f'{{"a": 1,\n "b": ["x", "{half}"]}}') == ["2:13 bad-character"]
    assert noted(f'{{"a": 1,\n "{half}": 1}}') == ["2:2 bad-character"]


def test_an_escaped_nul() -> None:
    assert noted('["x", "a\\u0000b"]') == ["1:7 bad-character"]
    assert noted('{"a\\u0000": 1}') == ["1:2 bad-character"]


def test_finding_positions_creates_no_reference_cycles() -> None:
    """The collector is off while files are read: what only it can free would pile up."""
    text = json.dumps([1, 2.5, {"a": -3}] * 50)
    gc.collect()
    gc.disable()
    try:
        parse(text, FILE).position((0,))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_all_duplicate_keys_are_noted() -> None:
    text = '{"a": 1, "b": {"c": 1, "c": {"d": 1, "d": 2}},\n "\\u0061": [2], "a": 3, "e": 5}'
    document = parse(text, FILE)
    assert [place(p) for p in document.problems if p.line == 2] == [
        "2:2 duplicate-key",
        "2:17 duplicate-key",
    ]
    assert "1:24 duplicate-key" in [place(p) for p in document.problems]
    assert "'a' appears twice; first on line 1, column 2" in document.problems[-1].message
    assert document.position(("e",)) == (2, 30)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[]", "[1, {}]"),
        ("[1, {}]", "[]"),
        ("5", '{"x": {"y": 1}}'),
        ('{"x": {"y": 1}}', "5"),
        ('{"x": [1]}', '{"y": 2, "x": [1, 2, 3]}'),
        ('["a"]', '{"x": 1}'),
    ],
)
def test_the_positions_of_a_duplicate_key_fit_its_value(first: str, second: str) -> None:
    text = f'{{"k": {first}, "k": {second}, "z": 9}}'
    document = parse(text, FILE)
    for path, value in paths(document.data):
        line, column = document.position(path)
        assert line == 1
        if len(path) > 1 or path == ("z",):
            assert json.JSONDecoder().raw_decode(text, column - 1)[0] == value


# Depth and size


@pytest.mark.parametrize("style", ["list", "map", "mixed"])
def test_depth(style: str) -> None:
    read(nested(MAX_DEPTH, style))
    problem = refused(nested(MAX_DEPTH + 1, style))
    assert problem.code == "too-deep"
    assert (problem.line, problem.column > 1) == (1, True)
    assert str(MAX_DEPTH) in problem.message


@pytest.mark.parametrize("depth", [990, 1010, 100_000])
@pytest.mark.parametrize("style", ["list", "map", "mixed"])
def test_very_deep(style: str, depth: int) -> None:
    assert refused(nested(depth, style)).code == "too-deep"


def test_100_000_levels_that_never_close() -> None:
    assert refused("[" * 100_000).code in ("too-deep", "json-syntax")


def test_deep_values_of_a_repeated_key() -> None:
    deep = nested(100_000, "list")
    for text in (f'{{"a": 1, "a": {deep}}}', f'{{"a": {deep}, "a": 1}}'):
        with pytest.raises(EvalFileErrors) as caught:
            parse(text, FILE)
        assert caught.value.problems[-1].code == "too-deep"


def test_brackets_in_text_do_not_count_as_depth() -> None:
    assert read(json.dumps(["[" * 1000, "{" * 1000])).data == ["[" * 1000, "{" * 1000]


def nested(depth: int, style: str) -> str:
    """A document of nested containers."""
    if style == "list":
        return "[" * depth + "]" * depth
    if style == "map":
        return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    pairs, odd = divmod(depth, 2)
    return '[{"a":' * pairs + ("[]" if odd else "1") + "}]" * pairs


def test_the_longest_text() -> None:
    read(json.dumps({"a": "x" * MAX_SCALAR}))
    (problem,) = parse(json.dumps({"b": [1, "x" * (MAX_SCALAR + 1)]}), FILE).problems
    assert place(problem) == "1:11 too-large"
    assert f"{MAX_SCALAR:,}" in problem.message
    assert noted(json.dumps({"y" * (MAX_SCALAR + 1): 1})) == ["1:2 too-large"]


def test_a_long_document_of_short_texts_is_fine() -> None:
    many = ["x" * 1000] * (MAX_SCALAR // 1000 + 10)
    document = read(json.dumps(many))
    assert document.data == many
    assert document.position((3,)) == (1, 2 + 3 * 1004)


# Properties

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TREES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


def offset(text: str, position: tuple[int, int]) -> int:
    """The index of a place, found without the reader's own arithmetic."""
    lines = re.split("(?<=\n)|(?<=\r)(?!\n)", text)
    return sum(map(len, lines[: position[0] - 1])) + position[1] - 1


@given(
    TREES,
    st.booleans(),
    st.sampled_from([None, 0, 2, "\t"]),
    st.sampled_from([(",", ":"), (" , ", "\t: ")]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_json_round_trips_and_positions_point_at_the_values(
    tree: Any, ascii_only: bool, indent: int | str | None, separators: Any, newline: str
) -> None:
    text = json.dumps(tree, ensure_ascii=ascii_only, indent=indent, separators=separators)
    text = text.replace("\n", newline)
    document = read(text)
    assert document.data == tree
    decode = json.JSONDecoder().raw_decode
    for path, value in paths(tree):
        assert decode(text, offset(text, document.position(path)))[0] == value
        if path and isinstance(path[-1], str):
            assert decode(text, offset(text, document.position(path, key=True)))[0] == path[-1]
        if isinstance(value, (dict, list)):
            container = _at(document.data, path)
            assert document.paths_of([container]) == {id(container): path}


def _at(tree: Any, path: DocPath) -> Any:
    for step in path:
        tree = tree[step]
    return tree


TOKENS = re.findall(
    r"\S+|[ \n\r]", '{ } [ ] : , "a" "a " 1 - NaN 1e999 null "\\ud800" "\\u0000" é 😀 \\ /* \n\r'
)


@given(st.lists(st.sampled_from([*TOKENS, "9" * 30]), max_size=20))
def test_any_text_is_read_or_rejected_with_a_position(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        document = parse(text, FILE)
    except EvalFileErrors as error:
        problems = list(error.problems)
    else:
        problems = document.problems
        for path, _ in paths(document.data):
            assert offset(text, document.position(path)) <= len(text)
            assert offset(text, document.position(path, key=True)) <= len(text)
    for problem in problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
        assert offset(text, (problem.line, problem.column)) <= len(text)
