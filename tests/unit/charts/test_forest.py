"""Forest plots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.charts.forest import MAX_DIFFERENCES, MAX_ROWS, RateRow, difference_forest, rate_forest
from assay.model.comparison_tables import PairCounts
from assay.stats.estimates import Estimate
from assay.stats.paired import Pairs, newcombe
from assay.stats.proportions import wilson
from unit.charts.drawn_charts import checked, marks, names, pair_counts, rates, table_of, titles


def counts(name: str, both: int, lost: int, gained: int, neither: int) -> PairCounts:
    pairs = Pairs(both, lost, gained, neither)
    return PairCounts(name, pairs.n, both, lost, gained, neither, newcombe(pairs))


@given(st.lists(pair_counts(), max_size=8))
def test_every_difference_is_drawn_inside(rows: list[PairCounts]) -> None:
    chart = difference_forest(rows, "Difference by tag")
    svg = checked(chart)
    assert len(marks(svg, "dot")) == sum(row.difference is not None for row in rows)
    assert len(table_of(chart)) == len(rows) + 1


@given(st.lists(st.tuples(names, rates(), st.none() | st.floats(0, 1)), max_size=8))
def test_every_rate_is_drawn_inside(
    rows: list[tuple[str, tuple[int, int, Estimate], float | None]],
) -> None:
    svg = checked(rate_forest([RateRow(n, *rate, base) for n, rate, base in rows], "By tag"))
    assert len(marks(svg, "hollow")) == sum(base is not None for *_, base in rows)


def test_the_worst_comes_first_and_rows_of_few_cases_last() -> None:
    rows = [counts("same", 9, 0, 0, 0), counts("few", 1, 2, 0, 0), counts("worse", 20, 9, 0, 0)]
    chart = difference_forest(rows, "Difference by tag", {"worse": "/cases?tag=worse"})
    assert [row[0] for row in table_of(chart)[1:]] == ["worse", "same", "few"]
    svg = checked(chart)
    assert [(mark.get("class") or "").split()[1:] for mark in marks(svg, "dot")] == [
        ["worse"], [], ["few"]
    ]  # fmt: skip
    assert [link.get("href") for link in svg.iter("a")] == ["/cases?tag=worse"]
    assert titles(svg)[0] == ("worse: -31.0 points (-49.2 to -13.0), 9 regressed, 0 fixed of 29")


def test_a_difference_that_one_of_many_rows_has_by_chance_is_not_coloured() -> None:
    moved = counts("moved", 50, 8, 1, 0)
    alone = checked(difference_forest([moved], "x"))
    assert marks(alone, "dot")[0].get("class") == "dot worse"
    others = [counts(f"tag {n}", 50, 1, 1, 0) for n in range(30)]
    svg = checked(difference_forest([moved, *others], "x"))
    assert marks(svg, "worse") == []


def test_of_many_rows_those_in_which_most_moved_are_shown() -> None:
    rows = [counts(f"tag {n}", 50, n, 0, 0) for n in range(MAX_DIFFERENCES + 5)]
    chart = difference_forest(rows, "x")
    assert "and 5 more, in which less moved" in chart.svg
    assert {row[0] for row in table_of(chart)[1:]} == {f"tag {n}" for n in range(5, 25)}


def test_few_cases_do_not_widen_the_scale_for_the_others() -> None:
    many = counts("many", 500, 4, 2, 10)
    alone = marks(checked(difference_forest([many], "x")), "dot")[0]
    both = checked(difference_forest([many, counts("few", 1, 2, 0, 0)], "x"))
    assert marks(both, "dot")[0].get("cx") == alone.get("cx")


def test_rows_that_are_not_drawn_are_counted_and_in_the_table() -> None:
    rows = [RateRow(f"tag {n}", n, 500, wilson(n, 500)) for n in range(MAX_ROWS + 3)]
    chart = rate_forest(rows, "Pass rate by tag")
    assert "and 3 more, in the table" in chart.svg
    assert len(table_of(chart)) == MAX_ROWS + 4


def test_a_long_name_is_cut_in_the_middle_and_whole_in_the_title() -> None:
    name = "evals/a-long-folder/conversations.eval.yaml"
    svg = checked(difference_forest([counts(name, 9, 0, 0, 0)], "x"))
    assert name not in {text.text for text in svg.iter("text")}
    assert titles(svg)[0].startswith(f"{name}: ")


def test_a_forest_of_twenty_rows_is_small() -> None:
    rows = [counts(f"tag-{n}", 180 + n, n, 20 - n, 12) for n in range(20)]
    assert len(difference_forest(rows, "Difference by tag").svg) < 7000
    assert difference_forest(rows, "x") == difference_forest(rows[::-1], "x")


def test_a_row_without_cases_has_no_dot() -> None:
    chart = rate_forest([RateRow("empty", 0, 0, None)], "Pass rate by tag")
    assert marks(checked(chart), "dot") == []
    assert table_of(chart)[1] == ["empty", "0", "0", "no rate", ""]
