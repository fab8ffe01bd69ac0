"""A judge against human labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.calibration import (
    Confusion,
    agreement,
    corrected_rate,
    corrected_width,
    kappa,
    majority_baseline,
    sensitivity,
    specificity,
)
from assay.stats.estimates import Estimate

counts = st.integers(0, 100)
tables = st.builds(Confusion, counts, counts, counts, counts)
TABLE = Confusion(right_passes=45, wrong_passes=8, wrong_failures=5, right_failures=42)


def must(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def test_labels_are_counted() -> None:
    labels = [(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 4
    table = Confusion.of(labels)
    assert table == Confusion(3, 1, 2, 4)
    assert (table.n, table.passes, table.failures) == (10, 5, 5)
    assert table.to_dict() == {
        "rightPasses": 3,
        "wrongPasses": 1,
        "wrongFailures": 2,
        "rightFailures": 4,
    }
    with pytest.raises(ValueError, match="counts must not be negative"):
        Confusion(1, 1, -1, 1)


def test_the_shares() -> None:
    assert must(sensitivity(TABLE)).estimate == 0.9
    assert must(specificity(TABLE)).estimate == 0.84
    assert must(agreement(TABLE)).estimate == 0.87
    assert majority_baseline(TABLE) == 0.5
    assert majority_baseline(Confusion(90, 10, 0, 0)) == 0.9


def test_nothing_labelled_says_nothing() -> None:
    empty = Confusion(0, 0, 0, 0)
    for measure in (agreement, majority_baseline, sensitivity, specificity, kappa):
        assert measure(empty) is None
    assert corrected_rate(5, 10, empty) is None
    assert sensitivity(Confusion(0, 1, 0, 1)) is None
    assert specificity(Confusion(1, 0, 1, 0)) is None


def test_kappa_by_hand() -> None:
    """Agreement 0.7, chance 0.5: two fifths of the way to full agreement."""
    assert must(kappa(Confusion(20, 5, 10, 15))).estimate == pytest.approx(0.4)
    assert must(kappa(Confusion(0, 10, 10, 0))).estimate == -1


def test_a_judge_that_always_passes_has_no_kappa_above_chance() -> None:
    found = must(kappa(Confusion(90, 10, 0, 0)))
    assert found.estimate == 0
    assert kappa(Confusion(90, 0, 0, 0)) is None


def test_a_judge_that_passes_all_may_be_better_than_it_looks() -> None:
    found = kappa(Confusion(right_passes=3, wrong_passes=1, wrong_failures=0, right_failures=0))
    assert found is not None
    assert found.estimate == 0
    assert (found.low, round(found.high, 2)) == (-1, 0.82)


def test_full_agreement_on_few_labels_leaves_doubt() -> None:
    few, many = must(kappa(Confusion(3, 0, 0, 2))), must(kappa(Confusion(300, 0, 0, 200)))
    assert few.estimate == few.high == 1
    assert few.low < 0.3
    assert many.low > 0.95


@given(table=tables)
def test_kappa_is_in_its_interval_and_symmetric(table: Confusion) -> None:
    found = kappa(table)
    if found is None:
        assert table.n == 0 or {table.passes, table.right_passes + table.wrong_passes} <= {
            0,
            table.n,
        }
        return
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    turned = Confusion(
        table.right_failures, table.wrong_failures, table.wrong_passes, table.right_passes
    )
    assert must(kappa(turned)).estimate == pytest.approx(found.estimate, abs=1e-9)
    assert must(kappa(turned)).low == pytest.approx(found.low, abs=1e-9)


def test_the_corrected_rate_undoes_the_judges_errors() -> None:
    """Of 0.9 good answers such a judge passes 0.9 * 0.9 + 0.1 * 0.16 = 0.826."""
    found = must(corrected_rate(826, 1000, TABLE))
    assert found.estimate == pytest.approx(0.9)
    assert found.method == "rogan-gladen"


def test_a_perfect_judge_needs_no_correction() -> None:
    found = must(corrected_rate(70, 100, Confusion(5000, 0, 0, 5000)))
    assert found.estimate == 0.7
    assert (found.low, found.high) == pytest.approx((0.604, 0.781), abs=0.002)


def test_more_labels_are_surer() -> None:
    widths = [
        must(corrected_rate(165, 200, Confusion(45 * k, 8 * k, 5 * k, 42 * k))).interval.width
        for k in (1, 2, 8, 100)
    ]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    "labels", [Confusion(5, 5, 5, 5), Confusion(1, 9, 9, 1), Confusion(9, 0, 1, 0)]
)
def test_a_judge_no_better_than_chance_corrects_nothing(labels: Confusion) -> None:
    assert corrected_rate(50, 100, labels) is None


def test_a_judge_near_chance_has_the_widest_interval() -> None:
    """Seen it is just better than chance; drawn towards the middle it is not."""
    assert must(corrected_rate(50, 100, Confusion(1, 90, 0, 1))).interval.width == 1


def test_no_answers_have_no_rate() -> None:
    assert corrected_rate(0, 0, TABLE) is None
    with pytest.raises(ValueError, match="3 of 2 answers"):
        corrected_rate(3, 2, TABLE)


@given(table=tables, n=st.integers(1, 500), share=st.floats(0, 1))
def test_the_corrected_rate_is_a_share_within_its_interval(
    table: Confusion, n: int, share: float
) -> None:
    found = corrected_rate(round(share * n), n, table)
    if found is not None:
        assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_the_width_to_come_is_that_of_a_larger_table() -> None:
    now = must(corrected_rate(700, 1000, TABLE))
    assert corrected_width(700, 1000, TABLE) == pytest.approx(now.high - now.low)
    doubled = Confusion(*(2 * count for count in TABLE.to_dict().values()))
    later = corrected_width(700, 1000, TABLE, more=TABLE.n)
    assert later == corrected_width(700, 1000, doubled)
    assert later is not None
    assert later < now.high - now.low


def test_no_width_is_foretold_without_a_rate() -> None:
    assert corrected_width(7, 10, Confusion(5, 0, 1, 0), more=20) is None
    assert corrected_width(7, 10, Confusion(1, 9, 9, 1), more=20) is None
    assert corrected_width(0, 0, TABLE, more=20) is None
