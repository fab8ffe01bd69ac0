"""The e-process: fair bets, and when it ends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.sequential import Sequential, Side, e_value, log_e_value

SIDES: list[Side] = ["both", "lost", "gained"]
sides = st.sampled_from(SIDES)
counts = st.integers(0, 300)


@given(lost=counts, gained=counts, side=sides)
def test_every_bet_is_fair(lost: int, gained: int, side: Side) -> None:
    """What the next coin gives on average is what is there: so peeking gains nothing."""
    now = log_e_value(lost, gained, side)
    if math.isinf(now):
        return
    after = [log_e_value(lost + 1, gained, side), log_e_value(lost, gained + 1, side)]
    assert sum(math.exp(log - now) for log in after) / 2 == pytest.approx(1, rel=1e-7)


@pytest.mark.parametrize("side", SIDES)
def test_the_stake_is_one(side: Side) -> None:
    assert e_value(0, 0, side) == pytest.approx(1)


@given(lost=counts, gained=counts)
def test_both_sides_are_the_mean_of_one_and_the_other(lost: int, gained: int) -> None:
    logs = [log_e_value(lost, gained, side) for side in SIDES]
    assert logs[0] == pytest.approx(
        math.log(sum(math.exp(log - logs[0]) for log in logs[1:]) / 2) + logs[0], abs=1e-7
    )
    assert logs[0] == pytest.approx(log_e_value(gained, lost), abs=1e-9)
    assert logs[1] == pytest.approx(log_e_value(gained, lost, "gained"), abs=1e-9)


def test_large_counts_neither_overflow_nor_vanish() -> None:
    assert e_value(100_000, 0) == math.inf
    assert log_e_value(100_000, 0) == pytest.approx(100_000 * math.log(2), rel=1e-3)
    assert log_e_value(50_000, 50_000) < 0
    assert log_e_value(3000, 0, "gained") == -math.inf
    assert e_value(3000, 0, "gained") == 0


def test_counts_are_not_negative() -> None:
    with pytest.raises(ValueError, match="they must not be negative"):
        log_e_value(-1, 0)


def ended(test: Sequential, before: bool, now: bool) -> int:
    """After how many such pairs there is a verdict."""
    pairs = 0
    while test.verdict is None:
        test = test.after(before, now)
        pairs += 1
    return pairs


def test_it_ends_when_the_evidence_reaches_one_over_alpha() -> None:
    assert ended(Sequential(), True, False) == 7
    assert ended(Sequential(side="lost"), True, False) == 6
    assert ended(Sequential(alpha=0.001), True, False) == 13
    test = Sequential()
    for _ in range(7):
        assert test.verdict is None
        assert test.e_value < 20
        test = test.after(True, False)
    assert test.e_value >= 20
    assert test.verdict == "regressed"


def test_the_verdict_has_a_direction_and_stays() -> None:
    test = Sequential()
    for _ in range(7):
        test = test.after(False, True)
    assert test.verdict == "improved"
    for _ in range(40):
        test = test.after(True, False)
    assert test.verdict == "improved"
    assert (test.lost, test.gained) == (40, 7)


def test_cases_that_stay_the_same_say_nothing() -> None:
    test = Sequential().after(True, False)
    assert test.after(True, True) == test
    assert test.after(False, False) == test


def test_one_side_does_not_bet_on_the_other() -> None:
    test = Sequential(side="lost")
    for _ in range(100):
        test = test.after(False, True)
    assert test.verdict is None


@pytest.mark.parametrize("alpha", [0, 1, -1])
def test_alpha_is_a_share(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Sequential(alpha=alpha)
