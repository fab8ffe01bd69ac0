"""`{{seed:...}}` and `{{snapshot:...}}`: parsing, resolution, what is skipped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model import tokens
from assay.model.expect import Expect

SOURCES: dict[str, Any] = {
    "seed": {
        "holdings": {"equities": [{"symbol": "AAPL", "shares": 150}, "X"]},
        "totals": {
            "pv": 125000,
            "dividend": "$30.05",
            "zero": 0,
            "no": False,
            "empty": "",
            "null": None,
            "price": 178.50,
            "whole": 125000.0,
            "tiny": 1e-7,
        },
        "my-list": [1],
        "matrix": [[1, 2], [3, 4]],
        "currency": "USD",
        "tricky": "{{seed:currency}}",
    },
    "snapshot": {"prices": {"AAPL": {"current": 178.5}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{seed:holdings.equities[0].symbol}}", "AAPL"),
        ("{{seed:holdings.equities[0].shares}}", "150"),
        ("{{seed:holdings.equities[0]}}", '{"symbol":"AAPL","shares":150}'),
        ("{{seed:holdings.equities[1]}}", "X"),
        ("{{seed:totals.pv}}", "125000"),
        ("{{seed:totals.whole}}", "125000"),
        ("{{seed:totals.price}}", "178.5"),
        ("{{seed:totals.dividend}}", "$30.05"),
        ("{{seed:totals.zero}}", "0"),
        ("{{seed:totals.no}}", "false"),
        ("{{seed:my-list[0]}}", "1"),
        ("{{seed:matrix[1][0]}}", "3"),
        ("{{seed:matrix[0]}}", "[1,2]"),
        ("{{ seed:currency }}", "USD"),
        ("{{snapshot:prices.AAPL.current}}", "178.5"),
        ("Total {{seed:totals.pv}} {{seed:currency}}.", "Total 125000 USD."),
        ("no token", "no token"),
        ("{{nocolon}}", "{{nocolon}}"),
        ("{{seed:tricky}}", "{{seed:currency}}"),
    ],
)
def test_a_token_becomes_the_text_of_its_value(text: str, value: str) -> None:
    assert tokens.resolve(text, SOURCES) == value


@pytest.mark.parametrize(
    "text",
    [
        "{{seed:holdings.equities[9]}}",
        "{{seed:holdings.equities[9].symbol}}",
        "{{seed:holdings.equities.length}}",
        "{{seed:missing.deep}}",
        "{{seed:totals.null}}",
        "{{seed:totals.empty}}",
        "{{seed:currency[0]}}",
        "{{seed:currency.length}}",
        "{{snapshot:prices.MSFT}}",
        "{{seed:currency}} and {{seed:missing}}",
    ],
)
def test_a_token_without_a_value_resolves_to_none(text: str) -> None:
    assert tokens.resolve(text, SOURCES) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{{sed:x}}", "'sed' is not a source"),
        ("{{SEED:x}}", "'SEED' is not a source"),
        ("{{env:HOME}}", "'env' is not a source"),
        ("{{seed:}}", "is not a path"),
        ("{{seed:a..b}}", "is not a path"),
        ("{{seed:a[-1]}}", "is not a path"),
        ("{{seed:a[x]}}", "is not a path"),
        ("{{seed:.a}}", "is not a path"),
    ],
)
def test_malformed_tokens_have_a_fault(text: str, part: str) -> None:
    (token,) = tokens.find(text)
    assert part in token.fault


@given(st.text())
def test_any_text_resolves_to_text_or_none(text: str) -> None:
    result = tokens.resolve(text, SOURCES)
    if not any(True for _ in tokens.find(text)):
        assert result == text
    else:
        assert result is None or isinstance(result, str)


def expect(**settings: Any) -> Expect:
    return Expect.model_validate(settings)


def test_an_unresolved_value_is_skipped_and_counted_once() -> None:
    block = expect(responseContains=["{{seed:currency}}", "{{seed:nope}}", "plain"])
    resolved, skipped, _ = block.resolve(SOURCES)
    assert resolved.responseContains == ["USD", "plain"]
    assert skipped == ["responseContains: {{seed:nope}}"]


def test_an_unresolved_forbidden_text_is_skipped_too() -> None:
    resolved, skipped, _ = expect(responseNotContains=["{{snapshot:x}}"]).resolve(SOURCES)
    assert resolved.responseNotContains == []
    assert len(skipped) == 1


def test_a_group_is_skipped_only_if_no_member_is_left() -> None:
    block = expect(responseContainsAny=[["{{seed:a}}", "yes"], ["{{seed:a}}", "{{seed:b}}"]])
    resolved, skipped, _ = block.resolve(SOURCES)
    assert resolved.responseContainsAny == [["yes"]]
    assert skipped == ["responseContainsAny: {{seed:a}} | {{seed:b}}"]


def test_tool_parameters_are_resolved() -> None:
    block = expect(
        toolParams=[
            {"tool": "t", "paramName": "a", "assertion": "equals", "value": "{{seed:currency}}"},
            {"tool": "t", "paramName": "b", "assertion": "equals", "value": "{{seed:nope}}"},
            {"tool": "t", "paramName": "c", "assertion": "oneOf", "value": ["{{seed:nope}}", 1]},
            {"tool": "t", "paramName": "d", "assertion": "exists"},
        ]
    )
    resolved, skipped, _ = block.resolve(SOURCES)
    assert [(p.paramName, p.value) for p in resolved.toolParams] == [
        ("a", "USD"),
        ("c", [1]),
        ("d", None),
    ]
    assert skipped == ["toolParams: t.b"]


def test_resolving_returns_a_copy() -> None:
    block = expect(responseContains=["{{seed:currency}}"], toolsCalled=["t"])
    resolved, _, _ = block.resolve(SOURCES)
    assert block.responseContains == ["{{seed:currency}}"]
    assert resolved.toolsCalled == ["t"]


def test_dropped_members_are_listed_but_not_counted_as_skipped() -> None:
    block = expect(
        responseContainsAny=[["{{seed:a}}", "yes"]],
        toolParams=[
            {"tool": "t", "paramName": "c", "assertion": "oneOf", "value": ["{{seed:nope}}", 1]}
        ],
    )
    _, skipped, dropped = block.resolve(SOURCES)
    assert skipped == []
    assert dropped == ["responseContainsAny: {{seed:a}}", "toolParams: t.c: {{seed:nope}}"]


@pytest.mark.parametrize(
    "value", [["{{seed:currency}}", "{{seed:nope}}"], {"a": ["{{seed:nope}}"]}, ["{{seed:nope}}"]]
)
def test_a_value_is_never_compared_without_its_unresolved_parts(value: Any) -> None:
    param = {"tool": "t", "paramName": "a", "assertion": "equals", "value": value}
    resolved, skipped, _ = expect(toolParams=[param]).resolve(SOURCES)
    assert (resolved.toolParams, skipped) == ([], ["toolParams: t.a"])
