"""How each key of an `expect` block is judged."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from assay import patterns
from assay.engine.grading import Preparation
from assay.model.case import EvalCase
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.model.result import EvalCaseResult
from assay.model.score import EvaluationScore
from assay.ports import Resources
from assay.scoring import prepare
from unit.evaluator_calls import context_of, judged, spec_of


def seen(
    *calls: str | ToolCall, response: str = "It is 23.5 °C in Lisbon.", **rest: Any
) -> Observation:
    made = tuple(c if isinstance(c, ToolCall) else ToolCall(c, success=True) for c in calls)
    return Observation(response, tool_calls=made, **rest)


def expect(observation: Observation, /, **keys: Any) -> EvaluationScore:
    return judged("expect", observation, **keys)


def call(tool: str, **params: Any) -> ToolCall:
    return ToolCall(tool, params, success=True)


# Tools


@pytest.mark.parametrize(
    ("mode", "wanted", "called", "holds"),
    [
        ("set", ["a"], ["a"], True),
        ("set", ["a"], [], False),
        ("set", ["a"], ["a", "b"], False),
        ("set", ["a", "b"], ["b", "a"], True),
        ("set", ["a", "b"], ["a"], False),
        ("set", ["a"], ["a", "a", "a"], True),
        ("set", ["a", "a"], ["a"], False),
        ("set", ["a", "a"], ["a", "a", "a"], True),
        ("set", [], [], True),
        ("set", [], ["a"], False),
        ("multiset", ["a", "b"], ["b", "a"], True),
        ("multiset", ["a"], ["a", "a"], False),
        ("multiset", ["a", "a"], ["a"], False),
        ("multiset", [], [], True),
        ("sequence", ["a", "b"], ["a", "b"], True),
        ("sequence", ["a", "b"], ["b", "a"], False),
        ("sequence", ["a"], ["a", "a"], False),
    ],
)
def test_tools_called(mode: str, wanted: list[str], called: list[str], holds: bool) -> None:
    score = expect(seen(*called), toolsCalled=wanted, toolsCalledMode=mode)
    assert (score.score, score.verdict) == ((1.0, "pass") if holds else (0.0, "fail"))
    assert all(message.startswith("toolsCalled: ") for message in (*score.hits, *score.misses))
    acceptable = expect(seen(*called), toolsAcceptable=[["z"], wanted], toolsCalledMode=mode)
    assert acceptable.score == score.score


def test_repeats_of_a_listed_tool_are_noted() -> None:
    score = expect(seen("a", "b", "a"), toolsCalled=["a", "b"])
    assert (score.score, score.details) == (1.0, {"repeated": {"a": 2}})
    score = expect(seen("a", "a"), toolsAcceptable=[["b"], ["a"]])
    assert (score.score, score.details) == (1.0, {"repeated": {"a": 2}})


@pytest.mark.parametrize(
    ("mode", "wanted", "called", "message"),
    [
        ("set", ["a"], ["b"], 'expected ["a"], called ["b"]; missing ["a"]; unexpected ["b"]'),
        ("set", [], ["b"], 'expected no tool, called ["b"]; unexpected ["b"]'),
        ("set", ["a"], [], 'expected ["a"], called no tool; missing ["a"]'),
        ("multiset", ["a"], ["a", "a"], 'unexpected ["a"]'),
        ("sequence", ["a", "b"], ["b", "a"], "; the order differs"),
    ],
)
def test_a_miss_names_the_tools(
    mode: str, wanted: list[str], called: list[str], message: str
) -> None:
    (miss,) = expect(seen(*called), toolsCalled=wanted, toolsCalledMode=mode).misses
    assert message in miss


@pytest.mark.parametrize(
    ("sets", "called", "holds"),
    [
        ([["a"], ["a", "b"]], ["a"], True),
        ([["a"], ["a", "b"]], ["b", "a"], True),
        ([["a"], ["a", "b"]], ["b"], False),
        ([["a"], ["a", "b"]], [], False),
        ([["__none__"]], [], True),
        ([["__none__"]], ["a"], False),
        ([[]], [], True),
        ([[]], ["a"], False),
        ([["a"], ["__none__"]], [], True),
    ],
)
def test_tools_acceptable(sets: list[list[str]], called: list[str], holds: bool) -> None:
    score = expect(seen(*called), toolsAcceptable=sets)
    assert score.score == float(holds)
    assert all(message.startswith("toolsAcceptable: ") for message in (*score.hits, *score.misses))


def test_tools_not_called() -> None:
    score = expect(seen("a"), toolsNotCalled=["a", "b"])
    assert score.score == 0.5
    assert score.misses == ("toolsNotCalled: expected no call of 'a', but it was called",)


@pytest.mark.parametrize(
    ("made", "holds"),
    [
        (ToolCall("t", success=True), True),
        (ToolCall("t", success=True, error="ignored"), True),
        (ToolCall("t", success=False), False),
        (ToolCall("t", success=False, error="boom"), False),
        (ToolCall("t", error="boom"), False),
        (ToolCall("t"), True),
    ],
)
def test_no_tool_errors(made: ToolCall, holds: bool) -> None:
    score = expect(seen("u", made), noToolErrors=True)
    assert score.score == float(holds)
    if not holds:
        assert score.misses[0].startswith(
            "noToolErrors: expected every call to succeed, but 't' failed"
        )
        assert ("boom" in score.misses[0]) == (made.error == "boom")


def test_an_assumed_success_is_noted() -> None:
    score = expect(seen("u", ToolCall("t")), noToolErrors=True)
    assert score.details == {"assumedSuccess": ["t"]}
    assert expect(seen("u"), noToolErrors=True).details == {}


@pytest.mark.parametrize(
    ("keys", "count", "holds"),
    [
        ({"minToolCalls": 2}, 2, True),
        ({"minToolCalls": 2}, 1, False),
        ({"maxToolCalls": 2}, 2, True),
        ({"maxToolCalls": 2}, 3, False),
        ({"maxToolCalls": 0}, 0, True),
        ({"maxToolCalls": 0}, 1, False),
    ],
)
def test_counts_of_calls(keys: dict[str, int], count: int, holds: bool) -> None:
    score = expect(seen(*["t"] * count), **keys)
    assert score.score == float(holds)
    (key,) = keys
    assert all(message.startswith(f"{key}: ") for message in (*score.hits, *score.misses))


# Parameters

QUERY = call(
    "find", city="Lisbon", days=3, ratio=1.0, dry=True, tags=["a", 1], at={"x": [{"y": 5}]}, no=None
)


@pytest.mark.parametrize(
    ("name", "assertion", "value", "holds"),
    [
        ("city", "equals", "Lisbon", True),
        ("city", "equals", "lisbon", False),
        ("days", "equals", 3, True),
        ("days", "equals", 3.0, True),
        ("days", "equals", "3", False),
        ("ratio", "equals", 1, True),
        ("ratio", "equals", True, False),
        ("dry", "equals", True, True),
        ("dry", "equals", 1, False),
        ("dry", "equals", "true", False),
        ("no", "equals", None, True),
        ("nothing", "equals", None, False),
        ("tags", "equals", ["a", 1], True),
        ("tags", "equals", [1, "a"], False),
        ("at", "equals", {"x": [{"y": 5.0}]}, True),
        ("at.x[0].y", "equals", 5, True),
        ("at.x[1].y", "equals", 5, False),
        ("city", "contains", "Lis", True),
        ("city", "contains", "lis", False),
        ("tags", "contains", 1, True),
        ("tags", "contains", True, False),
        ("tags", "contains", "1", False),
        ("at", "contains", "x", True),
        ("at", "contains", "y", False),
        ("days", "contains", "3", False),
        ("nothing", "contains", "x", False),
        ("city", "oneOf", ["Porto", "Lisbon"], True),
        ("days", "oneOf", ["3", 4], False),
        ("days", "oneOf", [4, 3], True),
        ("city", "exists", ..., True),
        ("no", "exists", ..., True),
        ("at.x", "exists", ..., True),
        ("at.z", "exists", ..., False),
        ("at.z", "notExists", ..., True),
        ("city", "notExists", ..., False),
        ("city", "matches", "^L.*n$", True),
        ("city", "matches", "^l", False),
        ("city", "matches", "L(?=is)", True),
        ("days", "matches", "3", False),
    ],
)
def test_tool_params(name: str, assertion: str, value: Any, holds: bool) -> None:
    param = {"tool": "find", "paramName": name, "assertion": assertion}
    if value is not ...:
        param["value"] = value
    score = expect(seen(QUERY), toolParams=[param])
    assert score.score == float(holds)
    message = (*score.hits, *score.misses)
    assert len(message) == 1
    assert ("toolParams: " if holds else "toolParams: expected ") in message[0]
    assert f"find.{name} {assertion}" in message[0]


def test_some_call_of_the_tool_is_enough_unless_one_is_named() -> None:
    observation = seen(call("t", q="b"), call("u", q="x"), call("t", q="a"))

    def holds(value: str, **rest: Any) -> bool:
        param = {"tool": "t", "paramName": "q", "assertion": "equals", "value": value, **rest}
        return expect(observation, toolParams=[param]).score == 1

    assert holds("a")
    assert holds("a", call=2)
    assert not holds("a", call=1)
    assert not holds("b", call=3)
    assert not holds("x")


def test_a_parameter_of_a_tool_that_was_not_called() -> None:
    param = {"tool": "t", "paramName": "q", "assertion": "notExists"}
    (miss,) = expect(seen("u"), toolParams=[param]).misses
    assert miss == "toolParams: expected t.q notExists, but 't' was not called"
    (miss,) = expect(seen("t"), toolParams=[{**param, "call": 2}]).misses
    assert miss.endswith("but 't' was called 1 time(s)")


def test_a_wrong_parameter_is_quoted_with_its_type() -> None:
    param = {"tool": "find", "paramName": "days", "assertion": "equals", "value": "3"}
    (miss,) = expect(seen(QUERY), toolParams=[param]).misses
    assert miss == "toolParams: expected find.days equals '3', found 3"


# The answer


@pytest.mark.parametrize(
    ("keys", "response", "holds"),
    [
        ({"responseNonEmpty": True}, "x", True),
        ({"responseNonEmpty": True}, " \n\t", False),
        ({"responseContains": ["23.5"]}, "23.5 °C", True),
        ({"responseContains": ["Lisbon"]}, "lisbon", False),
        ({"responseContainsAny": [["sunny", "clear"]]}, "a clear sky", True),
        ({"responseContainsAny": [["sunny", "clear"]]}, "rain", False),
        ({"responseNotContains": ["I don't know"]}, "fine", True),
        ({"responseNotContains": ["I don't know"]}, "Well, I don't know.", False),
        ({"responseNotContains": ["API_KEY"]}, "api_key", True),
        ({"responseMatches": [r"\d+ °C$"]}, "it is 23 °C", True),
        ({"responseMatches": [r"\d+ °C$"]}, "23 °C\n", False),
        ({"responseMatches": ["Lisbon"]}, "lisbon", False),
        ({"responseMatches": ["a(?=b)"]}, "ab", True),
        ({"responseMatches": ["a(?=b)"]}, "ac", False),
        ({"responseMatches": ["^(a+)+$"]}, "a" * 40_000 + "!", False),
        ({"minLength": 3}, "abc", True),
        ({"minLength": 4}, "abc", False),
        ({"maxLength": 3}, "abc", True),
        ({"maxLength": 2}, "abc", False),
        ({"jsonValid": True}, '{"a": 1}', True),
        ({"jsonValid": True}, '{"a": 1', False),
        ({"jsonSchema": {"type": "object"}}, "{}", True),
        ({"jsonSchema": {"type": "object"}}, "[]", False),
        ({"jsonSchema": {"type": "object"}}, "no", False),
        ({"jsonSchema": {}}, "1", True),
    ],
)
def test_the_text_of_the_answer(keys: dict[str, Any], response: str, holds: bool) -> None:
    score = expect(Observation(response), **keys)
    assert score.score == float(holds)
    (key,) = keys
    assert all(message.startswith(f"{key}: ") for message in (*score.hits, *score.misses))


@pytest.mark.parametrize(
    "keys", [{"responseContains": ["Lisbon"]}, {"responseContainsAny": [["Porto", "LISBON"]]}]
)
def test_a_match_with_different_capitalisation_gives_a_hint(keys: dict[str, Any]) -> None:
    (miss,) = expect(Observation("lisbon"), **keys).misses
    assert miss.endswith("; it is there with different capitalisation")
    (miss,) = expect(Observation("rome"), **keys).misses
    assert "another case" not in miss


def test_each_item_of_a_list_is_an_assertion() -> None:
    score = expect(Observation("a b"), responseContains=["a", "b", "c"], responseMatches=["x"])
    assert score.score == 0.5
    assert [miss.split(":")[0] for miss in score.misses] == ["responseContains", "responseMatches"]


# Budgets


@pytest.mark.parametrize(
    ("keys", "reported", "holds"),
    [
        ({"maxLatencyMs": 100}, {"duration_ms": 100.0}, True),
        ({"maxLatencyMs": 100}, {"duration_ms": 100.1}, False),
        ({"maxCostUsd": 0.3}, {"cost_usd": 0.1 + 0.2}, True),
        ({"maxCostUsd": 0.3}, {"cost_usd": 0.31}, False),
        ({"maxTokens": 10}, {"usage": Usage(output_tokens=10)}, True),
        ({"maxTokens": 10}, {"usage": Usage(output_tokens=11)}, False),
    ],
)
def test_budgets_pass_at_equality(
    keys: dict[str, Any], reported: dict[str, Any], holds: bool
) -> None:
    score = expect(Observation("x", **reported), **keys)
    assert score.score == float(holds)
    (key,) = keys
    assert all(message.startswith(f"{key}: ") for message in (*score.hits, *score.misses))


@pytest.mark.parametrize("usage", [None, Usage(input_tokens=500)])
def test_tokens_are_estimated_when_they_were_not_reported(usage: Usage | None) -> None:
    score = expect(Observation("x" * 41, usage=usage), maxTokens=11)
    assert score.score == 1
    assert score.details["tokens"] == {"count": 11, "source": "estimated as characters / 4"}
    assert expect(Observation("x" * 41, usage=usage), maxTokens=10).score == 0


def test_details_have_the_source_of_the_tokens() -> None:
    score = expect(Observation("x" * 400, usage=Usage(output_tokens=3)), maxTokens=5)
    assert score.details["tokens"] == {"count": 3, "source": "reported by the target"}


# What cannot be judged

TOOL_KEYS: list[dict[str, Any]] = [
    {"toolsCalled": ["a"]},
    {"toolsCalled": []},
    {"toolsAcceptable": [["__none__"]]},
    {"toolsNotCalled": ["a"]},
    {"toolParams": [{"tool": "a", "paramName": "q", "assertion": "exists"}]},
    {"noToolErrors": True},
    {"minToolCalls": 1},
    {"maxToolCalls": 0},
]


@pytest.mark.parametrize("keys", TOOL_KEYS, ids=lambda keys: next(iter(keys)))
def test_without_tool_information_tool_assertions_are_errored(keys: dict[str, Any]) -> None:
    score = expect(Observation("x"), responseNonEmpty=True, **keys)
    assert (score.score, score.error) == (None, "target reports no tool calls")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"maxLatencyMs": 5}, "target reports no duration"),
        ({"maxCostUsd": 5}, "target reports no cost"),
    ],
)
def test_a_budget_on_an_unreported_measure_is_errored(keys: dict[str, Any], reason: str) -> None:
    assert expect(seen("a"), **keys).error == reason


@pytest.mark.parametrize(
    "keys",
    [
        {"responseMatches": ["(?!x)^(a|aa)+$"]},
        {"jsonSchema": {"pattern": "(?!x)^(a|aa)+$"}},
        {
            "toolParams": [
                {
                    "tool": "t",
                    "paramName": "q",
                    "assertion": "matches",
                    "value": "(?!x)^(a|aa)+$",
                }
            ]
        },
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_a_pattern_that_takes_too_long_is_errored(
    keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    slow = "a" * 100 + "!"
    response = f'"{slow}"' if "jsonSchema" in keys else slow
    score = expect(seen(call("t", q=slow), response=response), **keys)
    assert score.error == "the pattern took longer than 1 s"


def test_an_endlessly_recursive_schema_is_errored() -> None:
    assert "refers to itself endlessly" in expect(Observation("5"), jsonSchema={"$ref": "#"}).error


def test_a_failed_assertion_fails_even_if_another_cannot_be_judged() -> None:
    score = expect(
        Observation("x"),
        toolsCalled=["a"],
        maxLatencyMs=5,
        responseContains=["x", "y"],
    )
    assert (score.score, score.verdict) == (0.5, "fail")
    assert len(score.misses) == 1
    assert score.details["unjudged"] == [
        "maxLatencyMs: at most 5 ms: target reports no duration",
        'toolsCalled: ["a"]: target reports no tool calls',
    ]


def test_all_reasons_are_reported() -> None:
    score = expect(Observation("x"), toolsCalled=[], noToolErrors=True, maxCostUsd=1)
    assert score.error == "target reports no cost; target reports no tool calls"
    assert len(score.details["unjudged"]) == 3


# The block


def block(**keys: Any) -> EvalCaseResult:
    """A case with a block of ten assertions, of which one fails."""
    spec = spec_of("expect", name="expect", **keys)
    case = EvalCase("c", (Message("user", "?"),), (spec,))
    result = Preparation(Resources()).grader(case).grade(Observation("abcdefghi"))
    assert isinstance(result, EvalCaseResult)
    return result


def test_one_failed_assertion_of_many_fails_the_case() -> None:
    result = block(responseContains=list("abcdefghiX"))
    assert (result.outcome, result.score) == ("failed", 0.9)
    assert "responseContains: expected 'X', found 'abcdefghi'" in result.failures[0]
    assert block(responseContains=list("abcdefghi")).outcome == "passed"


def test_a_key_set_to_false_asserts_nothing() -> None:
    score = expect(Observation(" "), responseNonEmpty=False, noToolErrors=False, maxLength=9)
    assert (score.score, len(score.hits)) == (1.0, 1)


def test_keys_in_snake_case_are_judged_the_same() -> None:
    score = expect(seen("a"), tools_called=["b"], response_contains=["Lisbon"])
    assert score.misses[0].startswith("toolsCalled: expected")


# Tokens

SOURCES = {"seed": {"city": "Lisbon", "price": 125000, "bad": "("}, "snapshot": {}}


def test_tokens_are_resolved() -> None:
    observation = Observation("Lisbon: 125000")
    keys: dict[str, Any] = {
        "responseContains": ["{{seed:city}}", "{{seed:price}}"],
        "responseContainsAny": [["{{seed:price}} EUR", "{{seed:city}}: "]],
    }
    score = expect(observation, sources=SOURCES, **keys)
    assert (score.score, score.details, len(score.hits)) == (1.0, {}, 3)
    other = {"seed": {"city": "Porto", "price": 125000}}
    assert (
        expect(observation, sources=other, **keys)
        .misses[0]
        .startswith("responseContains: expected 'Porto'")
    )


def test_skipped_and_dropped_assertions_are_listed_and_never_fail() -> None:
    score = expect(
        Observation("Lisbon"),
        sources=SOURCES,
        responseContains=["{{seed:nope}}", "Lisbon"],
        responseNotContains=["{{snapshot:nope}}"],
        responseContainsAny=[["{{seed:nope}}", "Lisbon"], ["{{seed:nope}}", "{{seed:no}}"]],
    )
    assert score.score == 1
    assert score.details == {
        "skipped": [
            "responseContains: {{seed:nope}}",
            "responseNotContains: {{snapshot:nope}}",
            "responseContainsAny: {{seed:nope}} | {{seed:no}}",
        ],
        "dropped": ["responseContainsAny: {{seed:nope}}"],
    }
    assert list(score.skipped_assertions) == score.details["skipped"]


def test_a_failing_block_also_lists_skipped_assertions() -> None:
    score = expect(Observation("x"), responseContains=["{{seed:nope}}", "Lisbon"])
    assert (score.score, len(score.details["skipped"])) == (0.0, 1)
    assert list(score.skipped_assertions) == score.details["skipped"]


def test_a_block_with_nothing_left_to_check_is_skipped() -> None:
    param = {"tool": "t", "paramName": "q", "assertion": "equals", "value": "{{seed:nope}}"}
    score = expect(Observation("x"), responseContains=["{{seed:nope}}"], toolParams=[param])
    assert (score.skipped, score.score) == ("nothing verified", None)
    assert len(score.details["skipped"]) == 2
    result = block(responseContains=["{{seed:nope}}"])
    assert (result.outcome, result.skipped_assertions) == ("skipped", 1)


def test_a_token_may_make_a_pattern_that_does_not_compile() -> None:
    param = {"tool": "t", "paramName": "q", "assertion": "matches", "value": "{{seed:bad}}"}
    score = expect(seen(call("t", q="x")), sources=SOURCES, toolParams=[param])
    assert "'(' does not compile" in score.error


# The rules of the tier files


def test_golden_exactly_the_listed_tools_no_error_an_answer_and_its_values() -> None:
    keys: dict[str, Any] = {
        "toolsCalled": ["get_weather"],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["23.5", "Lisbon"],
        "responseContainsAny": [["°C", "degrees"], ["is", "was"]],
        "responseNotContains": ["I don't know", "fetchedAt", "API_KEY"],
        "maxLatencyMs": 1000,
    }
    good = seen("get_weather", duration_ms=1000.0)
    score = expect(good, **keys)
    assert (score.score, score.verdict, len(score.hits)) == (1.0, "pass", 11)
    extra = expect(seen("get_weather", "get_time", duration_ms=1.0), **keys)
    assert (len(extra.misses), extra.verdict) == (1, "fail")
    empty = expect(seen("get_weather", response="", duration_ms=1.0), **keys)
    assert [miss.split(":")[0] for miss in empty.misses] == [
        "responseContains",
        "responseContains",
        "responseContainsAny",
        "responseContainsAny",
        "responseNonEmpty",
    ]


def test_labeled_an_edge_case_calls_no_tool() -> None:
    keys: dict[str, Any] = {"toolsAcceptable": [["__none__"]], "toolsNotCalled": ["rm"]}
    assert expect(seen(), **keys).score == 1
    assert expect(seen("rm"), **keys).score == 0


def test_labeled_an_ambiguous_case_accepts_any_of_its_sets() -> None:
    keys = {"toolsAcceptable": [["get_weather"], ["get_weather", "get_forecast"]]}
    assert expect(seen("get_weather"), **keys).score == 1
    assert expect(seen("get_forecast", "get_weather"), **keys).score == 1
    assert expect(seen("get_forecast"), **keys).score == 0


# Purity


def test_a_block_gives_the_same_result_in_any_order_and_thread() -> None:
    spec = spec_of(
        "expect", toolsCalled=["a"], noToolErrors=True, responseContains=["x"], maxTokens=2
    )
    check = prepare(spec, Resources())
    observations = [
        Observation("x"),
        Observation("yyyyyyyyy"),
        seen("a", response="x"),
        seen("a", "a", response="x"),
        seen(ToolCall("a"), ToolCall("b", error="e"), response="x" * 20),
    ]
    first = [check(context_of(one)) for one in observations]
    assert len({repr(score) for score in first}) == len(first)
    order = random.Random(3).choices(range(len(observations)), k=300)
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda i: check(context_of(observations[i])), order))
    assert again == [first[i] for i in order]
