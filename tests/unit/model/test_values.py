"""JSON values: equality, paths, and JSON found in untrusted texts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.values import MAX_DEPTH, MISSING, find_json, parse_json, quoted, same, value_at

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (True, "true", False),
        (None, False, False),
        (None, None, True),
        ("a", "a", True),
        ("a", "A", False),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": None}, {"b": None}, False),
        ({}, [], False),
        ([], "", False),
        (2**53 + 1, float(2**53), False),
    ],
)
def test_types_are_compared_not_texts(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal


@given(json_values)
def test_a_value_survives_a_round_trip(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@given(json_values, json_values)
def test_same_is_symmetric(a: Any, b: Any) -> None:
    assert same(a, b) == same(b, a)


VALUE = {"items": [{"p": 1}, {"p": None}], "a.b": "dotted", "a": {"b": "nested", "c": [[7]]}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("items[0].p", 1),
        ("items[1].p", None),
        ("items[2].p", MISSING),
        ("items.0.p", 1),
        ("items.2.p", MISSING),
        ("items." + "9" * 5000, MISSING),
        ("items[" + "9" * 5000 + "]", MISSING),
        ("items.p", MISSING),
        ("items[0][0]", MISSING),
        ("a.b", "dotted"),
        ("a.c[0][0]", 7),
        ("a.c.0.0", 7),
        ("a.x", MISSING),
        ("a[0]", MISSING),
    ],
)
def test_paths_reach_into_values(path: str, found: Any) -> None:
    assert value_at(VALUE, path) is found or value_at(VALUE, path) == found


def test_a_path_may_start_in_a_list() -> None:
    assert value_at([{"a": 5}], "[0].a") == 5
    assert value_at("text", "[0]") is MISSING
    assert value_at(MISSING, "a") is MISSING


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (' {"a": 1}\n', {"a": 1}),
        ("42", 42),
        ("null", None),
        ('"text"', "text"),
        ('Here:\n```json\n{"a": [1]}\n```\nDone.', {"a": [1]}),
        ('```\nno json\n```\n```\n{"a": 2}\n```', {"a": 2}),
        ("```\n5\n```", 5),
        ('The answer is {"a": {"b": "}"}} and no more', {"a": {"b": "}"}}),
        ('{not json} but {"a": 1}', {"a": 1}),
        ('{broken: [1, 2]} then {"a": 1}', [1, 2]),
        ('[{"a": 1}, {"b": 2}, oops', {"a": 1}),
        ('say "quoted { " and {"a": "\\"}"}', {"a": '"}'}),
        ('[NaN] [Infinity] [{"a": 1}, -Infinity]', {"a": 1}),
        ('```json\n{"a": "```"}\n```', {"a": "```"}),
        ("nothing here", MISSING),
        ("", MISSING),
        ("[1, 2", MISSING),
        ('{"a": NaN}', MISSING),
        ("NaN", MISSING),
        ("it is 42", MISSING),
    ],
)
def test_json_is_found_in_a_text(text: str, found: Any) -> None:
    result = find_json(text)
    assert result is found or same(result, found)


def test_a_value_of_another_type_is_skipped() -> None:
    text = 'As [1] says: {"a": 2}'
    assert find_json(text) == [1]
    assert find_json(text, dict) == {"a": 2}
    assert find_json("[1]", dict) is MISSING


@given(json_values, st.sampled_from(["", "\n```json\n"]))
def test_encoded_values_are_found(value: Any, fence: str) -> None:
    text = json.dumps(value)
    if fence:
        text = f"Sure!{fence}{text}\n```\nAnything else?"
    assert same(find_json(text), value)


@given(st.lists(json_values, max_size=3) | st.dictionaries(st.text(), json_values, max_size=3))
def test_an_object_or_list_is_found_in_prose(value: Any) -> None:
    assert same(find_json(f"I think {json.dumps(value)} is it (sure)."), value)


@given(st.text(alphabet='[]{}",:\\1a NaInfty`\n'))
def test_any_text_can_be_searched(text: str) -> None:
    value = find_json(text)
    if value is not MISSING:
        json.dumps(value, allow_nan=False)


SIZE = 1_000_000


@pytest.mark.parametrize(
    "piece",
    [
        *("[", "{", "\\", '"', "`", "[,", "[1,", '{"a":', '["', '{"', "[[],", "[t", "[\n", "```\n"),
        *('["NaN",', "[ ", '["\\', "9", "}", '{"a":[', "-", "[1,2,{"),
    ],
)
def test_a_megabyte_of_nonsense_is_searched_quickly(piece: str) -> None:
    started = time.process_time()
    find_json(piece * (SIZE // len(piece)))
    find_json('["' + piece * (SIZE // len(piece)))
    assert time.process_time() - started < 8


def test_values_nested_too_deeply_are_not_json() -> None:
    fits, too_deep = ("[" * depth + "]" * depth for depth in (MAX_DEPTH, MAX_DEPTH + 1))
    assert parse_json(fits) is not MISSING
    assert parse_json(too_deep) is MISSING
    assert parse_json("[" * 5000 + "]" * 5000) is MISSING
    assert parse_json("[" + "[]," * 5000 + "[]]") is not MISSING


def test_a_number_of_any_length_is_read() -> None:
    assert isinstance(parse_json("9" * 4300), int)
    assert isinstance(parse_json("9" * 4301), float)


def test_values_are_quoted_and_cut() -> None:
    assert quoted("it's") == '"it\'s"'
    assert quoted({"a": True, "b": None}) == '{"a": true, "b": null}'
    assert len(quoted("x" * 1000)) == 82
    assert len(quoted(["x" * 1000])) == 80
