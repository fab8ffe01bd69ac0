"""Fields of a JSON answer against the expected ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.model.score import EvaluationScore
from unit.evaluator_calls import judged

INVOICE = {
    "number": "A-1",
    "total": 100.0,
    "paid": True,
    "date": "2025-01-05",
    "items": [{"p": 1}, {"p": 2}],
}


def accuracy(answer: Any, *fields: dict[str, Any], expected: Any = None, **keys: Any) -> Any:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    score = judged(
        "field_accuracy", text, expected=expected or INVOICE, fields=list(fields), **keys
    )
    assert isinstance(score, EvaluationScore)
    return score


@pytest.mark.parametrize(
    ("path", "found", "agrees"),
    [
        ("number", "A-1", True),
        ("number", "a-1", False),
        ("total", 100, True),
        ("total", "100.0", False),
        ("paid", True, True),
        ("paid", 1, False),
        ("paid", "true", False),
        ("items", [{"p": 1}, {"p": 2.0}], True),
        ("items", [{"p": 2}, {"p": 1}], False),
    ],
)
def test_exact_compares_types(path: str, found: Any, agrees: bool) -> None:
    assert accuracy({path: found}, {"path": path}).score == float(agrees)


def test_paths_reach_into_lists() -> None:
    assert accuracy(INVOICE, {"path": "items[1].p"}).score == 1
    assert accuracy({"items": [{"p": 1}]}, {"path": "items[1].p"}).score == 0
    assert accuracy([{"a": 1}], {"path": "[0].a"}, expected=[{"a": 1}]).score == 1


@pytest.mark.parametrize(
    ("found", "rule", "agrees"),
    [
        (100.1, {"tolerance": 0.1}, True),
        (99.9, {"tolerance": 0.1}, True),
        (100.11, {"tolerance": 0.1}, False),
        (100, {}, True),
        (100.1, {}, False),
        (105, {"tolerance": 0.05, "relative": True}, True),
        (94.9, {"tolerance": 0.05, "relative": True}, False),
        ("104.5", {"tolerance": 5}, True),
        (" +1.05e2 ", {"tolerance": 5}, True),
        ("106", {"tolerance": 5}, False),
        ("100 EUR", {"tolerance": 5}, False),
        ("1,00", {"tolerance": 500}, False),
        ("1_00", {"tolerance": 5}, False),
        ("nan", {"tolerance": 5}, False),
        ("1e999999999", {"tolerance": 5}, False),
        ("1" * 65, {"tolerance": 5}, False),
        (True, {"tolerance": 500}, False),
        (None, {"tolerance": 500}, False),
        (10**400, {"tolerance": 5}, False),
        (float("inf"), {"tolerance": 5}, False),
    ],
)
def test_numbers_may_be_off_by_the_tolerance(
    found: Any, rule: dict[str, Any], agrees: bool
) -> None:
    field = {"path": "total", "match": "numeric_tolerance", **rule}
    assert accuracy({"total": found}, field).score == float(agrees)


@pytest.mark.parametrize(
    ("wanted", "found"), [(10.2, 10.3), (1e9, 1000000000.1), (-0.1, 0), (0.3, 0.2)]
)
def test_a_number_at_the_tolerance_is_within_it(wanted: float, found: float) -> None:
    field = {"path": "a", "match": "numeric_tolerance", "tolerance": 0.1}
    assert accuracy({"a": found}, field, expected={"a": wanted}).score == 1


@pytest.mark.parametrize(("found", "agrees"), [(0, True), (0.05, True), (-0.1, True), (0.2, False)])
def test_a_share_of_zero_is_an_absolute_difference(found: float, agrees: bool) -> None:
    field = {"path": "a", "match": "numeric_tolerance", "tolerance": 0.1, "relative": True}
    assert accuracy({"a": found}, field, expected={"a": 0}).score == float(agrees)


def test_an_expected_number_may_be_written_as_text() -> None:
    field = {"path": "a", "match": "numeric_tolerance", "tolerance": 0.1}
    assert accuracy({"a": 2.55}, field, expected={"a": "2.5"}).score == 1


@pytest.mark.parametrize(
    ("found", "formats", "agrees"),
    [
        ("2025-01-05", [], True),
        ("2025-01-05T10:00:00Z", [], True),
        ("5-Jan-2025", [], True),
        ("05-JAN-2025", [], True),
        ("5 Jan 2025", [], True),
        ("6 Jan 2025", [], False),
        ("5 Foo 2025", [], False),
        ("31 Feb 2025", [], False),
        ("soon", [], False),
        (20250105, [], False),
        ("x" * 1000, [], False),
        ("05/01/2025", ["%d/%m/%Y"], True),
        ("05/01/2025", ["%m/%d/%Y"], False),
        ("05.01.2025", ["%d/%m/%Y", "%d.%m.%Y"], True),
        ("2025-01-05", ["%d/%m/%Y"], False),
        ("25/01/2025", [], False),
        ("05-JAN-2025", ["DD-MMM-YYYY"], True),
        ("06-JAN-2025", ["DD-MMM-YYYY"], False),
        ("5 january 2025", ["D MMMM YYYY"], True),
        ("01/05/2025", ["MM/DD/YYYY"], True),
        ("01/05/2025", ["dd/MM/yyyy"], False),
        ("05.01.25", ["DD.MM.YY"], True),
        ("05/01/2025", ["dd/mm/yyyy"], True),
        ("2025-01-05T23:59:59Z", ["YYYY-MM-DDTHH:mm:ssZ"], True),
        ("2025-01-05 23:59", ["YYYY-MM-DD HH:mm"], True),
    ],
)
def test_dates_are_days(found: Any, formats: list[str], agrees: bool) -> None:
    field = {"path": "date", "match": "date", "formats": formats}
    assert accuracy({"date": found}, field).score == float(agrees)


@pytest.mark.parametrize(
    ("expected", "found"),
    [("2025-06-05", "05/06/2025"), ("05/06/2025", "2025-06-05"), ("2025-06-05", "5-6-2025")],
)
def test_an_ambiguous_date_is_errored(expected: str, found: str) -> None:
    field = {"path": "d", "match": "date"}
    score = accuracy({"d": found}, field, expected={"d": expected})
    assert score.score is None
    assert "is ambiguous: it can be two different days; set 'formats'" in score.error
    dated = {**field, "formats": ["%d/%m/%Y", "%Y-%m-%d", "%d-%m-%Y"]}
    assert accuracy({"d": found}, dated, expected={"d": expected}).score == 1


def test_an_unreadable_value_is_distinguished_from_a_wrong_one() -> None:
    field = {"path": "d", "match": "date", "formats": ["DD/MM/YYYY", "%d.%m.%Y"]}
    score = accuracy({"d": "2025-01-15"}, field, expected={"d": "2025-01-15"})
    assert score.misses == (
        "d: expected '2025-01-15', found '2025-01-15', "
        "which is not a date as DD/MM/YYYY or %d.%m.%Y",
    )
    number = {"path": "total", "match": "numeric_tolerance"}
    (miss,) = accuracy({"total": "100 EUR"}, number).misses
    assert miss == "total: expected 100.0, found '100 EUR', which is not a number"


def test_the_same_day_and_month_is_not_ambiguous() -> None:
    field = {"path": "d", "match": "date"}
    assert accuracy({"d": "05/05/2025"}, field, expected={"d": "2025-05-05"}).error == ""


@pytest.mark.parametrize(
    "text",
    [
        'Here it is:\n```json\n{"number": "A-1"}\n```',
        'The invoice is {"number": "A-1"}, I think.',
        'As [1] says: {"number": "A-1"}',
    ],
)
def test_the_answer_is_found_in_a_fence_or_prose(text: str) -> None:
    assert accuracy(text, {"path": "number"}).score == 1


@pytest.mark.parametrize(
    "text",
    [
        'I called search with {"query": "invoice"} and found {"number": "A-1"}.',
        '```json\n{"query": "invoice"}\n```\n```json\n{"number": "A-1"}\n```',
        '```json\n{"query": "invoice"}\n```\nThe answer is {"number": "A-1"}',
    ],
)
def test_the_object_with_the_fields_is_chosen_as_the_answer(text: str) -> None:
    assert accuracy(text, {"path": "total"}, {"path": "number"}).score == 0.5


def test_an_object_without_the_fields_is_still_an_answer() -> None:
    score = accuracy('See {"query": "invoice"} and {"page": 1}', {"path": "number"})
    assert (score.score, score.reasoning) == (0.0, "")


def test_an_expected_output_may_be_json_text() -> None:
    assert accuracy({"a": 1}, {"path": "a"}, expected='{"a": 1}').score == 1


def test_a_missing_field_is_a_miss_unless_it_is_optional() -> None:
    total, number = {"path": "total"}, {"path": "number"}
    score = accuracy({"number": "A-1"}, total, number)
    assert score.score == 0.5
    assert score.misses == ("total: expected 100.0, but it is missing",)
    assert accuracy({"number": "A-1"}, {**total, "required": False}, number).score == 1
    wrong = accuracy({"number": "A-1", "total": 5}, {**total, "required": False}, number)
    assert wrong.score == 0.5


def test_without_json_all_required_fields_are_missed() -> None:
    fields = ({"path": "number"}, {"path": "total"}, {"path": "paid", "required": False})
    score = accuracy("I don't know.", *fields)
    assert (score.score, len(score.misses)) == (0.0, 2)
    assert score.reasoning == "the answer contains no JSON"


def test_missing_optional_fields_alone_are_skipped() -> None:
    assert accuracy("{}", {"path": "paid", "required": False}).skipped == "nothing verified"


def test_fields_count_by_weight() -> None:
    fields = ({"path": "number", "weight": 3}, {"path": "total"})
    assert accuracy({"number": "A-1", "total": 5}, *fields).score == 0.75
    assert accuracy({"number": "x", "total": 100}, *fields).score == 0.25


def test_all_or_nothing() -> None:
    fields = ({"path": "number", "weight": 3}, {"path": "total"})
    keys = {"aggregation": "all_or_nothing"}
    assert accuracy({"number": "A-1", "total": 5}, *fields, **keys).score == 0
    assert accuracy(INVOICE, *fields, **keys).score == 1


def test_a_field_of_weight_zero_is_reported_but_not_counted() -> None:
    fields = ({"path": "number"}, {"path": "total", "weight": 0})
    for aggregation in ("weighted_average", "all_or_nothing"):
        score = accuracy({"number": "A-1", "total": 5}, *fields, aggregation=aggregation)
        assert (score.score, score.misses) == (1.0, ("total: expected 100.0, found 5",))
        nothing = accuracy(INVOICE, {"path": "total", "weight": 0}, aggregation=aggregation)
        assert nothing.score == 0


@pytest.mark.parametrize(
    ("field", "expected", "reason"),
    [
        ({"path": "gone"}, {"a": 1}, "the expected output has no 'gone'"),
        ({"path": "a", "match": "numeric_tolerance"}, {"a": "one"}, "'one' is not a number"),
        ({"path": "a", "match": "date"}, {"a": "soon"}, "'soon' is not a date"),
        ({"path": "a"}, "no JSON at all", "contains no JSON"),
    ],
)
def test_an_expected_output_that_cannot_be_compared_is_errored(
    field: dict[str, Any], expected: Any, reason: str
) -> None:
    score = accuracy({"a": 1}, field, expected=expected)
    assert score.score is None
    assert reason in score.error


def test_a_case_without_an_expected_output_is_errored() -> None:
    assert judged("field_accuracy", "{}", fields=[{"path": "a"}]).error
