"""The YAML reader: the dialect, the place of every part, and what it refuses."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import EvalFileErrors
from assay.wire.document import MAX_DEPTH, MAX_SCALAR, DocPath, Document
from assay.wire.yaml import MAX_ALIASED, parse
from unit.parsed_texts import Texts, paths, place

FILE = "suite.yaml"
_texts = Texts(parse, FILE)
read, noted, refused = _texts.read, _texts.noted, _texts.refused


def data(text: str) -> Any:
    return read(text).data


# Scalars


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("true", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("yes", "yes"),
        ("off", "off"),
        ("y", "y"),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-7", -7),
        ("012", "012"),
        ("-012", "-012"),
        ("00", "00"),
        ("01.5", "01.5"),
        ("0o17", 15),
        ("0x1F", 31),
        ("0o8", "0o8"),
        ("0b1", "0b1"),
        ("0xg", "0xg"),
        ("-0x1", "-0x1"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        (".", "."),
        ("-", None),
        ("+", "+"),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("1e", "1e"),
        ("1.5.2", "1.5.2"),
        ("2025-01-01", "2025-01-01"),
        ("2025-01-01T10:00:00Z", "2025-01-01T10:00:00Z"),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0xFFFFFFFFFFFFFFFF", 2**64 - 1),
        ("١٢٣", "١٢٣"),
        ("1e-400", 0.0),
        ("'1'", "1"),
        ('"null"', "null"),
        ("=", "="),
        ("a<<b", "a<<b"),
    ],
)
def test_scalars(written: str, value: object) -> None:
    found = data(f"[{written}]" if written == "" else f"- {written}\n")
    if written == "":
        assert found == []
        found = data("- \n")
    expected = [[None]] if written == "-" else [value]
    assert found == expected
    assert [type(item) for item in found] == [type(item) for item in expected]


@pytest.mark.parametrize(
    "number",
    [
        ".inf",
        "-.INF",
        "+.Inf",
        ".nan",
        ".NaN",
        "1e999",
        "-1e999",
        "18446744073709551616",
        "-9223372036854775809",
        "0x10000000000000000",
        "0o7777777777777777777777",
        "9" * 10_000,
        "0x" + "f" * 10_000,
        "9" * 10_000 + ".0",
        "1e" + "9" * 10_000,
    ],
)
def test_numbers_that_do_not_fit(number: str) -> None:
    (problem,) = parse(f"a: 1\nb:  {number}\n", FILE).problems
    assert place(problem) == "2:5 bad-number"
    assert number[:20] in problem.message
    assert len(problem.message) < 120


@pytest.mark.parametrize("number", ["0." + "1" * 10_000, "0." + "0" * 10_000 + "1"])
def test_long_fractions_are_numbers(number: str) -> None:
    assert data(f"a: {number}\n") == {"a": float(number)}


def test_numbers_in_quotes_are_text() -> None:
    assert data(f"['{'9' * 10_000}', \".inf\"]") == ["9" * 10_000, ".inf"]


@pytest.mark.parametrize("key", ["1", "null", "true", "1.5", "012", "~", ".inf", "2025-01-01"])
def test_keys_are_text(key: str) -> None:
    assert data(f"{key}: x\n") == {key: "x"}


def test_an_empty_key_is_text() -> None:
    assert data("? \n: x\n") == {"": "x"}
    assert data("'': x\n") == {"": "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment\n", None),
        ("---\n", None),
        ("--- x\n", "x"),
        ("---\n...\n", None),
        ("%YAML 1.1\n---\na: 1\n", {"a": 1}),
        ("{a: 1, b}", {"a": 1, "b": None}),
        ("[a: 1, b]", [{"a": 1}, "b"]),
        ("? a\n: b\n", {"a": "b"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: >-\n  x\n  y\n", {"a": "x y"}),
        ('a: "\\U0001F600 \\x41 \\u00e9"\n', {"a": "😀 A é"}),
        ("a:\n- 1\n- 2\n", {"a": [1, 2]}),
        ("\u00a0: 1\n", {"\u00a0": 1}),
    ],
)
def test_documents(text: str, value: object) -> None:
    assert data(text) == value


@pytest.mark.parametrize("key", ["__class__", "__proto__", "__dict__", "constructor", "$ref"])
def test_keys_that_mean_something_elsewhere_are_keys(key: str) -> None:
    assert data(f"{key}: {{{key}: 1}}\n") == {key: {key: 1}}


# Places

PLACES = """\
# a comment
suite:
  name: 'quoted'
  list:
  - one
  -   two
  - - deep
    - {flow: [1, {x: y}], "q": "v"}
text: |
  first
  second
folded: >-
  one
  two
plain: one
  two
  three
quoted: "one
  two"
? explicit
: value
empty:
last: end
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), (2, 1), (2, 1)),
        (("suite",), (2, 1), (3, 3)),
        (("suite", "name"), (3, 3), (3, 9)),
        (("suite", "list"), (4, 3), (5, 3)),
        (("suite", "list", 0), (5, 5), (5, 5)),
        (("suite", "list", 1), (6, 7), (6, 7)),
        (("suite", "list", 2), (7, 5), (7, 5)),
        (("suite", "list", 2, 0), (7, 7), (7, 7)),
        (("suite", "list", 2, 1), (8, 7), (8, 7)),
        (("suite", "list", 2, 1, "flow"), (8, 8), (8, 14)),
        (("suite", "list", 2, 1, "flow", 0), (8, 15), (8, 15)),
        (("suite", "list", 2, 1, "flow", 1), (8, 18), (8, 18)),
        (("suite", "list", 2, 1, "flow", 1, "x"), (8, 19), (8, 22)),
        (("suite", "list", 2, 1, "q"), (8, 27), (8, 32)),
        (("text",), (9, 1), (9, 7)),
        (("folded",), (12, 1), (12, 9)),
        (("plain",), (15, 1), (15, 8)),
        (("quoted",), (18, 1), (18, 9)),
        (("explicit",), (20, 3), (21, 3)),
        (("last",), (23, 1), (23, 7)),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_positions(
    path: DocPath, key: tuple[int, int], value: tuple[int, int], newline: str
) -> None:
    document = read(PLACES.replace("\n", newline))
    assert document.position(path, key=True) == key
    assert document.position(path) == value


def test_the_position_of_an_empty_value_is_after_its_key() -> None:
    assert read(PLACES).position(("empty",), key=True) == (22, 1)
    assert read("a:\nb: 1\n").position(("a",))[0] == 1


@pytest.mark.parametrize(
    ("text", "path", "position"),
    [
        ('{"😀": 1, b: 2}', ("b",), (1, 13)),
        ("a: {😀😀: x, b: 2}\n", ("a", "b"), (1, 15)),
        ('- ["é\u0301", x]\n', (0, 1), (1, 10)),
        ("a:\t1\nb: [1,\t2]\n", ("a",), (1, 4)),
        ("a:\t1\nb: [1,\t2]\n", ("b", 1), (2, 8)),
        ("\ta: 1\n".lstrip("\t"), ("a",), (1, 4)),
        ("a: [ 1,\n\n\n  2 ]\n", ("a", 1), (4, 3)),
        ("{a: 1,\n # {x: y}\n b: 2}\n", ("b",), (3, 5)),
        ("a: &x 1\nb: 2\n", ("b",), (2, 4)),
    ],
)
def test_columns_count_characters(text: str, path: DocPath, position: tuple[int, int]) -> None:
    assert read(text).position(path) == position


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_only_line_breaks_of_an_editor_end_a_line(separator: str, quote: str) -> None:
    """YAML 1.2 takes these characters for text; libyaml, a YAML 1.1 parser, for line breaks."""
    document = read(f"a: {quote}x{separator}y{quote}\nb: [1, 2]\n")
    assert document.data["a"] == f"x{separator}y"
    assert document.position(("b",), key=True) == (2, 1)
    assert document.position(("b", 1)) == (2, 8)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_pasted_line_separator_does_not_break_plain_text(separator: str) -> None:
    assert data(f"a: one{separator}two\nb: 1\n") == {"a": f"one{separator}two", "b": 1}


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_line_separator_in_an_anchored_text(separator: str) -> None:
    text = f"x{separator}y"
    assert data(f"- &a '{text}'\n- *a\n- &k '{text}': 1\n- {{*k : 2}}\n- [&b {text}, *b]\n") == [
        text,
        text,
        {text: 1},
        {text: 2},
        [text, text],
    ]


def test_characters_of_private_use_are_kept() -> None:
    private = "".join(map(chr, range(0xE000, 0xE100)))
    assert data(f"- '{private}'\n- '\u2028'\n- &a '\x85{private}'\n- *a\n") == [
        private,
        "\u2028",
        f"\x85{private}",
        f"\x85{private}",
    ]


def test_positions_of_aliased_parts_are_those_of_the_anchor() -> None:
    document = read("a: &x\n  k: [1, 2]\nb: *x\nc: [*x]\n")
    assert document.data["b"] is document.data["a"]
    for path in (("a", "k", 1), ("b", "k", 1), ("c", 0, "k", 1)):
        assert document.position(path) == (2, 10)
    assert document.position(("b",), key=True) == (3, 1)


def test_positions_of_merged_parts_are_those_of_the_source() -> None:
    text = "base: &b\n  x: 1\n  y: [1, 2]\nhere:\n  own: 0\n  <<: *b\n  y: 3\n  z: 4\n"
    document = read(text)
    assert document.data["here"] == {"own": 0, "y": 3, "z": 4, "x": 1}
    expected = {"own": (5, 8), "y": (7, 6), "z": (8, 6), "x": (2, 6)}
    for key, position in expected.items():
        assert document.position(("here", key)) == position
    assert document.position(("here", "x"), key=True) == (2, 3)
    assert document.position(("here", "z"), key=True) == (8, 3)


def test_a_missing_part_has_the_position_of_its_nearest_parent() -> None:
    document = read(PLACES)
    assert document.position(("nothing",)) == (2, 1)
    assert document.position(("nothing", "at", "all"), key=True) == (2, 1)
    assert document.position(("suite", "nothing")) == (3, 3)
    assert document.position(("suite", "name", "nothing")) == (3, 9)
    assert document.position(("suite", "name", 0)) == (3, 9)
    assert document.position(("suite", "list", 3)) == (5, 3)
    assert document.position(("suite", "list", -1)) == (5, 3)
    assert document.position(("suite", "list", "0")) == (5, 3)
    assert document.position(("suite", "list", 2, 1, "flow", 9, "x")) == (8, 14)
    assert document.position(("suite", 0)) == (3, 3)


def test_an_empty_document_has_a_position() -> None:
    assert read("").position(()) == (1, 1)
    assert read("# nothing\n").position(("a", 0), key=True) == (1, 1)


def test_paths_of() -> None:
    document = read(PLACES)
    containers = [(p, v) for p, v in paths(document.data) if isinstance(v, (dict, list))]
    for path, value in containers:
        assert document.paths_of([value]) == {id(value): path}
    together = document.paths_of([{}, *(value for _, value in containers), "quoted"])
    assert together == {id(value): path for path, value in containers}


def test_path_of_a_shared_part_leads_to_it() -> None:
    document = read("a: &x {k: [1]}\nb: [*x, *x]\n")
    shared = document.data["a"]
    found: Any = document.data
    for step in document.paths_of([shared])[id(shared)]:
        found = found[step]
    assert found is shared


# What is refused


def test_all_duplicate_keys_are_noted_and_the_first_stays() -> None:
    text = "a: 1\na: [2, {x: y}]\nb: {c: 1, c: {d: 1}, c: 3, e: 4}\na: 4\nf: 5\n"
    document = parse(text, FILE)
    assert [place(p) for p in document.problems] == [
        "2:1 duplicate-key",
        "3:11 duplicate-key",
        "3:22 duplicate-key",
        "4:1 duplicate-key",
    ]
    assert "'a' appears twice; first on line 1" in document.problems[3].message
    assert document.data == {"a": 1, "b": {"c": 1, "e": 4}, "f": 5}
    assert document.position(("f",)) == (5, 4)
    assert document.position(("b", "e")) == (3, 31)


@pytest.mark.parametrize("second", ["'a'", '"a"', "? a\n", '"\\x61"', "&x a"])
def test_duplicate_keys_in_other_spellings(second: str) -> None:
    assert [p.split()[1] for p in noted(f"a: 1\n{second}: 2\n")] == ["duplicate-key"]


def test_a_merged_key_is_not_a_duplicate() -> None:
    text = "- &x {a: 1, b: 2}\n- &y {<<: *x, a: 3}\n- {a: 4, <<: [*y, *x], c: 5}\n"
    assert data(text)[1:] == [{"a": 3, "b": 2}, {"a": 4, "c": 5, "b": 2}]


def test_two_merge_keys_are_duplicates() -> None:
    text = "- &x {a: 1}\n- &y {b: 1}\n- {<<: *x, <<: *y}\n"
    assert noted(text) == ["3:12 duplicate-key"]


def test_merge_of_merges() -> None:
    lines = ["- &m0 {k0: 0}"]
    lines += [f"- &m{i} {{<<: *m{i - 1}, k{i}: {i}}}" for i in range(1, 300)]
    merged = data("\n".join(lines) + "\n")[-1]
    assert merged == {f"k{i}": i for i in range(300)}


@pytest.mark.parametrize("value", ["1", "null", "[1]", "[{a: 1}, 2]", "text"])
def test_only_mappings_merge(value: str) -> None:
    assert noted(f"a: 1\n<<: {value}\n") == ["2:1 wrong-type"]


@pytest.mark.parametrize("value", ["{}", "[]", "[{}, {}]", "{b: 2}", "[{b: 2}, {b: 3}]"])
def test_merge_sources(value: str) -> None:
    assert data(f"a: 1\n<<: {value}\n") == ({"a": 1, "b": 2} if "b" in value else {"a": 1})


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a: !!str 1\n", "1:4"),
        ("a: 1\nb: !custom {x: 1}\n", "2:4"),
        ("a: ! x\n", "1:4"),
        ("a: !!python/object/apply:os.system ['true']\n", "1:4"),
        ("!!map\na: 1\n", "1:1"),
        ("!!str a: 1\n", "1:1"),
        ("a: !!binary aGk=\n", "1:4"),
        ("a: !<tag:yaml.org,2002:int> 1\n", "1:4"),
        ("%TAG !e! tag:example.com,2000:\n---\na: !e!x 1\n", "3:4"),
        ("- !!null\n", "1:3"),
        ("a: !!merge <<\n", "1:4"),
    ],
)
def test_tags_are_refused(text: str, position: str) -> None:
    assert noted(text) == [f"{position} yaml-tag"]


def test_a_tag_is_named_as_it_is_written() -> None:
    (problem,) = parse("a: !!timestamp x\n", FILE).problems
    assert "'!!timestamp'" in problem.message
    assert problem.hint


@pytest.mark.parametrize("key", ["[1]", "{a: b}", "? [1]\n", "? {a: b}\n"])
def test_keys_must_be_text(key: str) -> None:
    assert refused(f"x: 1\n{key}: 1\n").code == "yaml-key"


def test_an_alias_for_a_text_may_be_a_key() -> None:
    assert data("- &k name\n- {*k : 1}\n") == ["name", {"name": 1}]


def test_an_alias_for_a_list_cannot_be_a_key() -> None:
    assert place(refused("- &k [name]\n- {*k : 1}\n")) == "2:4 yaml-key"


def test_several_documents() -> None:
    assert noted("a: 1\n---\nb: 2\n") == ["2:1 multiple-documents"]
    assert noted("a: 1\n...\n---\n") == ["3:1 multiple-documents"]
    assert noted("---\n---\n---\n") == ["2:1 multiple-documents"]


# Depth


def nested(depth: int, style: str) -> str:
    """A document of nested containers."""
    if style == "flow list":
        return "[" * depth + "]" * depth
    if style == "flow map":
        return "{a: " * (depth - 1) + "{}" + "}" * (depth - 1)
    if style == "block list":
        return "- " * depth + "x\n"
    return "".join("  " * level + "a:\n" for level in range(depth - 1)) + "  " * depth + "a: 1\n"


@pytest.mark.parametrize("style", ["flow list", "flow map", "block list", "block map"])
def test_depth(style: str) -> None:
    value = data(nested(MAX_DEPTH, style))
    depth = 0
    while isinstance(value, (dict, list)):
        depth += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    assert depth == MAX_DEPTH
    problem = refused(nested(MAX_DEPTH + 1, style))
    assert problem.code == "too-deep"
    assert str(MAX_DEPTH) in problem.message


@pytest.mark.parametrize("style", ["flow list", "flow map", "block list"])
def test_100_000_levels(style: str) -> None:
    assert refused(nested(100_000, style)).code == "too-deep"


def test_depth_that_aliases_build() -> None:
    """Each line is flat; only following the aliases goes deep."""
    lines = ["- &a0 [x]", *(f"- &a{i} [*a{i - 1}]" for i in range(1, 1200))]
    problem = refused("\n".join(lines) + "\n")
    assert problem.code in ("too-deep", "yaml-alias")
    assert problem.line > 1


def test_depth_that_merge_keys_build() -> None:
    lines = ["- &a0 {k: x}", *(f"- &a{i} {{k: {{<<: *a{i - 1}}}}}" for i in range(1, 1200))]
    problem = refused("\n".join(lines) + "\n")
    assert problem.code in ("too-deep", "yaml-alias")


# Aliases


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a: *b\n", "1:4"),
        ("a: [1, *b]\nb: &b 1\n", "1:8"),
        ("a: *a-b_c\n", "1:4"),
    ],
)
def test_an_unknown_alias(text: str, position: str) -> None:
    problem = refused(text)
    assert place(problem) == f"{position} yaml-alias"
    assert "&" in problem.message


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("&a [*a]\n", "1:5"),
        ("a: &x\n  b: *x\n", "2:6"),
        ("&a {k: [1, {b: *a}]}\n", "1:16"),
        ("&a {<<: *a}\n", "1:9"),
        ("&a\n- &b\n  - *b\n", "3:5"),
        ("&a [&b {x: *a}]", "1:12"),
    ],
)
def test_a_cyclic_alias(text: str, position: str) -> None:
    problem = refused(text)
    assert place(problem) == f"{position} yaml-alias"
    assert "itself" in problem.message


def test_an_anchor_may_be_given_again() -> None:
    assert data("- &a 1\n- *a\n- &a 2\n- *a\n") == [1, 1, 2, 2]
    assert data("&a [&a [1], *a]\n") == [[1], [1]]
    assert data("&a [&a x, *a]\n") == ["x", "x"]


def test_anchors_on_keys_and_scalars() -> None:
    assert data("&k key: &v 5\nother: [*k, *v]\n") == {"key": 5, "other": ["key", 5]}


def test_10_000_aliases_are_fine() -> None:
    assert len(data("a: &a [1, 2]\nb: [" + "*a, " * 10_000 + "]\n")["b"]) == 10_000


def bomb(levels: int, width: int = 10, style: str = "list") -> str:
    lines = ["- &a0 " + ("[x, x]" if style == "list" else "{x: x}")]
    for level in range(1, levels):
        one = f"*a{level - 1}"
        body = ", ".join(one if style == "list" else f"k{i}: {one}" for i in range(width))
        lines.append(f"- &a{level} " + (f"[{body}]" if style == "list" else f"{{{body}}}"))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("style", ["list", "map"])
@pytest.mark.parametrize(("levels", "width"), [(10, 10), (60, 2), (40, 100)])
def test_alias_bombs(levels: int, width: int, style: str) -> None:
    problem = refused(bomb(levels, width, style))
    assert problem.code in ("yaml-alias", "too-deep")
    assert problem.line > 1


def test_the_limit_of_aliases_counts_expanded_values() -> None:
    wide = "- &a [" + "1, " * 1000 + "]\n"
    assert parse(wide + "- *a\n" * (MAX_ALIASED // 1001), FILE).problems == []
    problem = refused(wide + "- *a\n" * (MAX_ALIASED // 1001 + 1))
    assert place(problem) == f"{MAX_ALIASED // 1001 + 2}:3 yaml-alias"
    assert f"{MAX_ALIASED:,}" in problem.message


def test_a_merge_bomb() -> None:
    wide = "- &a {" + ", ".join(f"k{i}: 1" for i in range(1000)) + "}\n"
    assert refused(wide + "- {<<: [" + "*a, " * 600 + "]}\n" * 2).code == "yaml-alias"


# Characters and size


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a: x\x07y\n", "1:5"),
        ("é: 😀\x0c\n", "1:5"),
        ("a: 1\nb: 'é\x1b[31m'\n", "2:6"),
        ("a: 1\r\nb: \x0b\r\n", "2:4"),
        ("a: x\x7f\n", "1:5"),
        ("a: \ufffe\n", "1:4"),
        ("a: 1\nb\x80: 2\n", "2:2"),
        ("# \x01\na: 1\n", "1:3"),
    ],
)
def test_control_characters(text: str, position: str) -> None:
    problem = refused(text)
    assert place(problem) == f"{position} bad-character"
    assert "U+" in problem.message


@pytest.mark.parametrize("escape", ["\\0", "\\x00", "\\u0000", "\\U00000000"])
def test_an_escaped_nul(escape: str) -> None:
    assert noted(f'a: 1\nb: ["x", "y{escape}"]\n') == ["2:10 bad-character"]
    assert noted(f'a: 1\n"b{escape}": 1\n') == ["2:1 bad-character"]
    assert data(f"a: '{escape}'\n") == {"a": escape}


@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00", "\\ud83d\\ude00", "\\U0000d800"])
def test_an_escaped_surrogate(escape: str) -> None:
    problem = refused(f'a: 1\nb: "x{escape}"\n')
    assert (problem.line, problem.code) == (2, "yaml-syntax")
    assert "escape" in problem.message


@pytest.mark.parametrize("text", ["a: {0}\n", "a: '{0}'\n", "a: |\n  {0}\n", "? {0}\n: 1\n"])
def test_the_longest_text(text: str) -> None:
    read(text.format("x" * (MAX_SCALAR - 1)))
    problem = refused(text.format("x" * (MAX_SCALAR + 1)))
    assert problem.code == "too-large"
    assert f"{MAX_SCALAR:,}" in problem.message
    assert problem.line == 1


@pytest.mark.parametrize(
    ("text", "position", "word"),
    [
        ("a: [1, 2\nb: 3\n", "2", "an earlier '[' is not closed"),
        ("a: {b: 2\nc: 3\n", "2", "an earlier '{' is not closed"),
        ("a: 1\nb: 'x\n", "2:4", "this quote is never closed"),
        ("a: 1\nb\nc: 1\n", "2:1", "followed by ': '"),
        ("a:\n    b: 1\n  c: 2\n", "3:3", "same column"),
        ("- a: 1\n - b: 1\n", "2:2", ""),
        ("a:\n  - b: 1\n    c: 1\n   d: 1\n", "4:4", "same column"),
        ("a: 'don't'\n", "1:9", "quotes of the other kind"),
        ("a: [1] x\n", "1:8", "the whole text in quotes"),
        ("a: b: c\n", "1:5", "in quotes"),
        ("a:\n\tb: 1\n", "2:1", "tabs"),
        ("a:\n  b: 1\n\tc: 2\n", "3:1", "tabs"),
        ("\ta: 1\n", "1:1", "tabs"),
        ("a: 'x\u2028\x85y'\r\nb:\r\n\tc: 1\r\n", "3:1", "tabs"),
        ("- a\nb: 1\n", "2:1", ""),
        ("a: @x\n", "1:4", "begins with '@' in quotes"),
        ("a: `x`\n", "1:4", "begins with '`' in quotes"),
        ("a: %x\n", "1:4", "begins with '%' in quotes"),
        ("a: }\n", "1:4", ""),
        ("a: &\n", "1", ""),
        ("a: |x\n  y\n", "1:5", ""),
        ("%YAML 9.9\n---\na: 1\n", "1", ""),
        ("%YAML 1.1\n%YAML 1.1\n---\n", "2", ""),
        ("a: 1\n  b: 2\n", "2:4", "fix its indentation"),
        ("- a:b\n  c: 1\n", "2:4", "the space after a ':'"),
        ('a: "\\q"\n', "1", "write a backslash twice"),
        ("a: *\n", "1", "alias"),
        ("a: x\n b\n c: 1\n", "3", ""),
        ("k" * 2000 + ": 1\n", "1", ""),
    ],
)
def test_broken_syntax(text: str, position: str, word: str) -> None:
    problem = refused(text)
    assert problem.code == "yaml-syntax"
    assert f"{problem.line}:{problem.column}".startswith(position)
    assert word in f"{problem.message} {problem.hint}"
    assert problem.message


# Properties

#: Text that YAML can hold without an escape; the three characters that only YAML 1.1 takes
#: for line breaks have tests of their own.
PRINTABLE = st.characters(
    codec="utf-8",
    exclude_categories=["Cc", "Cs", "Cn", "Co"],
    exclude_characters="\u2028\u2029\ufeff",
    include_characters="\n\t",
)
TEXTS = st.text(PRINTABLE, max_size=12) | st.text(string.printable[:94] + " \n", max_size=12)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(bool), inner, max_size=4)
    ),
    max_leaves=15,
)
#: `1e5` is text to PyYAML, which follows YAML 1.1, and so it leaves out the quotes.
NUMBERISH = re.compile(r"[-+]?(?:[0-9.]|0o|0x)")


def texts(tree: Any) -> Iterator[str]:
    for path, value in paths(tree):
        yield from (step for step in path[-1:] if isinstance(step, str))
        if isinstance(value, str):
            yield value


def offset(text: str, position: tuple[int, int]) -> int:
    """The index of a place, found without the reader's own arithmetic."""
    lines = re.split("(?<=\n)|(?<=\r)(?!\n)", text)
    return sum(map(len, lines[: position[0] - 1])) + position[1] - 1


@given(
    TREES,
    st.sampled_from([True, False, None]),
    st.booleans(),
    st.sampled_from([20, 80, 10_000]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
@example({"a": "x\n\ny ", "b": [" ", "\n"]}, False, True, 20, "\n")
def test_output_of_pyyaml_is_read_back(
    tree: Any, flow: bool | None, unicode: bool, width: int, newline: str
) -> None:
    tree = json.loads(json.dumps(tree))
    if any(NUMBERISH.match(text) for text in texts(tree)):
        tree = {"text": json.dumps(tree)}
    text = yaml.safe_dump(
        tree, default_flow_style=flow, allow_unicode=unicode, width=width, sort_keys=False
    ).replace("\n", newline)
    document = read(text)
    assert document.data == tree
    assert_positions_as_pyyaml(document, yaml.compose(text, Loader=yaml.SafeLoader))


def assert_positions_as_pyyaml(document: Document, node: Any, path: DocPath = ()) -> None:
    """The marks of PyYAML's own composer, which is written in Python, agree."""
    assert document.position(path) == (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            assert_positions_as_pyyaml(document, item, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            mark = key.start_mark
            here = (*path, key.value)
            assert document.position(here, key=True) == (mark.line + 1, mark.column + 1)
            assert_positions_as_pyyaml(document, value, here)


@given(TREES, st.sampled_from([None, 0, 2]))
def test_json_is_yaml_and_positions_point_at_the_values(tree: Any, indent: int | None) -> None:
    text = json.dumps(tree, ensure_ascii=False, indent=indent)
    document = read(text)
    assert document.data == tree
    decode = json.JSONDecoder().raw_decode
    for path, value in paths(tree):
        assert decode(text, offset(text, document.position(path)))[0] == value
        if path and isinstance(path[-1], str):
            assert decode(text, offset(text, document.position(path, key=True)))[0] == path[-1]


@given(st.text(st.sampled_from("ab01-+.:?,[]{}#&*!|>'\"%@` \n\t\\<~é😀"), max_size=30))
def test_any_text_is_read_or_rejected_with_a_position(text: str) -> None:
    try:
        document = parse(text, FILE)
    except EvalFileErrors as error:
        problems = list(error.problems)
    else:
        problems = document.problems
        for path, _ in paths(document.data):
            line, column = document.position(path)
            assert offset(text, (line, column)) <= len(text)
    for problem in problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
