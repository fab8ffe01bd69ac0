"""A comparison in words."""

from __future__ import annotations

from typing import Any

import pytest

from assay.comparison.gate import GateRules
from assay.comparison.tally import compare
from assay.model.case_content import CaseContent
from assay.model.comparison import CaseOutcome
from assay.reporters.comparison_words import rate_change, standing, what_changed
from unit.case_outcomes import case, runs_of

QUESTION = {"role": "user", "content": "What?"}


@pytest.mark.parametrize(
    ("counts", "word", "tone"),
    [
        ((100, 0, 30, 0), "Better", "better"),
        ((1000, 0, 0, 10), "Unchanged", "plain"),
        ((100, 30, 0, 0), "Worse", "worse"),
        ((20, 0, 1, 1), "Cannot tell", "unclear"),
        ((20, 1, 1, 1), "Cannot tell", "unclear"),
        ((0, 0, 0, 0), "Not comparable", "unclear"),
    ],
)
def test_a_decision_is_one_word(counts: tuple[int, int, int, int], word: str, tone: str) -> None:
    assert standing(compare(*runs_of(*counts))) == (word, tone)


def one_of(now: CaseOutcome, *, stable: int = 20) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    base, candidate = runs_of(stable, 0, 0, 0)
    return [*base, case("last")], [*candidate, now]


def test_a_loss_that_repeats_is_worse_although_the_rate_cannot_tell() -> None:
    found = compare(*one_of(case("last", "failed", reasks=(0, 3, 0))))
    assert found.decision == "inconclusive"
    assert standing(found).word == "Worse"


def test_a_gate_that_fails_for_a_new_case_is_not_called_worse() -> None:
    base, candidate = runs_of(20, 0, 0, 0)
    found = compare(base, [*candidate, case("new", "failed")])
    assert standing(found) == ("Failed", "worse")


def test_an_unconfirmed_loss_of_the_strict_gate_is_not_called_worse() -> None:
    found = compare(*one_of(case("last", "failed")), GateRules("strict"))
    assert standing(found) == ("Failed", "worse")


def test_the_change_of_the_rate_has_its_denominator_and_interval() -> None:
    words = "135 cases compared, pass rate -22.2 points (-29.9 to -15.3), p < 0.0001"
    assert rate_change(compare(*runs_of(100, 30, 0, 5))) == words
    assert rate_change(compare([], [case("new")])) == "0 cases compared"


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({}, {}, "a judge or a file that it uses changed"),
        ({}, {"input": [{"role": "user", "content": "Why?"}]}, "the question changed"),
        ({}, {"threshold": 0.5}, "the expectation changed"),
        ({"stubs": {"a": 1}}, {"expected_outcome": "x"},
         "the question changed and the expectation changed"),
        ({"input": ()}, {}, "what changed is not recorded"),
    ],
)  # fmt: skip
def test_it_is_said_what_changed(before: dict[str, Any], now: dict[str, Any], words: str) -> None:
    one, other = (CaseContent(**{"input": [QUESTION]} | given) for given in (before, now))
    assert what_changed(one, other) == words
