"""A case in two runs, side by side."""

from __future__ import annotations

from typing import Any

from assay.model.case_content import CaseContent
from assay.model.case_rows import CaseRow
from assay.model.case_view import CaseView, TrialView
from assay.model.json_encoding import as_json
from assay.model.result import Outcome, decode_trial
from assay.reporters.pair_words import call_pairs, expected, sides
from unit.sample_runs import entry


def view(
    answer: str, outcome: Outcome = "passed", *calls: dict[str, Any], **checks: list[str]
) -> CaseView:
    """A case that was answered; `checks` are the hits and misses of its evaluator."""
    evaluator = {"name": "contains", "type": "contains", "verdict": "pass", **checks}
    result = decode_trial(as_json(entry("a", outcome, evaluators=[evaluator])))
    seen: dict[str, Any] = {"response": answer, "toolCalls": list(calls)}
    trial = TrialView(0, outcome, 1.0, 1.0, None, None, False, True, None, result.details, seen)
    row = CaseRow(3, "s", "a", (), (), outcome, 1, 1, 1.0, None, 1.0, False, None)
    return CaseView("run", row, CaseContent(), "", [trial])


def call(name: str, **params: str) -> dict[str, Any]:
    return {"name": name, "params": params, "result": "ok"}


def test_answers_with_much_in_common_are_a_word_diff() -> None:
    before, now = sides(view("It is ice until noon"), view("It is ice until night"))
    assert before is not None
    assert before.parts == [("=", "It is ice until "), ("-", "noon"), ("+", "night")]
    assert now is not None
    assert now.parts == before.parts


def test_answers_without_a_common_word_are_not_marked() -> None:
    before, now = sides(view("Yes."), view("Perhaps, who knows"))
    assert before is not None
    assert now is not None
    assert (before.parts, now.parts) == ([("=", "Yes.")], [("=", "Perhaps, who knows")])


def test_a_run_without_the_case_has_no_side() -> None:
    before, now = sides(None, view("Yes."))
    assert before is None
    assert now is not None
    assert now.position == 3


def test_long_texts_are_cut() -> None:
    side, _ = sides(view("word " * 1000), None, limit=100)
    assert side is not None
    assert len(side.parts[0][1]) <= 100


def test_what_is_expected_is_what_the_run_that_passed_satisfied() -> None:
    good = view("a", hits=["contains 'ice'"])
    bad = view("b", "failed", misses=["expected 'ice', found 'b'"])
    assert expected(good, bad) == expected(bad, good) == ("contains 'ice'",)
    assert expected(None, bad) == ("expected 'ice', found 'b'",)


def test_more_lines_are_counted() -> None:
    good = view("a", hits=[f"contains {n}" for n in range(9)])
    assert expected(good, None, lines=2) == ("contains 0", "contains 1", "and 7 more")


def test_calls_of_the_same_tool_are_on_one_row_with_their_differences() -> None:
    before = view("a", "passed", call("find", city="Oslo"), call("send"))
    now = view("b", "passed", call("find", city="Rome"), call("log"), call("send"))
    rows = call_pairs(before, now)
    assert [row.sign for row in rows] == ["~", "+", "="]
    assert [text for text, differs in rows[0].before if differs] == ["Oslo"]
    assert [text for text, differs in rows[0].now if differs] == ["Rome"]
    assert rows[1].now == [("log()", False)]
    assert rows[2].now_ending == "returned ok"


def test_a_call_of_another_tool_has_a_row_of_its_own() -> None:
    rows = call_pairs(view("a", "passed", call("a"), call("b")), view("a", "passed", call("c")))
    assert [(row.sign, bool(row.before), bool(row.now)) for row in rows] == [
        ("-", True, False), ("+", False, True), ("-", True, False)
    ]  # fmt: skip
    assert call_pairs(view("a"), None) == []
