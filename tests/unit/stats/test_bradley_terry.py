"""The strengths of targets from comparisons of two: worked examples, and what always holds."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.bradley_terry import Game, bradley_terry, strengths
from assay.stats.estimates import Estimate


def games(text: str) -> list[Game]:
    """One letter a case, about the targets 0 and 1: W if 0 wins, L if it loses, T for a tie."""
    scores = {"W": 1.0, "L": 0.0, "T": 0.5}
    return [Game(0, 1, scores[letter], unit) for unit, letter in enumerate(text)]


def of(played: list[Game], targets: int) -> list[Estimate]:
    found = [each for each in bradley_terry(played, targets) if each is not None]
    assert len(found) == targets
    return found


def test_two_targets_are_as_far_apart_as_their_wins() -> None:
    one, other = strengths([[0, 30], [10, 0]])
    assert one - other == pytest.approx(math.log(3))
    assert one + other == pytest.approx(0)


def test_a_tie_is_half_a_win_for_each() -> None:
    assert strengths([[0, 1.5], [0.5, 0]]) == strengths([[0, 3], [1, 0]])


def test_targets_that_always_tie_are_equal_and_have_a_narrow_interval() -> None:
    for found in of(games("T" * 200), 2):
        assert found.estimate == 0.5
        assert 0.48 < found.low < 0.5 < found.high < 0.52


@pytest.mark.parametrize("cases", [1, 2, 10, 500])
def test_a_target_that_wins_everything_has_a_finite_strength(cases: int) -> None:
    winner, loser = of(games("W" * cases), 2)
    assert 0.5 < winner.estimate < 1
    assert winner.estimate + loser.estimate == pytest.approx(1)
    assert winner.low < winner.estimate < winner.high


def test_a_single_case_says_nothing() -> None:
    winner, _ = of(games("W"), 2)
    assert (winner.low, winner.high) == (0.0, 1.0)


def test_more_cases_give_narrower_intervals() -> None:
    few, many = of(games("WWLT" * 5), 2)[0], of(games("WWLT" * 50), 2)[0]
    assert many.interval.width < few.interval.width / 2.5


def test_games_of_one_case_are_not_independent() -> None:
    one = [Game(0, 1, float(i % 3 > 0), i) for i in range(60)]
    repeated = [Game(0, 1, float(i % 3 > 0), (i, n)) for i in range(60) for n in range(5)]
    same_case = [game._replace(unit=game.unit[0]) for game in repeated]  # type: ignore[index]
    widths = [of(played, 2)[0].interval.width for played in (one, repeated, same_case)]
    assert widths[2] == pytest.approx(widths[0], rel=0.05)
    assert widths[1] < widths[0] / 2


def test_a_target_without_a_game_is_not_ranked() -> None:
    assert bradley_terry(games("WLT"), 3)[2] is None


def test_nothing_is_known_of_targets_without_games() -> None:
    assert bradley_terry([], 2) == [None, None]
    assert bradley_terry([], 0) == []


scores = st.sampled_from([0.0, 0.5, 1.0])


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(st.just(n), st.lists(scores, min_size=n * 8))))
def test_estimates_are_chances_whose_log_odds_have_the_mean_zero(
    drawn: tuple[int, list[float]],
) -> None:
    targets, given_scores = drawn
    pairs = list(combinations(range(targets), 2))
    played = [
        Game(*pairs[i % len(pairs)], score, i // len(pairs)) for i, score in enumerate(given_scores)
    ]
    found = [each for each in bradley_terry(played, targets) if each is not None]
    assert all(0 <= each.low <= each.estimate <= each.high <= 1 for each in found)
    if len(found) == targets:
        odds = [math.log(each.estimate / (1 - each.estimate)) for each in found]
        assert math.fsum(odds) == pytest.approx(0, abs=1e-6)


@given(st.permutations([0, 1, 2]), st.lists(scores, min_size=12, max_size=30))
def test_the_order_of_the_targets_does_not_matter(
    order: list[int], given_scores: list[float]
) -> None:
    pairs = list(combinations(range(3), 2))
    played = [Game(*pairs[i % 3], score, i // 3) for i, score in enumerate(given_scores)]
    moved = [game._replace(a=order[game.a], b=order[game.b]) for game in played]
    one, other = of(played, 3), of(moved, 3)
    for index, place in enumerate(order):
        assert other[place].estimate == pytest.approx(one[index].estimate, abs=1e-9)
        assert other[place].low == pytest.approx(one[index].low, abs=1e-9)
