"""Planning: published numbers, and that plans agree with what the tests would do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.stats.paired import mcnemar
from assay.stats.planning import (
    Aim,
    Variances,
    approximate_cases,
    cases_needed,
    detectable_difference,
    paired_power,
    score_cases_needed,
    score_detectable_difference,
)
from unit.stats.simulations import share

within = st.floats(0, 1)


@pytest.mark.parametrize(
    ("variances", "n"), [(Variances(1 / 9), 969), (Variances(1 / 9, 1 / 6, 1 / 6), 3876)]
)
def test_miller_published(variances: Variances, n: int) -> None:
    assert score_cases_needed(0.03, variances) == n
    assert score_detectable_difference(n, variances) == pytest.approx(0.03, abs=1e-5)


def test_repeats_take_away_only_the_noise_within_cases() -> None:
    variances = Variances(1 / 9, 1 / 6, 1 / 6)
    needed = [score_cases_needed(0.03, variances, k, k) for k in (1, 2, 4, 1000)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == pytest.approx(969, abs=4)


@given(between=st.floats(0.01, 1), before=within, now=within, n=st.integers(1, 10**6))
def test_miller_both_ways(between: float, before: float, now: float, n: int) -> None:
    variances = Variances(between, before, now)
    difference = score_detectable_difference(n, variances, 2, 3)
    assert difference is not None
    assert score_cases_needed(difference, variances, 2, 3) in (n, n + 1)


def test_no_case_shows_nothing() -> None:
    assert score_detectable_difference(0, Variances(1)) is None
    assert detectable_difference(0, 0.2) is None
    with pytest.raises(ValueError, match="no number of cases can detect that"):
        score_cases_needed(0, Variances(1))
    with pytest.raises(ValueError, match="no number of cases can detect that"):
        approximate_cases(0, 0.2)
    assert cases_needed(0, 0.2) is None


@pytest.mark.parametrize(
    ("discordant", "n", "points"),
    [
        (0.2, 50, 17),
        (0.2, 100, 12),
        (0.2, 200, 9),
        (0.2, 500, 5.6),
        (0.2, 1000, 4.0),
        (0.1, 100, 8.8),
        (0.1, 200, 6.2),
        (0.1, 500, 4.0),
    ],
)
def test_the_usual_formula_and_ours_agree_roughly(discordant: float, n: int, points: float) -> None:
    assert approximate_cases(points / 100, discordant) == pytest.approx(n, rel=0.1)
    found = detectable_difference(n, discordant)
    assert found is not None
    assert found * 100 == pytest.approx(points, rel=0.08)


@pytest.mark.parametrize("runs", [300, pytest.param(5000, marks=pytest.mark.full)])
def test_power_is_how_often_the_test_finds_it(runs: int) -> None:
    def found(random: Random) -> bool:
        lost = gained = 0
        for _ in range(160):
            draw = random.random()
            lost, gained = lost + (draw < 0.16), gained + (0.16 <= draw < 0.2)
        return mcnemar(lost, gained).value < 0.05

    power = paired_power(160, 0.2, 0.12)
    assert share(found, runs) == pytest.approx(power, abs=3.5 * (power * (1 - power) / runs) ** 0.5)


@settings(max_examples=20)
@given(discordant=st.floats(0.05, 1), part=st.floats(0.2, 1), power=st.sampled_from([0.8, 0.9]))
def test_the_planned_number_has_the_power_and_one_less_has_not(
    discordant: float, part: float, power: float
) -> None:
    aim, difference = Aim(power=power), discordant * part
    n = cases_needed(difference, discordant, aim)
    assert n is not None
    assert paired_power(n, discordant, difference) >= power
    assert paired_power(n - 1, discordant, difference) < power


@settings(max_examples=20)
@given(n=st.integers(40, 400), discordant=st.floats(0.2, 1))
def test_the_detectable_difference_is_detected(n: int, discordant: float) -> None:
    difference = detectable_difference(n, discordant)
    assert difference is not None
    assert paired_power(n, discordant, difference) >= 0.8
    assert paired_power(n, discordant, difference - 1e-5) < 0.8


def test_direction_does_not_matter() -> None:
    assert paired_power(100, 0.2, 0.1) == pytest.approx(paired_power(100, 0.2, -0.1))
    assert cases_needed(-0.1, 0.2) == cases_needed(0.1, 0.2)


def test_without_a_difference_the_alarm_is_false_and_rare() -> None:
    for n in (30, 100, 500, 5000):
        assert paired_power(n, 0.2, 0) <= 0.05


def test_exact_and_normal_power_meet() -> None:
    """Just below and just above the number of pairs where the sum gives way."""
    for difference in (0.02, 0.03, 0.04):
        below, above = paired_power(2000, 0.2, difference), paired_power(2001, 0.2, difference)
        assert below == pytest.approx(above, abs=0.006)


def test_too_few_cases_cannot_show_anything() -> None:
    """Five discordant pairs are never significant, whatever way they fall."""
    assert detectable_difference(20, 0.2) is None
    assert paired_power(5, 1, 1) == 0
    assert paired_power(6, 1, 1) == 1
    assert cases_needed(1, 1) == 6


def test_many_cases() -> None:
    assert cases_needed(1e-6, 0.2) == pytest.approx(approximate_cases(1e-6, 0.2), rel=0.01)
    assert cases_needed(0.001, 0.2) == pytest.approx(approximate_cases(0.001, 0.2), rel=0.01)
    assert paired_power(10_000, 1, 1) == 1


@pytest.mark.parametrize(
    ("discordant", "difference", "message"),
    [(0, 0, "must be above 0"), (1.2, 0, "at most 1"), (0.1, 0.2, "needs as many discordant")],
)
def test_impossible_plans_are_refused(discordant: float, difference: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_power(100, discordant, difference)


def test_an_aim_is_made_of_shares() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Aim(power=1)
    assert Aim().reach == pytest.approx(2.801585, abs=1e-6)
