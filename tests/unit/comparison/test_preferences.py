"""From a judge's choices to win rates and a ranking."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.comparison.preferences import preference_pairs, ranking
from assay.model.comparison import CaseRef
from assay.model.preference import JudgedPair, PreferencePair, Preferred
from assay.stats.calibration import Confusion
from assay.stats.paired import mcnemar
from assay.stats.proportions import wilson

CHOICES: dict[str, Preferred] = {"W": "b", "L": "a", "T": "tie"}


def judged(letters: str, a: str = "a", b: str = "b", start: int = 0) -> list[JudgedPair]:
    """One letter a case: the second target wins, loses or ties; E is an error."""
    return [
        JudgedPair("s", f"c{i}", a, b, CHOICES.get(letter), error="E" * (letter == "E"))
        for i, letter in enumerate(letters, start)
    ]


def pair_of(letters: str, labels: Confusion | None = None) -> PreferencePair:
    (pair,) = preference_pairs(["a", "b"], judged(letters), {}, labels)
    return pair


@given(st.integers(0, 60), st.integers(0, 60))
def test_without_ties_the_interval_is_wilsons(wins: int, losses: int) -> None:
    pair = pair_of("W" * wins + "L" * losses)
    expected = wilson(wins, wins + losses)
    if expected is None:
        assert pair.win_rate is None
        return
    assert pair.win_rate is not None
    assert pair.win_rate.estimate == pytest.approx(expected.estimate)
    assert pair.win_rate.low == pytest.approx(expected.low, abs=1e-9)
    assert pair.win_rate.high == pytest.approx(expected.high, abs=1e-9)
    assert pair.p_value == mcnemar(losses, wins).value


def test_ties_are_half_wins_and_make_the_interval_narrower() -> None:
    with_ties, without = pair_of("W" * 10 + "T" * 80 + "L" * 10), pair_of("W" * 50 + "L" * 50)
    assert with_ties.win_rate is not None
    assert without.win_rate is not None
    assert with_ties.win_rate.estimate == without.win_rate.estimate == 0.5
    assert with_ties.win_rate.interval.width < without.win_rate.interval.width / 2


def test_only_ties_give_one_half_with_an_interval() -> None:
    pair = pair_of("T" * 40)
    assert pair.win_rate is not None
    assert 0.4 < pair.win_rate.low < pair.win_rate.estimate == 0.5 < pair.win_rate.high < 0.6
    assert pair.better is None


def test_an_error_is_neither_a_tie_nor_a_loss() -> None:
    pair = pair_of("WWWE")
    assert (pair.judged, pair.wins, pair.ties, pair.losses, pair.errored) == (3, 3, 0, 0, 1)
    assert pair.win_rate is not None
    assert pair.win_rate.estimate == 1
    assert pair_of("EE").win_rate is None


def test_the_better_target_needs_more_wins_than_chance_gives() -> None:
    assert pair_of("W" * 5).better is None
    assert pair_of("W" * 6).better == "b"
    assert pair_of("L" * 6).better == "a"


def test_pairs_of_three_targets_are_adjusted() -> None:
    cases = judged("W" * 6, "a", "b") + judged("T" * 6, "a", "c") + judged("L" * 6, "b", "c")
    pairs = preference_pairs(["a", "b", "c"], cases, {})
    assert [pair.better for pair in pairs] == [None, None, None]
    assert [pair.adjusted for pair in pairs] == [
        pytest.approx(0.09375),
        1.0,
        pytest.approx(0.09375),
    ]


def test_wins_in_one_cluster_count_for_less() -> None:
    cases = judged("W" * 10 + "WLWLWLWLWL")
    clusters = {CaseRef("s", f"c{i}"): "same" for i in range(10)}
    (plain,) = preference_pairs(["a", "b"], cases, {})
    (clustered,) = preference_pairs(["a", "b"], cases, clusters)
    assert plain.better == "b"
    assert clustered.better is None
    assert clustered.test == "student-t-clustered"


def test_labels_correct_the_win_rate() -> None:
    pair = pair_of("W" * 60 + "L" * 40, Confusion(45, 8, 5, 42))
    assert pair.corrected is not None
    assert pair.corrected.estimate == pytest.approx((0.6 + 0.84 - 1) / (0.9 + 0.84 - 1))
    assert pair_of("W" * 60).corrected is None


def test_wins_of_the_longer_answer_are_counted() -> None:
    sizes: Sequence[str] = ("b", "a", "", "b")
    cases = [
        JudgedPair("s", str(i), "a", "b", choice, longer=longer)  # type: ignore[arg-type]
        for i, (choice, longer) in enumerate(zip(("b", "b", "b", "tie"), sizes, strict=True))
    ]
    (pair,) = preference_pairs(["a", "b"], cases, {})
    assert (pair.longer_won, pair.shorter_won) == (1, 1)


def test_two_targets_are_not_ranked_and_three_are() -> None:
    assert ranking(["a", "b"], judged("W" * 9), {}) == ()
    cases = judged("WWWT", "a", "b") + judged("WWLT", "a", "c") + judged("LLWT", "b", "c")
    ranked = ranking(["a", "b", "c"], cases, {})
    assert [each.target for each in ranked] == ["b", "c", "a"]


def test_a_target_that_was_not_judged_is_last() -> None:
    ranked = ranking(["a", "b", "c"], judged("WL") + judged("E", "a", "c"), {})
    assert (ranked[-1].target, ranked[-1].strength) == ("c", None)
