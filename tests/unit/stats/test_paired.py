"""Two runs over the same cases: check values, worked examples, and what always holds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats import paired
from assay.stats.estimates import PValue
from assay.stats.paired import (
    ENUMERATE_UP_TO,
    EXACT_BELOW,
    PERMUTE_BELOW,
    Pairs,
    holm,
    mcnemar,
    mcnemar_corrected,
    mcnemar_exact,
    newcombe,
    paired_t,
    permutation,
    score_difference,
    score_test,
)

counts = st.integers(0, 300)
tables = st.builds(Pairs, counts, counts, counts, counts).filter(lambda pairs: pairs.n > 0)
#: Eighths: their sums are exact, so that ties are ties.
eighths = st.integers(-8, 8).map(lambda i: i / 8)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [(6, 0, 0.03125), (5, 0, 0.0625), (0, 0, 1), (0, 6, 0.03125), (1, 0, 1)],
)
def test_exact_check_values(lost: int, gained: int, p: float) -> None:
    assert mcnemar_exact(lost, gained) == p


@given(lost=st.integers(0, 60), gained=st.integers(0, 60))
def test_exact_is_the_sum_of_both_tails(lost: int, gained: int) -> None:
    n, few = lost + gained, min(lost, gained)
    tail = Fraction(sum(math.comb(n, i) for i in range(few + 1)), 2**n)
    assert mcnemar_exact(lost, gained) == float(min(Fraction(1), 2 * tail))


def test_both_ways_to_sum_the_tails_meet() -> None:
    """Whole numbers up to 1,000 pairs, the beta function beyond."""
    for lost, n in ((480, 1001), (440, 1001), (300, 1001)):
        tail = Fraction(sum(math.comb(n, i) for i in range(lost + 1)), 2**n)
        assert mcnemar_exact(lost, n - lost) == pytest.approx(float(2 * tail), rel=1e-10)


@given(lost=st.integers(0, 10**6), gained=st.integers(0, 10**6))
def test_p_values_are_shares_and_have_no_direction(lost: int, gained: int) -> None:
    for test in (mcnemar_exact, mcnemar_corrected):
        assert 0 <= test(lost, gained) <= 1
        assert test(lost, gained) == test(gained, lost)


@given(few=st.integers(0, 200), many=st.integers(0, 200))
def test_a_more_uneven_split_is_stronger(few: int, many: int) -> None:
    few, many = sorted((few, many))
    assert mcnemar_exact(few, many + 1) <= mcnemar_exact(few, many)
    if few:
        assert mcnemar_exact(few - 1, many + 1) <= mcnemar_exact(few, many)


@pytest.mark.parametrize("test", [mcnemar_exact, mcnemar_corrected])
def test_counts_are_not_negative(test: Callable[[int, int], float]) -> None:
    with pytest.raises(ValueError, match="-2 is not a number of cases"):
        test(-2, 3)


def test_the_correction_is_close_for_many_pairs_and_careful() -> None:
    for lost, gained in ((40, 60), (500, 560), (50_000, 50_700)):
        assert mcnemar_corrected(lost, gained) == pytest.approx(
            mcnemar_exact(lost, gained), rel=0.03
        )
    assert mcnemar_corrected(30, 30) == 1


def test_the_test_fits_the_number_of_pairs() -> None:
    assert mcnemar(EXACT_BELOW - 1, 0).method == "mcnemar-exact"
    assert mcnemar(EXACT_BELOW, 0).method == "mcnemar-corrected"
    assert mcnemar(6, 0) == PValue(0.03125, "mcnemar-exact")
    assert mcnemar(35, 25).value == mcnemar_corrected(35, 25)


@pytest.mark.parametrize(
    ("pairs", "low", "high"),
    [
        (Pairs(36, 12, 2, 0), -0.3404, -0.0569),
        (Pairs(36, 14, 0, 0), -0.4167, -0.1528),
        # the counts of table 6.2 in Altman and others, Statistics with Confidence
        (Pairs(14, 5, 0, 22), -0.226, -0.011),
        # the counts that Fagerland, Lydersen and Laake use: airway hyper-responsiveness
        (Pairs(1, 1, 7, 12), 0.026, 0.507),
    ],
)
def test_newcombe_worked_examples(pairs: Pairs, low: float, high: float) -> None:
    found = newcombe(pairs)
    assert found is not None
    digits = 4 if len(str(low)) > 6 else 3
    assert (round(found.low, digits), round(found.high, digits)) == (low, high)
    assert found.estimate == pairs.difference


def test_no_pair_has_no_difference() -> None:
    assert newcombe(Pairs(0, 0, 0, 0)) is None
    assert Pairs(0, 0, 0, 0).difference is None


def test_nothing_changed_still_leaves_doubt() -> None:
    found = newcombe(Pairs(18, 0, 0, 2))
    assert found is not None
    assert found.estimate == 0
    assert found.low < 0 < found.high


@given(pairs=tables)
def test_newcombe_holds_the_difference_within_one(pairs: Pairs) -> None:
    found = newcombe(pairs)
    assert found is not None
    assert -1 <= found.low <= found.estimate <= found.high <= 1


@given(pairs=tables)
def test_newcombe_turns_round_with_the_runs_and_with_the_outcomes(pairs: Pairs) -> None:
    found = newcombe(pairs)
    swapped = newcombe(Pairs(pairs.both, pairs.gained, pairs.lost, pairs.neither))
    failing = newcombe(Pairs(pairs.neither, pairs.gained, pairs.lost, pairs.both))
    assert found is not None
    for other in (swapped, failing):
        assert other is not None
        assert other.low == pytest.approx(-found.high, abs=1e-9)
        assert other.high == pytest.approx(-found.low, abs=1e-9)


@given(pairs=tables, times=st.integers(2, 10))
def test_newcombe_shrinks_with_more_cases(pairs: Pairs, times: int) -> None:
    counts = (pairs.both, pairs.lost, pairs.gained, pairs.neither)
    few, many = newcombe(pairs), newcombe(Pairs(*(times * count for count in counts)))
    assert few is not None
    assert many is not None
    assert many.interval.width < few.interval.width


def test_pairs_are_counted_from_outcomes() -> None:
    outcomes = [(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 4
    pairs = Pairs.of(outcomes)
    assert pairs == Pairs(3, 2, 1, 4)
    assert (pairs.n, pairs.discordant, pairs.difference) == (10, 3, -0.1)
    with pytest.raises(ValueError, match="counts must not be negative"):
        Pairs(1, -1, 0, 0)


@given(differences=st.lists(eighths, min_size=1, max_size=8))
def test_permutation_counts_all_signs(differences: list[float]) -> None:
    seen = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    found = permutation(differences)
    assert found is not None
    assert found.value == sum(s >= seen for s in sums) / len(sums)
    assert found.method == "permutation-exact"


def test_sums_that_differ_by_rounding_are_ties() -> None:
    """0.1 + 0.2 is more than 0.3 by rounding only; flipped, it must count as equal."""
    found = permutation([0.1, 0.2, -0.3, 0.3])
    assert found is not None
    assert found.value == permutation([1, 2, -3, 3]).value  # type: ignore[union-attr]


@given(values=st.lists(st.floats(-1, 1), min_size=1, max_size=40), seed=st.integers(0, 99))
def test_permutation_ignores_order_and_direction(values: list[float], seed: int) -> None:
    shuffled = random.Random(seed).sample(values, len(values))
    found = permutation(values, draws=200)
    assert found is not None
    assert 0 < found.value <= 1
    assert permutation(shuffled, draws=200) == found
    assert permutation([-v for v in values], draws=200) == found
    assert permutation([*values, 0.0, 0.0], draws=200) == found


def test_random_signs_come_near_all_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [0.3, -0.1, 0.25, 0.4, -0.05, 0.1, 0.2, -0.3, 0.15, 0.35, 0.05]
    exact = permutation(values)
    monkeypatch.setattr(paired, "ENUMERATE_UP_TO", 0)
    drawn = permutation(values, draws=20_000)
    assert exact is not None
    assert drawn is not None
    assert (exact.method, drawn.method) == ("permutation-exact", "permutation")
    assert drawn.value == pytest.approx(exact.value, rel=0.1)


def test_drawn_p_values_are_never_zero() -> None:
    found = permutation([0.5] * 50, draws=999)
    assert found is not None
    assert found.value == 1 / 1000


def test_enumeration_ends_at_its_limit() -> None:
    assert permutation([0.1] * ENUMERATE_UP_TO).method == "permutation-exact"  # type: ignore[union-attr]
    assert permutation([0.1] * (ENUMERATE_UP_TO + 1)).method == "permutation"  # type: ignore[union-attr]


def test_no_pairs_have_no_p_value() -> None:
    assert permutation([]) is None
    assert paired_t([]) is None
    assert paired_t([0.3]) is None
    assert score_test([]) is None
    assert score_difference([]) is None


def test_differences_without_spread() -> None:
    assert paired_t([0.0] * 5).value == 1  # type: ignore[union-attr]
    assert paired_t([0.1] * 5).value == 0  # type: ignore[union-attr]
    assert permutation([0.0] * 5).value == 1  # type: ignore[union-attr]


@given(values=st.lists(st.floats(-1, 1), min_size=2, max_size=50))
def test_t_p_values_are_shares(values: list[float]) -> None:
    found = paired_t(values)
    assert found is not None
    assert 0 <= found.value <= 1


@given(values=st.lists(st.floats(-1, 1), min_size=2, max_size=50))
def test_the_t_interval_excludes_zero_when_the_test_says_so(values: list[float]) -> None:
    test, found = paired_t(values), score_difference(values)
    assert test is not None
    assert found is not None
    if abs(test.value - 0.05) > 1e-9 and found.interval.width > 1e-9:
        assert (0 not in found.interval) == (test.value < 0.05)


def test_the_score_test_fits_the_number_of_pairs() -> None:
    values = [(i % 5 - 1) / 10 for i in range(PERMUTE_BELOW)]
    assert score_test(values).method == "paired-t"  # type: ignore[union-attr]
    assert score_test(values[1:]).method == "permutation"  # type: ignore[union-attr]


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


@given(p_values=st.lists(st.floats(0, 1), max_size=20), seed=st.integers(0, 99))
def test_holm_raises_keeps_order_and_stays_a_share(p_values: list[float], seed: int) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    ranked = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert ranked == sorted(ranked)
    order = random.Random(seed).sample(range(len(p_values)), len(p_values))
    assert holm([p_values[i] for i in order]) == [adjusted[i] for i in order]
