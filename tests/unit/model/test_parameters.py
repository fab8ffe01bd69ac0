"""Names in braces: the laws of replacing them, and the labels of rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.parameters import names_in, row_of, substituted
from assay.model.tokens import as_text

names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
plain = st.text(st.characters(codec="utf-8", exclude_characters="{}"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | plain | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(plain, inner, max_size=2),
    max_leaves=4,
)
rows = st.dictionaries(names, values, max_size=3)


@given(name=names, value=values)
def test_a_text_that_is_a_name_becomes_its_value(name: str, value: Any) -> None:
    assert substituted(f"{{{{{name}}}}}", {name: value}) is value
    assert substituted([{"k": f"{{{{ {name} }}}}"}], {name: value}) == [{"k": value}]


@given(before=plain, after=plain, name=names, value=values)
def test_a_name_inside_a_text_becomes_text(before: str, after: str, name: str, value: Any) -> None:
    whole = f"{before}{{{{{name}}}}}{after}!"
    assert substituted(whole, {name: value}) == f"{before}{as_text(value)}{after}!"


@given(data=values, row=rows)
def test_data_without_braces_is_unchanged(data: Any, row: dict[str, Any]) -> None:
    assert substituted(data, row) == data


@given(row=rows, name=names, inner=names)
def test_values_are_not_searched_again(row: dict[str, Any], name: str, inner: str) -> None:
    told = f"{{{{{inner}}}}}"
    assert substituted(f"a {{{{{name}}}}}", {**row, inner: "x", name: told}) == f"a {told}"


@given(row=rows, text=plain)
def test_four_braces_are_two(row: dict[str, Any], text: str) -> None:
    assert substituted("{{{{" + text, row) == "{{" + text
    assert [*names_in("{{{{" + text + "}}")] == []


@given(row=rows, other=names)
def test_other_names_are_kept(row: dict[str, Any], other: str) -> None:
    row.pop(other, None)
    for text in (f"{{{{{other}}}}}", f"a {{{{{other}}}}} b", "{{seed:a.b}} {{snapshot:c}}", "{a}"):
        assert substituted(text, row) == text


@given(row=rows)
def test_keys_are_not_replaced(row: dict[str, Any]) -> None:
    text = "".join(f"{{{{{name}}}}}" for name in row)
    assert substituted({text: 1}, row) == {text: 1}


def test_where_names_are() -> None:
    case = {"input": "{{a}} {{ b }}", "expect": {"x": [1, "{{seed:q}}{{c}}"]}, "n": "{{{{d}}"}
    assert [*names_in(case)] == [
        (("input",), "a"),
        (("input",), "b"),
        (("expect", "x", 1), "c"),
    ]
    judge = [{"prompt": "{{question}} {{a}}", "other": "{{question}}"}]
    assert [*names_in(judge)] == [((0, "prompt"), "a"), ((0, "other"), "question")]


@pytest.mark.parametrize(
    ("raw", "label", "description"),
    [
        ({"a": "x"}, "x", "d"),
        ({"a": "x", "b": 2.0, "c": True, "d": None}, "x, 2, true, null", "d"),
        ({"id": "r1", "a": "x"}, "r1", "d (a = x)"),
        ({"id": 7}, "7", "d"),
        ({"a": [1]}, "3", "d (a = [1])"),
        ({"a": "x" * 61}, "3", f"d (a = {'x' * 61})"),
        ({"a": "two\nlines"}, "3", "d (a = two\nlines)"),
        ({"a": " "}, "3", "d (a =  )"),
        ({"a": "x", "tags": ["t"], "metadata": {"m": 1}}, "x", "d"),
    ],
)
def test_the_label_of_a_row(raw: dict[str, Any], label: str, description: str) -> None:
    row = row_of(raw, 3)
    assert (row.label, row.description("d")) == (label, description)
    assert row.description("").strip() == description[1:].strip()
