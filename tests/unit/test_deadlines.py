"""Deadlines: long loops notice them, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.deadlines import DeadlineExceeded, check_deadline, time_left, within
from assay.patterns import TIME_LIMIT, compile_pattern

#: Takes the backtracking engine for ever.
SLOW = r"(?=a)(a|aa)+\1$"


def test_there_is_no_deadline_by_default() -> None:
    check_deadline()
    assert time_left() == float("inf")


def test_work_within_its_deadline_returns_and_its_deadline_is_gone() -> None:
    def work(number: int) -> int:
        check_deadline()
        assert 0 < time_left() < 60
        return number + 1

    assert within(60, work, 1) == 2
    assert time_left() == float("inf")


@pytest.mark.parametrize("check", [check_deadline, time_left])
def test_work_beyond_its_deadline_is_stopped_at_its_next_check(check: Callable[[], object]) -> None:
    with pytest.raises(DeadlineExceeded):
        within(0, lambda check: check(), check)
    assert time_left() == float("inf")


def test_a_search_that_hits_the_deadline_has_not_timed_out() -> None:
    pattern = compile_pattern(SLOW)
    assert not pattern.linear
    with pytest.raises(DeadlineExceeded):
        within(TIME_LIMIT / 100, pattern.search, "a" * 5000 + "b")
    with pytest.raises(TimeoutError):
        within(60, pattern.search, "a" * 5000 + "b")


def test_a_search_in_linear_time_needs_no_deadline() -> None:
    pattern = compile_pattern("(a|aa)+$")
    assert pattern.linear
    assert not within(0, pattern.search, "a" * 5000 + "b")
