"""A list in a JSON text grows and shrinks; its layout stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.wire.json import parse
from assay.wire.json_editing import with_item, without_item

ITEM = {"id": "é", "n": [1]}


def grown(text: str, base: tuple[str, ...] = ()) -> str:
    return with_item(text, parse(text, "f"), base, ITEM)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[]", '[\n  {\n    "id": "é",\n    "n": [\n      1\n    ]\n  }\n]'),
        ("[ \n ]\n", '[\n  {\n    "id": "é",\n    "n": [\n      1\n    ]\n  }\n]\n'),
        ("[1, 2]", '[1, 2, {"id": "é", "n": [1]}]'),
        ("[1]", '[1, {"id": "é", "n": [1]}]'),
        ("[\n {}\n]\n", '[\n {},\n {"id": "é", "n": [1]}\n]\n'),
        (
            '[\n\t{\n\t\t"a": 1\n\t}\n]',
            '[\n\t{\n\t\t"a": 1\n\t},\n\t{\n\t\t"id": "é",\n\t\t"n": [\n\t\t\t1\n\t\t]\n\t}\n]',
        ),
        (
            '[\r\n  {\r\n      "a": 1\r\n  }\r\n]',
            '[\r\n  {\r\n      "a": 1\r\n  },\r\n  {\r\n      "id": "é",\r\n      "n": [\r\n'
            "          1\r\n      ]\r\n  }\r\n]",
        ),
        ("[{\n}]", '[{\n}, {\n  "id": "é",\n  "n": [\n    1\n  ]\n}]'),
    ],
)
def test_a_new_item_looks_like_the_one_before_it(text: str, result: str) -> None:
    assert grown(text) == result


def test_a_list_inside_a_mapping_grows() -> None:
    text = '{\n  "metadata": {"x":   [1]},\n  "cases": []\n}\n'
    result = grown(text, ("cases",))
    assert json.loads(result) == {"metadata": {"x": [1]}, "cases": [ITEM]}
    assert result.startswith('{\n  "metadata": {"x":   [1]},\n  "cases": [\n    {\n      "id"')
    assert result.endswith("\n    }\n  ]\n}\n")


layouts = st.sampled_from([None, 1, 4, "\t"])
items = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.lists(items, max_size=4), layouts, st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_removing_an_added_item_restores_the_text(
    given_items: list[Any], indent: Any, wrapped: bool, newline: str
) -> None:
    value = {"m": 1, "cases": given_items} if wrapped else given_items
    base = ("cases",) if wrapped else ()
    text = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)
    larger = with_item(text, parse(text, "f"), base, ITEM)
    kept = {"m": 1, "cases": [*given_items, ITEM]} if wrapped else [*given_items, ITEM]
    assert json.loads(larger) == kept
    if given_items:
        assert without_item(larger, parse(larger, "f"), base, len(given_items)) == text
