"""Attempt strips."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from assay.charts.attempts import MAX_CASES, Attempts, attempt_strips
from assay.model.result import Outcome
from unit.charts.drawn_charts import checked, marks, names, table_of, titles

outcomes = st.lists(st.sampled_from(get_args(Outcome)), max_size=40)


@given(st.lists(st.tuples(names, outcomes, outcomes), max_size=6))
def test_everything_is_drawn_inside(found: list[tuple[str, list[Outcome], list[Outcome]]]) -> None:
    chart = attempt_strips([Attempts(*case) for case in found], "Flaky cases")
    checked(chart)
    assert len(table_of(chart)) == len(found) + 1


def test_the_squares_are_in_the_order_of_the_attempts() -> None:
    chart = attempt_strips([Attempts("a", ("passed", "failed", "errored"), ("passed",))], "Flaky")
    svg = checked(chart)
    assert [mark.get("class") for mark in marks(svg, "attempt")] == [
        "attempt passed", "attempt passed", "attempt failed", "attempt errored"
    ]  # fmt: skip
    assert titles(svg) == ["a: 1 of 2 passed, 1 not judged; baseline: 1 of 1 passed"]
    assert table_of(chart)[1] == ["a", "1 of 1 passed", "1 of 2 passed, 1 not judged"]


def test_cases_that_are_not_drawn_are_counted() -> None:
    cases = [Attempts(str(n), ("passed", "failed")) for n in range(MAX_CASES + 2)]
    assert "and 2 more, in the table" in attempt_strips(cases, "Flaky cases").svg
