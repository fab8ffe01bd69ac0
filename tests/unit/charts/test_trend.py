"""Trends of rates, costs and durations."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from assay.charts.trend import Amount, TrendPoint, amount_trend, rate_trend
from assay.stats.proportions import wilson
from assay.text import duration, money
from unit.charts.drawn_charts import checked, marks, names, rates, table_of, titles

flags = st.booleans()
keys = st.sampled_from((None, "one", "other"))


def point(
    name: str,
    passed: int,
    key: str | None = "same",
    *,
    is_complete: bool = True,
    is_baseline: bool = False,
) -> TrendPoint:
    rate = wilson(passed, 100)
    assert rate is not None
    return TrendPoint(name, passed, 100, rate, key, is_complete, is_baseline)


@st.composite
def runs_of_a_trend(draw: st.DrawFn) -> TrendPoint:
    traits = (draw(keys), draw(flags), draw(flags))
    return TrendPoint(draw(names), *draw(rates()), *traits, draw(names), draw(names))


@example([point("0123456789abcdef", 50)] * 30)
@given(st.lists(runs_of_a_trend(), max_size=30))
def test_every_run_is_drawn_inside(points: list[TrendPoint]) -> None:
    chart = rate_trend(points, "Pass rate")
    svg = checked(chart)
    assert len(marks(svg, "interval")) == len(points)
    assert len(table_of(chart)) == len(points) + 1
    assert len(marks(svg, "line")) + len(marks(svg, "break")) == max(len(points) - 1, 0)


@given(st.lists(st.tuples(names, st.none() | st.floats(0, 1e9)), max_size=30))
def test_every_amount_is_drawn_inside(found: list[tuple[str, float | None]]) -> None:
    amounts = [Amount(*each) for each in found]
    svg = checked(amount_trend(amounts, "Cost", lambda value: money(min(value, 9999)), 0.0001))
    assert len(marks(svg, "dot")) == sum(amount.value is not None for amount in amounts)


def test_no_line_joins_runs_about_different_questions() -> None:
    runs = [point("a", 90, "one"), point("b", 91, "one"), point("c", 50, "other")]
    chart = rate_trend(runs, "Pass rate")
    svg = checked(chart)
    assert len(marks(svg, "line")) == len(marks(svg, "break")) == 1
    assert "the questions changed: not comparable" in titles(svg)
    assert table_of(chart)[3][4].startswith("the questions changed")


def test_a_run_whose_questions_are_unknown_is_joined_to_any() -> None:
    svg = checked(rate_trend([point("a", 90, "one"), point("b", 91, None)], "Pass rate"))
    assert marks(svg, "break") == []


def test_a_baseline_is_a_step_that_ends_where_the_next_begins() -> None:
    runs = [point("a", 90, is_baseline=True), point("b", 91), point("c", 92, is_baseline=True)]
    svg = checked(rate_trend(runs, "Pass rate"))
    assert [title for title in titles(svg) if title.startswith("baseline")] == [
        "baseline c: 92 %",
        "baseline a: 90 %",
    ]
    second, first = (str(mark.get("d")) for mark in marks(svg, "limit"))
    assert first.rpartition("H")[2] == second.removeprefix("M").split()[0]


def test_a_baseline_ends_where_the_questions_change() -> None:
    runs = [point("a", 90, "one", is_baseline=True), point("b", 50, "other")]
    svg = checked(rate_trend(runs, "Pass rate"))
    (limit,), (change,) = marks(svg, "limit"), marks(svg, "break")
    assert str(limit.get("d")).rpartition("H")[2] == str(change.get("d"))[1:].split()[0]


def test_an_incomplete_run_is_hollow() -> None:
    chart = rate_trend([point("a", 90), point("b", 91, is_complete=False)], "Pass rate")
    svg = checked(chart)
    assert len(marks(svg, "dot")) == len(marks(svg, "hollow")) == 1
    assert table_of(chart)[2] == ["b", "91", "100", "91 % (83.8 to 95.2)", "incomplete"]


def test_the_last_run_is_always_named() -> None:
    svg = checked(rate_trend([point(f"run-{n}", n) for n in range(20)], "Pass rate"))
    assert "run-19" in {text.text for text in svg.iter("text")}


def test_an_amount_that_is_not_known_leaves_a_gap() -> None:
    runs = [Amount("a", 100.0), Amount("b", None), Amount("c", 2500.0, "/runs/c")]
    chart = amount_trend(runs, "Duration", duration)
    svg = checked(chart)
    assert marks(svg, "line") == []
    assert [row[1] for row in table_of(chart)[1:]] == ["100 ms", "not known", "2.5 s"]
    assert [link.get("href") for link in svg.iter("a")] == ["/runs/c"]
