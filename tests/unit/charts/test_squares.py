"""The squares of counts."""

from __future__ import annotations

from hypothesis import given

from assay.charts.squares import confusion_square, mcnemar_square
from assay.model.comparison_tables import PairCounts
from assay.stats.calibration import Confusion
from unit.charts.drawn_charts import checked, marks, pair_counts, table_of, texts

COUNTS = PairCounts("", 1198, 1181, 3, 2, 12, None)


@given(pair_counts())
def test_everything_is_drawn_inside(counts: PairCounts) -> None:
    checked(mcnemar_square(counts))


def test_the_table_has_what_is_drawn() -> None:
    chart = mcnemar_square(COUNTS)
    assert table_of(chart) == [
        ["", "passed now", "failed now"],
        ["passed before", "1,181", "3"],
        ["failed before", "2", "12"],
    ]
    assert {"1,181", "3", "2", "12", "regressed", "fixed"} <= set(texts(checked(chart)))


def test_only_cells_with_an_address_are_links() -> None:
    svg = checked(mcnemar_square(COUNTS, {"regressed": "#regressed"}))
    assert [(a.get("href"), a[0][0].text) for a in svg.iter("a")] == [("#regressed", "3 regressed")]


def test_a_cell_with_a_count_of_zero_is_not_coloured() -> None:
    svg = checked(mcnemar_square(PairCounts("", 9, 9, 0, 0, 0, None)))
    assert marks(svg, "worse") == marks(svg, "better") == []


def test_errors_of_a_judge_are_coloured_and_agreement_is_not() -> None:
    svg = checked(confusion_square(Confusion(70, 9, 4, 17)))
    assert [text for text in texts(svg) if text.isdigit()] == ["70", "4", "9", "17"]
    assert len(marks(svg, "worse")) == 4
