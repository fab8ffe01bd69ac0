"""The filter language: reading, mistakes, and what matches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, get_args
from unicodedata import normalize

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import FilterError, FilterMistake
from assay.model.case_filter import (
    CHOICES,
    MAX_LENGTH,
    CaseFilter,
    Change,
    FilterRow,
    Term,
    folded,
    matches_glob,
    parse_filter,
)
from assay.model.result import Outcome

EXAMPLE = (
    "outcome:failed tag:billing suite:orders evaluator:tool_trajectory score<0.6 cost>0.01 "
    'latency>2000 flaky changed:regressed "free text" -tag:slow'
)
ROW = FilterRow(
    id="refund-7",
    suites=("Orders", "evals/orders.yaml", "orders"),
    tags=("billing", "two words"),
    evaluators=("mentions_sum", "tool_trajectory"),
    text=folded("Where is my Refund?\nSome FREE text"),
    outcome="failed",
    changed="regressed",
    flaky=True,
    score=0.5,
    cost=0.02,
    latency=2500.0,
)
EMPTY = FilterRow(id="")


def mistakes(text: str) -> list[str]:
    with pytest.raises(FilterError) as raised:
        parse_filter(text)
    assert raised.value.exit_code == 2
    return str(raised.value).split("\n")


def test_every_kind_of_term_is_read() -> None:
    terms = parse_filter(EXAMPLE).terms
    assert [term.field for term in terms] == [
        *("outcome", "tag", "suite", "evaluator", "score", "cost", "latency", "flaky", "changed"),
        *("text", "tag"),
    ]
    assert terms[4] == Term("score", "<", (0.6,))
    assert terms[-1] == Term("tag", values=("slow",), negated=True)
    assert parse_filter(EXAMPLE).matches(ROW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "id:refund-*",
        "id:*7",
        "id:re*-*",
        'tag:"two words"',
        "tag:slow,billing",
        "suite:evals/*",
        "suite:Orders",
        "-id:other",
        "score>=0.5 score<=0.5 score=0.5",
        "REFUND",
        '"my refund"',
        "-absent",
        "refund?",
        'my -"AND" -not -(see',
    ],
)
def test_matching_filters(text: str) -> None:
    assert parse_filter(text).matches(ROW)


@pytest.mark.parametrize(
    "text",
    [
        "id:refund",
        "id:REFUND-7",
        "tag:bill",
        "tag:a,b",
        "suite:order",
        "-flaky",
        "score<0.5",
        "outcome:passed,errored",
        '"refund my"',
        "flaky tag:slow",
    ],
)
def test_filters_that_do_not_match(text: str) -> None:
    assert not parse_filter(text).matches(ROW)


def test_a_number_that_is_not_known_fulfils_no_comparison() -> None:
    for text in ("score<1", "score>0", "cost=0", "latency>=0"):
        assert not parse_filter(text).matches(EMPTY)
        assert parse_filter(f"-{text}").matches(EMPTY)


def test_accents_are_equal_however_they_are_encoded() -> None:
    row = FilterRow(id="cafe\u0301", tags=("é",), text=folded("CAFE\u0301"))
    assert parse_filter("id:café tag:e\u0301 café").matches(row)


def test_a_quote_may_hold_quotes_and_backslashes() -> None:
    row = FilterRow(id="x", tags=('say "hi"', "C:\\new"))
    assert parse_filter(r'tag:"say \"hi\"" tag:"C:\\new"').matches(row)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flaky tagg:x", "filter, column 7: unknown field 'tagg': put a text"),
        ("http://x", "filter, column 1: unknown field 'http': put a text to search for in quotes"),
        ("outcome:fail", "filter, column 9: outcome cannot be 'fail' (did you mean 'failed'?)"),
        ("outcome:passed,faild", "filter, column 16: outcome cannot be 'faild' (did you mean"),
        ("changed:worse", "filter, column 9: changed cannot be 'worse' (known: regressed, fixed,"),
        ("score:0.5", "filter, column 6: 'score' is a number (compare it, as in score>0.5)"),
        ("score<low", "filter, column 7: expected a number from 0 to 1, got 'low'"),
        ("latency>2s", "filter, column 9: expected milliseconds, got '2s'"),
        ("cost>nan", "filter, column 6: expected US dollars, got 'nan'"),
        ("tag<3", "filter, column 4: unexpected '<': expected 'tag:'"),
        ("tag:", "filter, column 5: 'tag' needs a value"),
        ("tag:a,", "filter, column 7: 'tag' needs a value"),
        ("tag: a", "filter, column 5: 'tag' needs a value"),
        ("tag", "filter, column 1: 'tag' needs a value (write tag:VALUE, or search for"),
        ("score", "filter, column 1: 'score' needs a value (write score>0.5, or search for"),
        ("flakey", "filter, column 1: unknown term 'flakey' (did you mean 'flaky'? Or search"),
        ("tag:a AND tag:b", "filter, column 7: 'AND' is not an operator (leave it out, as all"),
        ("tag:a OR tag:b", "filter, column 7: 'OR' is not an operator (separate alternatives by"),
        ("NOT tag:a", "filter, column 1: 'NOT' is not an operator (write - before the term, as"),
        ("id:x (tag:a)", "filter, column 6: unexpected '(' before 'tag:' (all terms must match;"),
        ("!tag:a", "filter, column 1: unexpected '!' before 'tag:' (all terms must match; write"),
        ("flaky:true", "filter, column 1: 'flaky' has no value (write flaky or -flaky)"),
        ("-", "filter, column 2: expected a term after '-'"),
        ("- tag:a", "filter, column 2: expected a term after '-'"),
        ('tag:"a', "filter, column 5: the quote is not closed"),
        ('tag:"a"b', "filter, column 8: unexpected 'b': expected a space"),
        ('""', "filter, column 1: the text to search for is empty"),
        ("a " * 1000, "filter, column 17: more than 8 texts to search for (put a text of several"),
        ("x" * (MAX_LENGTH + 1), "filter, column 1: the filter has 2,001 characters"),
    ],
)
def test_mistakes_are_reported_with_their_column(text: str, message: str) -> None:
    (found,) = mistakes(text)
    assert found.startswith(message)


def test_all_mistakes_are_reported_at_once() -> None:
    found = mistakes('tagg:x flaky outcome:"not this" score:1 id:fine')
    assert [line.split(":")[0] for line in found] == [
        f"filter, column {column}" for column in (1, 22, 38)
    ]


def test_terms_about_results_are_known() -> None:
    assert parse_filter("tag:a id:b suite:c evaluator:d text").fields_of_results == []
    fields = parse_filter(EXAMPLE).fields_of_results
    assert fields == ["outcome", "score", "cost", "latency", "flaky", "changed"]


def test_a_filter_is_plain_data() -> None:
    parsed = parse_filter(EXAMPLE)
    assert msgspec.json.decode(msgspec.json.encode(parsed), type=CaseFilter) == parsed


NAMES = st.text(st.sampled_from('ab*-É \u0301"\\,:'), max_size=5)
WORDS = NAMES.filter(lambda text: text.strip() != "")
NUMBERS = st.one_of(st.none(), st.floats(0, 3), st.sampled_from([0.0, 0.5, 1.0]))
ROWS = st.builds(
    FilterRow,
    id=NAMES,
    suites=st.tuples(NAMES, NAMES),
    tags=st.lists(NAMES, max_size=3).map(tuple),
    evaluators=st.lists(NAMES, max_size=3).map(tuple),
    text=NAMES.map(folded),
    outcome=st.one_of(st.none(), st.sampled_from(get_args(Outcome))),
    changed=st.one_of(st.none(), st.sampled_from(get_args(Change))),
    flaky=st.booleans(),
    score=NUMBERS,
    cost=NUMBERS,
    latency=NUMBERS,
)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    negated = draw(st.booleans())
    field = draw(st.sampled_from(["id", "suite", "tag", "evaluator", "outcome", "changed"]))
    kind = draw(st.sampled_from(["names", "number", "flaky", "text"]))
    if kind == "flaky":
        return Term("flaky", negated=negated)
    if kind == "text":
        return Term("text", values=(folded(draw(WORDS)),), negated=negated)
    if kind == "number":
        field = draw(st.sampled_from(["score", "cost", "latency"]))
        number = draw(st.floats(0, 3) | st.sampled_from([0.0, 0.5, 1.0]))
        return Term(field, draw(st.sampled_from(["<", "<=", "=", ">=", ">"])), (number,), negated)
    choices = st.sampled_from(CHOICES[field]) if field in CHOICES else NAMES
    values = draw(st.lists(choices, min_size=1, max_size=3))
    return Term(field, values=tuple(values), negated=negated)


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("tag:a,b", ["a", "b", "ab"]),
        ("tag:a tag:b", ["ab"]),
        ("tag:a -tag:b", ["a"]),
        ("-tag:a,b", ["", "c"]),
        ("tag:a,b -tag:c,b", ["a"]),
    ],
)
def test_tags_are_combined_with_and_or_and_not(text: str, matching: list[str]) -> None:
    rows = [FilterRow(id=tags, tags=tuple(tags)) for tags in ("", "a", "b", "ab", "c")]
    assert [row.id for row in rows if parse_filter(text).matches(row)] == matching


FILTERS = st.lists(terms(), max_size=4).map(lambda found: CaseFilter(tuple(found)))


@given(FILTERS)
def test_a_filter_written_out_and_read_again_is_equal(wanted: CaseFilter) -> None:
    assert parse_filter(str(wanted)) == wanted


@given(st.text(st.sampled_from('tag:score<=0.5 -"\\,flaky\n*é'), max_size=40))
def test_any_text_is_read_or_refused_with_columns_in_it(text: str) -> None:
    found: tuple[FilterMistake, ...] = ()
    try:
        wanted = parse_filter(text)
    except FilterError as error:
        found = error.mistakes
    else:
        assert parse_filter(str(wanted)) == wanted
    assert all(1 <= mistake.column <= len(text) + 1 for mistake in found)


@given(FILTERS, ROWS)
def test_matching_is_that_of_a_naive_evaluation(wanted: CaseFilter, row: FilterRow) -> None:
    assert wanted.matches(row) == all(_naive(term, row) for term in wanted.terms)


def _naive(term: Term, row: FilterRow) -> bool:
    known: dict[str, Any] = {
        "id": [row.id],
        "suite": row.suites,
        "tag": row.tags,
        "evaluator": row.evaluators,
        "outcome": [row.outcome or ""],
        "changed": [row.changed or ""],
    }
    if term.field == "flaky":
        holds = row.flaky
    elif term.field == "text":
        holds = row.text.count(str(term.values[0])) > 0
    elif term.field in known:
        holds = any(_glob(str(v), n) for v in term.values for n in known[term.field])
    else:
        number, limit = getattr(row, term.field), float(term.values[0])
        signs = {"<": -1, "=": 0, ">": 1}
        sign = None if number is None else (number > limit) - (number < limit)
        holds = sign in [signs[c] for c in term.op]
    return not holds if term.negated else holds


def _glob(pattern: str, name: str) -> bool:
    return fnmatchcase(normalize("NFC", name), normalize("NFC", pattern))


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_an_asterisk_matches_any_characters(pattern: str, name: str) -> None:
    assert matches_glob(pattern, name) == fnmatchcase(name, pattern)
