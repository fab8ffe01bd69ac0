"""What the text evaluators say about an answer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import patterns
from assay.evaluators.edit_distance import MAX_COMPARED, edit_distance
from assay.model.message import ContentPart
from assay.model.score import EvaluationScore
from assay.ports import Resources
from assay.scoring import prepare
from unit.conftest import Project
from unit.evaluator_calls import awaited, context_of, judged, spec_of

ANSWER = "In Lisbon it is 23.5 °C."

ROWS: list[tuple[str, Any, bool]] = [
    ("equals", "  In Lisbon it is 23.5 °C.\n", True),
    ("equals", "In Lisbon", False),
    ("contains", "Lisbon", True),
    ("contains", "lisbon", False),
    ("contains_any", ["Paris", "Lisbon"], True),
    ("contains_any", ["Paris", "Rome"], False),
    ("contains_any", "Lisbon", True),
    ("contains_all", ["Lisbon", "23.5"], True),
    ("contains_all", ["Lisbon", "23.5", "rain"], False),
    ("icontains", "LISBON", True),
    ("icontains", "Paris", False),
    ("starts_with", "In Lisbon", True),
    ("starts_with", "Lisbon", False),
    ("ends_with", "°C.", True),
    ("ends_with", "°C", False),
    ("regex", r"\b23\.5\b", True),
    ("regex", r"^Lisbon", False),
    ("json_schema", True, False),
]


@pytest.mark.parametrize(("kind", "value", "holds"), ROWS)
def test_each_check_holds_or_not_and_is_inverted(kind: str, value: Any, holds: bool) -> None:
    score = judged(kind, ANSWER, value=value)
    assert score.score == float(holds)
    assert (len(score.hits), len(score.misses)) == ((1, 0) if holds else (0, 1))
    for negated in (
        judged(f"not_{kind}", ANSWER, value=value),
        judged(kind, ANSWER, value=value, negate=True),
    ):
        assert negated.score == float(not holds)
        assert (len(negated.hits), len(negated.misses)) == ((0, 1) if holds else (1, 0))


@pytest.mark.parametrize(
    ("kind", "values", "score"),
    [
        ("contains", ["Lisbon", "rain", "23.5", "sun"], 0.5),
        ("icontains", ["LISBON", "IN"], 1.0),
        ("starts_with", ["In", "On"], 0.5),
        ("ends_with", ["C.", ".", "!", "?"], 0.5),
        ("regex", ["Lisbon", r"\d", "^$"], 2 / 3),
        ("equals", [ANSWER, "another"], 0.5),
        ("not_contains", ["Lisbon", "rain"], 0.5),
        ("not_equals", ["one", "another"], 1.0),
    ],
)
def test_each_value_of_a_list_is_one_check(kind: str, values: list[str], score: float) -> None:
    result = judged(kind, ANSWER, values=values)
    assert result.score == pytest.approx(score)
    assert len(result.hits) + len(result.misses) == len(values)


def test_contains_any_and_all_are_one_check_of_the_whole_list() -> None:
    assert judged("contains_all", "a b c", values=["a", "b", "x"]).score == 0
    assert judged("not_contains_all", "a b c", values=["a", "b", "x"]).score == 1
    assert judged("not_contains_any", "a b c", values=["x", "a"]).score == 0


# What is said


@pytest.mark.parametrize(
    ("kind", "value", "answer", "said"),
    [
        ("contains", "a", "bcd", "expected the answer to contain 'a', found 'bcd'"),
        ("contains", "Yes", "YES!", "; it is there in another case"),
        ("contains_any", ["Yes", "No"], "YES!", "; it is there in another case"),
        ("contains_all", ["a", "b"], "a", "expected the answer to contain 'b', found 'a'"),
        ("starts_with", "A", " A", "; it does after some space"),
        ("starts_with", "A", "aB", "; it is there in another case"),
        ("ends_with", "A", "A\n", "; it does before some space"),
        ("ends_with", "A", "ba", "; it is there in another case"),
        ("equals", "Yes", "yes", "expected 'Yes', found 'yes'; only the case differs"),
        ("equals", {"a": 1}, "no", "expected {\"a\": 1}, found 'no'"),
        ("regex", "^a", "b", "expected the answer to match '^a', found 'b'"),
        ("not_contains", "a", "abc", "expected the answer not to contain 'a', but it does"),
    ],
)
def test_a_miss_quotes_what_was_expected_and_found(
    kind: str, value: Any, answer: str, said: str
) -> None:
    (miss,) = judged(kind, answer, value=value).misses
    assert said in miss


def test_long_answers_are_cut_in_messages() -> None:
    (miss,) = judged("contains", "x" * 10_000, value="y" * 10_000).misses
    assert len(miss) < 300


# equals


@pytest.mark.parametrize(
    ("expected", "answer", "holds"),
    [
        ("4", " 4\n", True),
        ("4", "four", False),
        (4, "4", True),
        (4, "4.0", True),
        (4, "The answer is 4", False),
        (4, '"4"', False),
        (True, "true", True),
        (True, "1", False),
        (True, "True", False),
        ({"a": [1]}, 'Sure: {"a": [1.0]}.', True),
        ({"a": [1]}, "```json\n{ \"a\": [1] }\n```", True),
        ({"a": 1}, '{"a": "1"}', False),
        ({"a": 1}, "See [1]: {\"a\": 1}", True),
        ([1, 2], "[1, 2]", True),
        ([1, 2], "[2, 1]", False),
    ],
)  # fmt: skip
def test_without_a_value_the_expected_output_is_compared(
    expected: Any, answer: str, holds: bool
) -> None:
    assert judged("equals", answer, expected=expected).score == float(holds)
    assert judged("not_equals", answer, expected=expected).score == float(not holds)
    assert judged("equals", answer, value=expected).score == float(holds)


def test_null_is_a_value() -> None:
    assert judged("equals", "null", value=None).score == 1
    assert judged("equals", "nothing", value=None).score == 0


@pytest.mark.parametrize("kind", ["equals", "similarity", "not_equals"])
def test_a_case_without_an_expected_output_is_errored(kind: str) -> None:
    assert "no expected output" in judged(kind, "x").error


def test_expected_parts_are_their_text_and_the_text_of_their_files(tmp_path: Path) -> None:
    file = ContentPart("file", "right.txt", tmp_path / "right.txt")
    (tmp_path / "right.txt").write_text("and more", encoding="utf-8")
    expected = (ContentPart("text", "hello"), file)
    assert judged("equals", "hello\nand more", expected=expected).score == 1


# regex


def test_a_classic_bomb_returns_at_once() -> None:
    started = time.process_time()
    assert judged("regex", "a" * 40_000 + "!", value="^(a+)+$").score == 0
    assert time.process_time() - started < 2


def test_look_ahead_goes_through_the_fallback() -> None:
    assert judged("regex", "ab", value="a(?=b)").score == 1
    assert judged("regex", "ac", value="a(?=b)").score == 0


@pytest.mark.parametrize("keys", [{"value": "(?!x)^(a|aa)+$"}, {"values": ["a", "(?!x)^(a|aa)+$"]}])
def test_a_pattern_that_takes_too_long_is_errored(
    keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    score = judged("regex", "a" * 100 + "!", **keys)
    assert (score.score, score.error) == (None, "the pattern took longer than 1 s")


# similarity


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("kitten", "sitting", 1 - 3 / 7),
        ("same", " same\n", 1.0),
        ("abc", "", 0.0),
        ("abc", "xyz", 0.0),
        ("abcd", "abc", 0.75),
        ("Abc", "abc", 2 / 3),
    ],
)
def test_similarity_is_the_share_that_need_not_change(
    value: str, answer: str, score: float
) -> None:
    assert judged("similarity", answer, value=value).score == pytest.approx(score)
    assert judged("not_similarity", answer, value=value).score == pytest.approx(1 - score)
    assert judged("similarity", answer, expected=value).score == pytest.approx(score)


def test_similarity_to_several_values_is_their_mean() -> None:
    score = judged("similarity", "abcd", values=["abcd", "abxx"])
    assert score.score == pytest.approx(0.75)
    assert score.details["similarity"] == [1.0, 0.5]
    assert (len(score.hits), len(score.misses)) == (1, 1)


def by_the_book(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@given(st.text(alphabet="abc", max_size=40), st.text(alphabet="abc", max_size=40))
def test_the_edit_distance_is_that_of_the_book(a: str, b: str) -> None:
    assert edit_distance(a, b) == by_the_book(a, b) == edit_distance(b, a)


def test_very_long_texts_are_compared_by_their_beginnings() -> None:
    letters = random.Random(7).choices("abcdefgh ", k=MAX_COMPARED + 5)
    answer = "".join(letters)
    started = time.process_time()
    score = judged("similarity", answer, value=answer[::-1])
    assert time.process_time() - started < 20
    assert score.details["comparedCharacters"] == MAX_COMPARED
    short = judged("similarity", "abc", value="abd")
    assert "comparedCharacters" not in short.details


# JSON


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ('{"a": 1}', True),
        (" [1, 2]\n", True),
        ("null", True),
        ("", False),
        ("{'a': 1}", False),
        ('{"a": NaN}', False),
        ('{"a": 1} and more', False),
        ('```json\n{"a": 1}\n```', False),
    ],
)
def test_is_json_is_about_the_whole_answer(answer: str, holds: bool) -> None:
    assert judged("is_json", answer).score == float(holds)
    assert judged("not_is_json", answer).score == float(not holds)


def test_json_in_prose_is_hinted_at() -> None:
    (miss,) = judged("is_json", 'Sure: {"a": 1}').misses
    assert "there is JSON in it, but the answer must be nothing else" in miss


SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "days": {"items": {"$ref": "#/$defs/day"}}},
    "$defs": {"day": {"type": "integer", "minimum": 1}},
}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('{"city": "Lisbon", "days": [1, 2]}', ""),
        ("{}", "'city' is a required property"),
        ('{"city": 5}', "city: 5 is not of type 'string'"),
        ('{"city": "x", "days": [1, 0]}', "days[1]: 0 is less than the minimum of 1"),
        ("no", "expected JSON, found 'no'"),
    ],
)
def test_json_schema_says_what_is_wrong_and_where(answer: str, said: str) -> None:
    score = judged("json_schema", answer, value=SCHEMA)
    assert score.misses == ((said,) if said else ())
    assert score.score == float(not said)
    assert judged("not_json_schema", answer, value=SCHEMA).score == float(bool(said))


def test_the_dialect_is_honoured() -> None:
    tuples = {"items": [{"type": "string"}]}
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", **tuples}
    assert judged("json_schema", "[5]", value=draft_7).score == 0
    assert judged("json_schema", '["x"]', value=draft_7).score == 1
    recursive = {**draft_7, "pattern": "^(a+)+$", "additionalProperties": {"$ref": "#"}}
    bomb = '{"x": "%s!"}' % ("a" * 40_000)
    assert judged("json_schema", bomb, value=recursive).score == 0


BOMB = "^(a+)+$"


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"pattern": BOMB}, '"%s!"'),
        ({"propertyNames": {"pattern": BOMB}}, '{"%s!": 1}'),
        ({"patternProperties": {BOMB: False}, "minProperties": 2}, '{"%s!": 1}'),
        ({"patternProperties": {BOMB: True}, "additionalProperties": False}, '{"%s!": 1}'),
        ({"uniqueItems": True}, "[" + "{}," * 2 + '{"a": "%s"}]'),
    ],
)
def test_no_answer_makes_a_schema_slow(schema: dict[str, Any], answer: str) -> None:
    started = time.process_time()
    assert judged("json_schema", answer % ("a" * 40_000), value=schema).score == 0
    assert time.process_time() - started < 5


def test_many_unique_items_take_no_time() -> None:
    answer = json.dumps([*({"a": n} for n in range(20_000)), {"a": 5.0}])
    started = time.process_time()
    (miss,) = judged("json_schema", answer, value={"uniqueItems": True}).misses
    assert miss == "the item [20000] is there twice"
    assert time.process_time() - started < 5
    for distinct in ('[1, true, "1", [1], [true], {"a": 1}, {"a": true}, null]', "[]"):
        assert judged("json_schema", distinct, value={"uniqueItems": True}).score == 1


def test_properties_that_match_a_pattern_are_not_additional() -> None:
    schema = {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}
    assert judged("json_schema", '{"x1": 1}', value=schema).score == 1
    assert judged("json_schema", '{"x1": "a"}', value=schema).score == 0
    (miss,) = judged("json_schema", '{"x1": 1, "y": 2}', value=schema).misses
    assert miss == "'y' must not be there"
    typed = {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}
    assert judged("json_schema", '{"a": "x", "b": 1}', value=typed).score == 1
    assert judged("json_schema", '{"a": "x", "b": "y"}', value=typed).misses == (
        "b: 'y' is not of type 'integer'",
    )


def test_a_schema_without_end_is_errored() -> None:
    assert "without end" in judged("json_schema", "5", value={"$ref": "#"}).error


def test_a_schema_whose_pattern_takes_too_long_is_errored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    schema = {"pattern": "(?!x)^(a|aa)+$"}
    score = judged("json_schema", '"%s!"' % ("a" * 100), value=schema)
    assert score.error == "the pattern took longer than 1 s"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{type: objct}", "type: 'objct'"),
        ("{properties: {a: {type: 5}}}", "properties.a.type: 5"),
        ("{pattern: '('}", "pattern: '(' is not a 'regex'"),
        ("{patternProperties: {'(': {}}}", "'(' is not a 'regex'"),
        ("{$ref: 'https://example.com/s.json'}", "references are not fetched"),
        ("{$ref: 'file:///etc/passwd'}", "references are not fetched"),
        ("{properties: {a: {$ref: other.json}}}", "'other.json' is not defined in the schema"),
        (
            "{$ref: '#/definitions/b', definitions: {b: {$ref: '#/c'}}}",
            "'#/c' is not defined in the schema",
        ),
        ("{$schema: 'https://example.com/mine'}", "not known"),
        ("{$schema: 7}", "not known"),
        ("{items: {$schema: 'http://json-schema.org/draft-07/schema'}}", "whole schema"),
        ("{patternProperties: {a: {}}, unevaluatedProperties: false}", "does not go together"),
    ],
)
def test_an_invalid_schema_is_refused_when_loaded(project: Project, schema: str, said: str) -> None:
    evaluator = (
        f"- id: a\n  input: x\n  evaluators:\n    - type: json_schema\n      value: {schema}"
    )
    place, message = project.refused(evaluator)
    assert place == "5:14 wrong-value"
    assert message.startswith("'value' is not a valid JSON Schema: ")
    assert said in message
    place, message = project.refused(f"- id: a\n  input: x\n  expect:\n    json_schema: {schema}")
    assert place == "4:18 wrong-value"
    assert said in message


def test_the_library_is_loaded_by_the_first_schema_only(project: Project) -> None:
    code = "import assay, sys; assay.load('a.yaml'); print('jsonschema' in sys.modules)"
    for evaluator, loaded in (("is_json", False), ("json_schema, value: {type: object}", True)):
        project.write("a.yaml", f"- id: a\n  input: x\n  evaluators: [{{type: {evaluator}}}]")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == str(loaded), done.stderr


# Purity

KINDS: list[dict[str, Any]] = [
    {"kind": "contains", "values": ["a", "b"]},
    {"kind": "icontains", "value": "A"},
    {"kind": "contains_any", "values": ["ab", "ba"]},
    {"kind": "contains_all", "values": ["a", "b"]},
    {"kind": "regex", "value": "a(?=b)"},
    {"kind": "equals", "value": {"a": 1}},
    {"kind": "equals"},
    {"kind": "similarity", "value": "abba"},
    {"kind": "is_json"},
    {"kind": "json_schema", "value": {"type": "object"}},
]


@pytest.mark.parametrize("keys", KINDS, ids=lambda keys: keys["kind"])
@given(answers=st.lists(st.text(alphabet='ab{}":1') | st.just('{"a": 1}'), max_size=8))
def test_a_check_says_the_same_in_any_order_and_from_any_thread(
    keys: dict[str, Any], answers: list[str]
) -> None:
    rest = {key: value for key, value in keys.items() if key != "kind"}
    check = prepare(spec_of(keys["kind"], **rest), Resources())

    def say(answer: str) -> EvaluationScore:
        return awaited(check(context_of(answer, "ab")))

    first = {answer: say(answer) for answer in answers}
    assert {answer: say(answer) for answer in reversed(answers)} == first
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(say, answers * 3)) == [first[answer] for answer in answers * 3]
