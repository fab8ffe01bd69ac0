"""tool_trajectory: scores, messages and diffs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import patterns
from assay.evaluators.tool_trajectory import ToolTrajectoryEvaluator
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.diff import render_diff
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.ports import Resources

MODES = ("any_order", "in_order", "exact", "superset", "subset")


def made(call: Any) -> ToolCall:
    """`"a"`, `("a", {"q": 1})` or keys of a call."""
    if isinstance(call, str):
        return ToolCall(call)
    return ToolCall(*call) if isinstance(call, tuple) else ToolCall(**call)


def step(call: Any) -> dict[str, Any]:
    """`"a"`, `("a", {"q": 1})` or keys of a step."""
    if isinstance(call, str):
        return {"tool": call}
    return {"tool": call[0], "args": call[1]} if isinstance(call, tuple) else call


def graded(keys: dict[str, Any], calls: list[Any] | None) -> EvaluationScore:
    if "expected" in keys:
        keys = keys | {"expected": [step(item) for item in keys["expected"]]}
    spec = ToolTrajectoryEvaluator.model_validate({"type": "tool_trajectory"} | keys)
    observation = Observation(tool_calls=None if calls is None else tuple(map(made, calls)))
    score = spec.prepare(Resources())(Context(EvalCase("case", (), ()), observation))
    assert isinstance(score, EvaluationScore)
    return score


def score_of(keys: dict[str, Any], calls: list[Any]) -> float:
    score = graded(keys, calls)
    assert score.score is not None
    return score.score


def walk(mode: str, expected: list[Any], calls: list[Any], **keys: Any) -> float:
    return score_of({"mode": mode, "expected": expected} | keys, calls)


def statuses(score: EvaluationScore) -> list[str]:
    """`matched a`, `missing b` ... in the order of the diff."""
    return [
        f"{entry['status']} {entry.get('actual', entry.get('expected'))['tool']}"
        for entry in score.details["diff"]
    ]


# Modes


def test_in_order_wants_the_steps_in_their_order_with_anything_between() -> None:
    assert walk("in_order", ["a", "b"], ["a", "x", "b"]) == 1
    assert walk("in_order", ["a", "b"], ["b", "a"]) == 0.5


def test_in_order_finds_the_best_alignment_not_the_first() -> None:
    assert walk("in_order", ["a", "b", "c"], ["c", "a", "b", "c"]) == 1
    assert walk("in_order", ["z", "a", "b"], ["a", "b", "z"]) == pytest.approx(2 / 3)


def test_any_order_accepts_the_steps_in_any_order() -> None:
    assert walk("any_order", ["a", "b"], ["b", "x", "a"]) == 1
    assert walk("any_order", ["a", "b"], ["b", "x"]) == 0.5


def test_any_order_finds_the_best_assignment_not_the_first() -> None:
    calls = [("a", {"q": 1}), ("a", {"q": 2})]
    assert walk("any_order", ["a", ("a", {"q": 1})], calls) == 1
    assert walk("any_order", [("a", {"q": 1}), "a"], calls) == 1


@pytest.mark.parametrize("mode", ["any_order", "in_order", "superset"])
def test_a_call_satisfies_one_step_only(mode: str) -> None:
    assert walk(mode, ["a", "a"], ["a"]) == 0.5
    assert walk(mode, ["a", "a"], ["a", "a"]) == 1


def test_superset_wants_the_steps_among_the_calls() -> None:
    assert walk("superset", ["a", "b"], ["x", "b", "a", "a"]) == 1
    assert walk("superset", ["a", "b"], ["x", "b"]) == 0.5


def test_subset_scores_the_allowed_calls() -> None:
    assert walk("subset", ["a", "b", "c"], ["c", "a"]) == 1
    assert walk("subset", ["a", "b"], ["a", "x"]) == 0.5


def test_subset_allows_a_step_more_than_once() -> None:
    score = graded({"mode": "subset", "expected": ["a", "b"]}, ["a", "a", "x"])
    assert score.score == pytest.approx(2 / 3)
    assert (score.hits, score.misses) == (("a was called",) * 2, ("x is not allowed",))
    assert statuses(score) == ["matched a", "matched a", "unexpected x"]
    assert walk("subset", ["a", "a"], ["a", "a", "a"]) == 1


def test_subset_reports_the_difference_of_every_call_of_a_step() -> None:
    keys = {"mode": "subset", "expected": [("a", {"q": 1})]}
    score = graded(keys, [("a", {"q": 2}), ("a", {"q": 3})])
    assert score.misses == (
        "a(q=2) is not allowed: q = 2, expected 1",
        "a(q=3) is not allowed: q = 3, expected 1",
    )


def test_subset_prefers_the_step_whose_time_limit_a_call_keeps() -> None:
    slow = {"tool": QUICK["tool"], "max_duration_ms": 1000}
    assert walk("subset", [QUICK, slow], [timed(500.0), timed(500.0)]) == 1


def test_subset_without_calls_is_satisfied() -> None:
    score = graded({"mode": "subset", "expected": ["a"]}, [])
    assert (score.score, score.reasoning) == (1, "nothing is required")


def test_exact_counts_the_places_so_extra_calls_cost() -> None:
    assert walk("exact", ["a", "b"], ["a", "b"]) == 1
    assert walk("exact", ["a", "b"], ["a", "b", "c", "d"]) == 0.5
    assert walk("exact", ["a", "b"], ["a"]) == 0.5
    assert walk("exact", ["a", "b"], ["x", "a", "b"]) == 0
    assert walk("exact", ["a", "b"], ["b", "a"]) == 0


def test_exact_with_no_steps_wants_no_call() -> None:
    assert walk("exact", [], []) == 1
    assert walk("exact", [], ["a"]) == 0


def test_exact_and_subset_without_steps_check_counts_only() -> None:
    for mode in ("exact", "subset"):
        score = graded({"mode": mode, "minimums": {"a": 1}}, ["a", "b"])
        assert (score.score, score.details["diff"]) == (1, [])
        assert score_of({"mode": mode, "minimums": {"a": 1}}, ["b"]) == 0


# Optional steps


@pytest.mark.parametrize("mode", MODES)
def test_an_optional_step_may_be_left_out(mode: str) -> None:
    path = ["a", {"tool": "o", "optional": True}, "b"]
    assert walk(mode, path, ["a", "o", "b"]) == 1
    assert walk(mode, path, ["a", "b"]) == 1


def test_an_optional_step_is_not_an_aspect() -> None:
    path = [{"tool": "o", "optional": True}, "a", "b"]
    assert walk("in_order", path, ["o", "a"]) == 0.5
    assert walk("any_order", path, ["o", "a"]) == 0.5


def test_optional_steps_take_no_call_from_required_ones() -> None:
    path = [{"tool": "a", "optional": True}, "a"]
    assert walk("in_order", path, ["a"]) == 1
    assert walk("any_order", path, ["a"]) == 1


def test_exact_leaves_an_optional_step_out_only_where_that_is_better() -> None:
    path = ["a", {"tool": "o", "optional": True}, "b", "c"]
    assert walk("exact", path, ["a", "x", "b", "c"]) == 0.75
    assert walk("exact", path, ["a", "b", "x"]) == pytest.approx(2 / 3)


def test_optional_steps_of_exact_never_lower_the_score() -> None:
    path = ["a", "b", "c", "d"]
    more = [{"tool": tool, "optional": True} for tool in ("x", "y")]
    calls = ["x", "b", "c", "d"]
    assert walk("exact", path, calls) == 0.75
    assert walk("exact", [*more, *path], calls) == 0.75


def test_an_optional_step_that_took_too_long_does_not_lower_the_score() -> None:
    path = ["a", {"tool": "o", "optional": True, "max_duration_ms": 10}]
    slow = {"tool": "o", "duration_ms": 50.0}
    assert walk("in_order", path, ["a", slow]) == 1
    assert walk("any_order", path, ["a", slow]) == 1


# Numbers of calls, ignored and forbidden tools


def test_minimums_are_aspects_and_hold_at_equality() -> None:
    assert score_of({"minimums": {"a": 2}}, ["a", "a"]) == 1
    assert score_of({"minimums": {"a": 2, "b": 0}}, ["a"]) == 0.5


def test_maximums_are_aspects_and_hold_at_equality() -> None:
    assert score_of({"maximums": {"a": 1}}, ["a"]) == 1
    assert score_of({"maximums": {"a": 1, "b": 0}}, ["a", "a"]) == 0.5


@pytest.mark.parametrize("mode", MODES)
def test_counts_are_scored_in_addition_to_the_steps(mode: str) -> None:
    keys = {"minimums": {"a": 1}, "maximums": {"b": 0}}
    assert walk(mode, ["a", "b"], ["a", "b"], **keys) == 0.75


def test_ignored_tools_are_left_out_before_anything_else() -> None:
    assert walk("exact", ["a"], ["log", "a", "log"], ignore=["log"]) == 1
    assert walk("exact", ["a"], ["log", "a", "log"]) == 0
    assert score_of({"minimums": {"log": 1}, "ignore": ["log"]}, ["log"]) == 0
    assert score_of({"maximums": {"log": 0}, "ignore": ["log"]}, ["log"]) == 1


def test_a_forbidden_call_makes_the_score_0_with_a_reason() -> None:
    score = graded({"expected": ["a"], "forbidden": ["rm"]}, ["a", "rm", "rm"])
    assert score.score == 0
    assert score.misses == ("rm was called, which is forbidden",)
    assert score.hits == ("a was called",)
    assert score.reasoning == "forbidden tools were called: rm"
    assert score_of({"expected": ["a"], "forbidden": ["rm"]}, ["a"]) == 1


def test_nothing_required_scores_1() -> None:
    nothing: list[dict[str, Any]] = [{"forbidden": ["rm"]}, {"expected": []}]
    for keys in nothing:
        score = graded(keys, ["a"])
        assert (score.score, score.reasoning) == (1, "nothing is required")


def test_a_target_that_cannot_record_calls_is_errored() -> None:
    score = graded({"expected": ["a"]}, None)
    assert score.error is not None
    assert score.error.startswith("no trace available: the target reports no tool calls")
    assert score.score is None


def test_a_target_that_recorded_no_call_is_scored() -> None:
    assert walk("in_order", ["a"], []) == 0
    assert walk("exact", [], []) == 1


# Time limits


def timed(ms: float | None) -> dict[str, Any]:
    return {"tool": "a", "duration_ms": ms}


QUICK = {"tool": "a", "max_duration_ms": 10}


@pytest.mark.parametrize("mode", MODES)
def test_a_time_limit_of_a_matched_step_is_an_aspect(mode: str) -> None:
    assert walk(mode, [QUICK], [timed(10.0)]) == 1
    score = graded({"mode": mode, "expected": [QUICK]}, [timed(10.5)])
    assert score.score == 0.5
    assert score.misses == ('a: duration_ms = 10.5, expected {"lte": 10.0}',)
    (entry,) = score.details["diff"]
    assert entry["status"] == "matched"
    assert entry["differences"] == [
        {"path": "duration_ms", "expected": {"lte": 10.0}, "actual": 10.5}
    ]


def test_a_time_limit_without_a_known_duration_or_a_match_is_ignored() -> None:
    score = graded({"expected": [QUICK]}, [timed(None)])
    assert (score.score, score.hits) == (1, ("a was called",))
    score = graded({"expected": [QUICK, "b"]}, ["b"])
    assert (score.score, score.misses) == (0.5, ("a was not called",))


def test_the_step_with_the_limit_gets_the_quick_call() -> None:
    calls = [timed(50.0), timed(5.0)]
    assert walk("any_order", [QUICK, "a"], calls) == 1
    assert walk("any_order", ["a", QUICK], calls) == 1
    assert walk("in_order", [QUICK], calls) == 1


def test_avoiding_a_broken_limit_is_preferred_to_keeping_another() -> None:
    quick_b = {"tool": "b", "max_duration_ms": 10}
    calls = ["a", "b", timed(5.0), {"tool": "b", "duration_ms": 50.0}]
    assert walk("in_order", [QUICK, quick_b], calls) == 1


# Arguments


def fits(args: Any, given: Any, match: Any = None, **keys: Any) -> bool:
    wanted = {"tool": "a", "args": args} | keys | ({"args_match": match} if match else {})
    return walk("in_order", [wanted], [("a", given)]) == 1


@pytest.mark.parametrize("given", [None, {}, {"q": 1}, "text", [1]])
def test_no_args_and_any_match_anything(given: Any) -> None:
    assert walk("in_order", ["a"], [("a", given)]) == 1
    assert fits("any", given)
    assert fits({"q": 9}, given, "ignore")


def test_superset_wants_each_expected_key_at_every_depth() -> None:
    expected = {"q": 1, "deep": {"k": "v"}}
    assert fits(expected, {"q": 1, "deep": {"k": "v", "more": 0}, "other": 2})
    assert fits(expected, {"q": 1, "deep": {"k": "v"}, "other": 2}, "superset")
    assert not fits(expected, {"q": 1, "deep": {"more": 0}})
    assert not fits(expected, {"deep": {"k": "v"}})


def test_exact_wants_these_keys_and_no_others_at_every_depth() -> None:
    assert fits({"q": 1, "deep": {"k": 2}}, {"deep": {"k": 2}, "q": 1}, "exact")
    assert not fits({"q": 1}, {"q": 1, "p": 2}, "exact")
    assert not fits({"deep": {"k": 2}}, {"deep": {"k": 2, "p": 3}}, "exact")
    assert not fits({"q": 1, "p": 2}, {"q": 1}, "exact")


def test_subset_wants_no_other_keys_at_every_depth() -> None:
    expected = {"q": 1, "text": "t", "deep": {"k": 2, "p": 3}}
    assert fits(expected, {}, "subset")
    assert fits(expected, None, "subset")
    assert fits(expected, {"deep": {"k": 2}}, "subset")
    assert not fits(expected, {"other": 1}, "subset")
    assert not fits(expected, {"q": 2}, "subset")
    assert not fits(expected, {"text": "u"}, "subset")
    assert not fits(expected, {"deep": {"x": 1}}, "subset")
    assert not fits({"q": {"exists": True}}, {}, "subset")


def test_a_list_of_paths_compares_the_values_at_these_paths() -> None:
    expected = {"q": 1, "deep": {"k": "v", "p": 0}, "items": [{"id": 1}, {"id": {"gte": 5}}]}
    given = {"q": 9, "deep": {"k": "v"}, "items": [{"id": 3}, {"id": 5}]}
    assert fits(expected, given, ["deep.k", "items.1.id"])
    assert fits(expected, given, ["deep.k", "items[1].id"])
    assert not fits(expected, given, ["deep.k", "q"])
    assert not fits(expected, given, ["items.0.id"])
    assert not fits(expected, given, ["items[0].id"])
    assert not fits(expected, {"q": 1}, ["q", "deep.k"])
    assert not fits(expected, "no mapping", ["q"])


def test_lists_agree_item_by_item() -> None:
    assert fits({"q": [1, {"k": 2}]}, {"q": [1, {"k": 2, "p": 3}]})
    assert not fits({"q": [1, 2]}, {"q": [2, 1]})
    assert not fits({"q": [1]}, {"q": [1, 2]})
    assert not fits({"q": [1]}, {"q": 1})


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.combinations([1, "1", True, None, [1]], 2))
)
def test_types_are_compared_not_texts(one: Any, other: Any) -> None:
    assert fits({"q": one}, {"q": one})
    assert not fits({"q": one}, {"q": other})
    assert not fits({"q": other}, {"q": one})


def test_a_whole_number_is_the_same_with_a_point() -> None:
    assert fits({"q": 1}, {"q": 1.0}, "exact")
    assert not fits({"q": 1}, {"q": 1.5}, "exact")


def test_null_is_not_the_same_as_nothing() -> None:
    assert fits({"q": None}, {"q": None})
    assert not fits({"q": None}, {})


def test_arguments_that_are_not_json_never_match_a_mapping() -> None:
    assert not fits({}, '{"q": ')
    assert not fits({"q": {"exists": False}}, '{"q": ')


def test_arguments_may_be_any_value() -> None:
    assert fits("text", "text")
    assert fits([1, {"gte": 2}], [1, 3])
    assert not fits("text", "other")
    assert not fits("text", None)


HOLDING: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"regex": "^Li"}, ["Lisbon"], ["Oslo", 7, None, ["Li"]]),
    ({"one_of": ["a", 1, None]}, ["a", 1, 1.0, None], ["b", True, "1"]),
    ({"gte": 2}, [2, 2.5, 10**400], [1.9, "3", True, None]),
    ({"lte": 2}, [2, -1], [2.1, "1", False]),
    ({"gte": 1, "lte": 7}, [1, 7], [0, 8]),
    ({"approx": 0.3, "tolerance": 0.1}, [0.2, 0.4, 0.3], [0.41, 0.19, "0.3"]),
    ({"approx": 1}, [1, 1.0, 1 + 1e-12], [1.01, True]),
    ({"contains": "is"}, ["Lisbon", ["is", 1]], ["Oslo", ["Lisbon"], {"is": 1}, 5]),
    ({"contains": 1}, [[1.0]], [[True], ["1"], "1", 1]),
    ({"contains": None}, [[None]], [[], "null"]),
    ({"exists": True}, [None, 0, ""], []),
    ({"type": "string"}, ["", "x"], [1, None]),
    ({"type": "number"}, [1, 1.5], ["1", True]),
    ({"type": "integer"}, [1, 2.0], [1.5, True, "1"]),
    ({"type": "boolean"}, [True, False], [0, "true"]),
    ({"type": "object"}, [{}, {"a": 1}], [[], None]),
    ({"type": "array"}, [[], [1]], [{}, "a"]),
    ({"type": "null"}, [None], [0, "", False]),
    ({"equals": {"type": "rain"}}, [{"type": "rain"}], [{"type": "sun"}, "rain"]),
    ({"equals": None}, [None], [0]),
    ({"regex": "o", "contains": "L"}, ["Lo"], ["o", "L"]),
]


@pytest.mark.parametrize(
    ("condition", "right", "wrong"), HOLDING, ids=[str(row[0]) for row in HOLDING]
)
def test_conditions(condition: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert fits({"q": condition}, {"q": value}), value
    for value in wrong:
        assert not fits({"q": condition}, {"q": value}), value
    assert not fits({"q": condition}, {})


def test_a_value_that_must_not_exist() -> None:
    for match in ("exact", "superset", "subset"):
        assert fits({"q": {"exists": False}}, {}, match)
        assert fits({"q": {"exists": False}}, None, match)
        assert not fits({"q": {"exists": False}}, {"q": None}, match)


def test_the_mapping_of_arguments_is_not_a_condition() -> None:
    assert fits({"type": "rain"}, {"type": "rain"})
    assert not fits({"type": "string"}, "text")


def test_a_regular_expression_that_takes_too_long_is_errored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    bomb = {"q": {"regex": "(?!x)^(a|aa)+$"}}
    score = graded({"expected": [("a", bomb)]}, [("a", {"q": "a" * 60 + "!"})])
    assert score.error.endswith("took too long on the value of 'q'")
    assert graded({"expected": [("a", bomb)]}, [("a", {"q": "aa"})]).score == 1


# Results and alternatives


def test_output_matches_the_result_as_arguments_are_matched() -> None:
    def gives(output: Any, result: Any) -> bool:
        wanted = {"tool": "a", "output": output}
        return walk("in_order", [wanted], [{"tool": "a", "output": result}]) == 1

    assert gives({"t": {"gte": 20}}, {"t": 23.5, "sky": "clear"})
    assert not gives({"t": {"gte": 20}}, {"t": 3})
    assert gives({"contains": "23"}, "it is 23 degrees")
    assert not gives({"contains": "23"}, None)
    assert gives("any", None)
    assert gives({"exists": True}, "")
    assert gives({"exists": False}, None)
    assert not gives({"exists": True}, None)
    assert not gives({"exists": False}, "")
    score = graded({"expected": [{"tool": "a", "output": {"t": 1}}]}, [{"tool": "a", "output": {}}])
    (entry,) = score.details["diff"]
    assert entry["differences"][0]["path"] == "output.t"
    assert "was called with a different result: output.t is missing, expected 1" in score.misses[0]


def test_any_of_is_satisfied_by_each_of_its_calls() -> None:
    either = {"any_of": [{"tool": "a", "args": {"q": 1}}, {"tool": "b"}]}
    assert walk("in_order", [either], [("a", {"q": 1})]) == 1
    assert walk("in_order", [either], ["b"]) == 1
    score = graded({"expected": [either]}, [("a", {"q": 2})])
    assert score.misses == ("a(q=1) or b was called with different arguments: q = 2, expected 1",)
    assert walk("in_order", [either, either], ["b"]) == 0.5


def test_any_of_takes_the_alternative_whose_limit_is_kept() -> None:
    quick, slow = ({"tool": "a", "max_duration_ms": ms} for ms in (10, 100))
    either = {"any_of": [quick, slow]}
    score = graded({"expected": [either]}, [timed(50.0)])
    assert (score.score, score.hits[1]) == (1, "a or a was within its time limit")
    assert walk("in_order", [either], [timed(500.0)]) == 0.5
    assert graded({"expected": [{"any_of": [{"tool": "a"}, quick]}]}, ["a"]).hits == (
        "a or a was called",
    )


# Messages and diffs


def test_the_diff_of_a_walk_with_every_kind_of_entry() -> None:
    expected = ["a", ("b", {"q": 1, "deep": {"k": 2}}), "c", "d"]
    calls = ["a", "x", ("b", {"q": 2, "p": 0}), "d"]
    score = graded({"expected": expected}, calls)
    assert score.score == 0.5
    assert score.details == {
        "matched": 2,
        "expected": 4,
        "actual": 4,
        "diff": [
            {"status": "matched", "expected": {"tool": "a"}, "actual": {"tool": "a"}},
            {"status": "unexpected", "actual": {"tool": "x"}},
            {
                "status": "wrong_args",
                "expected": {"tool": "b", "args": {"q": 1, "deep": {"k": 2}}},
                "actual": {"tool": "b", "args": {"q": 2, "p": 0}},
                "differences": [
                    {"path": "q", "expected": 1, "actual": 2},
                    {"path": "deep", "expected": {"k": 2}, "actual": None, "absent": "actual"},
                ],
            },
            {"status": "missing", "expected": {"tool": "c"}},
            {"status": "matched", "expected": {"tool": "d"}, "actual": {"tool": "d"}},
        ],
    }
    assert score.hits == ("a was called", "d was called")
    assert score.misses == (
        'b(q=1, deep={"k": 2}) was called with different arguments: q = 2, expected 1',
        "c was not called",
    )
    assert score.reasoning == "2 of 4 checks hold"


def test_the_diff_as_lines_of_a_terminal() -> None:
    expected = [("a", {"q": "x"}), {"tool": "b", "args": {"q": 1}, "args_match": "exact"}, "c"]
    calls = [("a", {"q": "x"}), ("b", {"p": 2}), ("e\x1b", {"t": "é\x9b"})]
    assert render_diff(graded({"expected": expected}, calls).details["diff"]) == [
        '  = a(q="x")',
        "  ~ b(p=2)",
        "      q is missing, expected 1",
        "      p = 2, not expected",
        "  - c",
        '  + e\\x1b(t="é\\x9b")',
    ]


def test_long_calls_and_values_are_cut() -> None:
    calls = [("b", {f"key{i}": "v" * 1000 for i in range(9)})]
    (line,) = render_diff(graded({"mode": "exact", "expected": []}, calls).details["diff"])
    assert len(line) < 130
    assert line.endswith("...)")


def test_a_step_out_of_order_is_reported() -> None:
    score = graded({"expected": ["a", "b"]}, ["b", "a"])
    assert score.misses == ("a was called out of order",)
    assert graded({"expected": ["a", "a"]}, ["a"]).misses == ("a was not called again",)


def test_a_wrong_call_elsewhere_in_the_order_is_not_paired_with_the_step() -> None:
    score = graded({"expected": ["a", ("b", {"q": 1})]}, [("b", {"q": 2}), "a"])
    assert statuses(score) == ["unexpected b", "matched a", "missing b"]
    score = graded({"mode": "any_order", "expected": ["a", ("b", {"q": 1})]}, [("b", {}), "a"])
    assert statuses(score) == ["wrong_args b", "matched a"]


def test_wrong_arguments_are_paired_with_the_nearest_step() -> None:
    expected = [("a", {"q": 1, "p": 1}), ("a", {"q": 2, "p": 2})]
    calls = [("a", {"q": 2, "p": 0}), ("a", {"q": 1, "p": 0})]
    score = graded({"mode": "any_order", "expected": expected}, calls)
    assert [len(entry["differences"]) for entry in score.details["diff"]] == [1, 1]


def test_exact_reports_what_is_wrong_at_each_place() -> None:
    expected = ["a", ("b", {"q": 1}), "c"]
    score = graded({"mode": "exact", "expected": expected}, ["a", ("b", {"q": 2}), "x", "y"])
    assert score.hits == ("call 1 is a",)
    assert score.misses == (
        "call 2 is not b(q=1): q = 2, expected 1",
        "call 3 is x, expected c",
        "call 4 is y, expected no more",
    )
    shown = "matched a, wrong_args b, missing c, unexpected x, unexpected y"
    assert ", ".join(statuses(score)) == shown
    assert graded({"mode": "exact", "expected": ["a", "b"]}, ["a"]).misses == (
        "call 2 is missing, expected b",
    )


def test_subset_reports_calls_that_are_not_allowed() -> None:
    score = graded({"mode": "subset", "expected": ["a", ("b", {"q": 1})]}, [("b", {"q": 2}), "x"])
    assert score.misses == ("b(q=2) is not allowed: q = 2, expected 1", "x is not allowed")
    assert statuses(score) == ["wrong_args b", "unexpected x"]


def test_counts_are_reported_with_the_limit() -> None:
    score = graded({"minimums": {"a": 2, "b": 0}, "maximums": {"c": 1}}, ["a", "c", "c"])
    assert score.hits == ("b was called 0 times, at least 0",)
    assert score.misses == (
        "a was called once, not at least 2",
        "c was called 2 times, not at most 1",
    )


def test_the_fast_path_reports_the_same_as_the_alignment() -> None:
    path = ["a", QUICK, {"tool": "o", "optional": True}]
    calls = ["a", timed(5.0), "o"]
    for mode in MODES:
        keys = {"mode": mode, "minimums": {"a": 1}}
        quick = graded(keys | {"expected": path}, calls)
        # an alternative that is never used keeps it from the short way
        either = {"any_of": [{"tool": "a"}, {"tool": "never", "max_duration_ms": 1}]}
        slow = graded(keys | {"expected": [either, *path[1:]]}, calls)
        assert quick.score == slow.score == 1
        assert [hit.replace("a or never", "a") for hit in slow.hits] == list(quick.hits)
        assert statuses(quick) == statuses(slow)


# Everything that is possible, by brute force

TOOLS = st.sampled_from("ab")
ARGS = st.sampled_from([None, {"q": 1}, {"q": 2}])
STEPS = st.lists(
    st.fixed_dictionaries(
        {"tool": TOOLS, "args": ARGS, "optional": st.booleans()},
        optional={"max_duration_ms": st.just(10)},
    ),
    max_size=5,
)
CALLS = st.lists(
    st.builds(
        ToolCall, tool=TOOLS, input=ARGS, duration_ms=st.sampled_from([None, 5.0, 50.0, 50.0])
    ),
    max_size=5,
)


def suits(wanted: dict[str, Any], call: ToolCall) -> bool:
    return wanted["tool"] == call.tool and wanted["args"] in (None, call.input)


def all_walks(
    mode: str, steps: list[dict[str, Any]], calls: list[ToolCall]
) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """Every admissible set of pairs, with the number of aspects that steps and calls make."""
    if mode == "exact":
        optional = [i for i, s in enumerate(steps) if s["optional"]]
        for size in range(len(optional) + 1):
            for left_out in itertools.combinations(optional, size):
                places = [i for i in range(len(steps)) if i not in left_out]
                aligned = zip(places, range(len(calls)), strict=False)
                pairs = [(i, j) for i, j in aligned if suits(steps[i], calls[j])]
                yield pairs, max(len(places), len(calls))
        return
    if mode == "subset":  # a step may have several calls
        owners = [[None, *(i for i, s in enumerate(steps) if suits(s, call))] for call in calls]
        for chosen in itertools.product(*owners):
            yield [(i, j) for j, i in enumerate(chosen) if i is not None], len(calls)
        return
    total = sum(not s["optional"] for s in steps)
    choices = [
        [None, *(j for j, call in enumerate(calls) if suits(wanted, call))] for wanted in steps
    ]
    for chosen in itertools.product(*choices):
        pairs = [(i, j) for i, j in enumerate(chosen) if j is not None]
        used = [j for _, j in pairs]
        if len(set(used)) == len(used) and (mode != "in_order" or used == sorted(used)):
            yield pairs, total


def best_walk(
    mode: str, steps: list[dict[str, Any]], calls: list[ToolCall], held: int, counts: int
) -> tuple[Fraction, int]:
    """The highest score, and the most pairs with it."""

    def value(walk: tuple[list[tuple[int, int]], int]) -> tuple[Fraction, int]:
        pairs, total = walk
        satisfied, aspects = held, counts + total
        for i, j in pairs:
            satisfied += mode in ("exact", "subset") or not steps[i]["optional"]
            duration = calls[j].duration_ms
            if "max_duration_ms" in steps[i] and duration is not None:
                satisfied += duration <= 10
                aspects += 1
        return Fraction(satisfied, aspects) if aspects else Fraction(1), len(pairs)

    return max(map(value, all_walks(mode, steps, calls)))


@pytest.mark.parametrize("mode", MODES)
@given(steps=STEPS, calls=CALLS, most=st.none() | st.integers(0, 3))
def test_no_other_alignment_scores_higher(
    mode: str, steps: list[dict[str, Any]], calls: list[ToolCall], most: int | None
) -> None:
    keys: dict[str, Any] = {"mode": mode, "expected": steps}
    held = counts = 0
    if most is not None:
        keys["maximums"] = {"a": most}
        held, counts = sum(call.tool == "a" for call in calls) <= most, 1
    spec = ToolTrajectoryEvaluator.model_validate({"type": "tool_trajectory"} | keys)
    check = spec.prepare(Resources())
    score = check(Context(EvalCase("case", (), ()), Observation(tool_calls=tuple(calls))))
    assert isinstance(score, EvaluationScore)
    best, matched = best_walk(mode, steps, calls, held, counts)
    assert score.score == pytest.approx(float(best))
    assert score.details["matched"] == matched
    total = len(score.hits) + len(score.misses)
    assert Fraction(len(score.hits), total) == best if total else best == 1
    check_diff(score, calls)
    if mode != "subset":  # no step is there more often than written
        assert sum("expected" in entry for entry in score.details["diff"]) <= len(steps)


def check_diff(score: EvaluationScore, calls: list[ToolCall]) -> None:
    """Every call is in the diff once, in order."""
    diff = score.details["diff"]
    actual = [entry["actual"] for entry in diff if "actual" in entry]
    assert actual == [
        {"tool": c.tool} | ({} if c.input is None else {"args": c.input}) for c in calls
    ]
    assert sum(entry["status"] == "matched" for entry in diff) == score.details["matched"]
    for entry in diff:
        if entry["status"] == "wrong_args":
            assert entry["expected"]["tool"] == entry["actual"]["tool"]
            assert entry["differences"]


@given(steps=STEPS, calls=CALLS, shuffle=st.randoms(use_true_random=False))
def test_the_order_of_the_list_never_changes_the_score_of_any_order(
    steps: list[dict[str, Any]], calls: list[ToolCall], shuffle: Any
) -> None:
    keys = {"mode": "any_order", "expected": steps}
    others = {"mode": "any_order", "expected": shuffle.sample(steps, len(steps))}
    assert graded(keys, _keys(calls)).score == graded(others, _keys(calls)).score


@given(steps=STEPS, calls=CALLS, place=st.integers(0, 5))
def test_a_call_with_other_arguments_never_changes_the_score_of_any_order(
    steps: list[dict[str, Any]], calls: list[ToolCall], place: int
) -> None:
    steps = [item | {"args": item["args"] or {"q": 1}} for item in steps]
    keys = {"mode": "any_order", "expected": steps}
    more = [*calls[:place], ToolCall("a", {"q": "other"}), *calls[place:]]
    assert graded(keys, _keys(calls)).score == graded(keys, _keys(more)).score


def _keys(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [call.to_dict() for call in calls]


# The scenarios of the seed


def test_minimum_search_calls() -> None:
    keys = {"mode": "any_order", "minimums": {"knowledgeSearch": 3}}
    assert score_of(keys, ["knowledgeSearch"] * 3) == 1
    assert score_of(keys, ["knowledgeSearch"] * 2) == 0


def test_expected_search_pattern() -> None:
    keys = {"mode": "in_order", "expected": ["knowledgeSearch"] * 3}
    assert score_of(keys, ["knowledgeSearch"] * 3) == 1
    assert score_of(keys, ["knowledgeSearch"] * 2) == pytest.approx(2 / 3)


def test_the_calls_of_expected_messages_are_compared_with_their_input() -> None:
    query = {"query": "branch deactivation process", "filter": {"type": "string"}}
    spec = ToolTrajectoryEvaluator.of_calls([ToolCall("knowledgeSearch", query)])
    check = spec.prepare(Resources())

    def score(given: Any) -> Any:
        observation = Observation(tool_calls=(ToolCall("knowledgeSearch", given),))
        result = check(Context(EvalCase("case", (), ()), observation))
        assert isinstance(result, EvaluationScore)
        return result.score

    assert score(query) == 1
    assert score(query | {"filter": "text"}) == 0
