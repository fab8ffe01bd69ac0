"""The comparison of several targets: pairs, the best set, and the cases that differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assay.comparison import group_table
from assay.comparison.decision import decide
from assay.comparison.groups import GroupRun, compare_group
from assay.comparison.tally import compare, fold
from assay.model.group import GroupComparison
from assay.stats.paired import Pairs, holm
from unit.group_runs import facts, group_run

letters = st.text("PFES", min_size=5, max_size=40)


def of(**runs: str) -> GroupComparison:
    return compare_group("g", [group_run(name, found) for name, found in runs.items()])


def best(found: GroupComparison) -> list[str]:
    return [target.target for target in found.best]


def test_a_target_that_another_beats_is_not_among_the_best() -> None:
    found = of(good="P" * 100, fair="P" * 98 + "FF", bad="P" * 60 + "F" * 40)
    assert best(found) == ["good", "fair"]
    assert [pair.better for pair in found.pairs] == [None, "good", "fair"]
    assert [(pair.a, pair.b) for pair in found.pairs] == [
        ("good", "fair"),
        ("good", "bad"),
        ("fair", "bad"),
    ]


def test_p_values_are_adjusted_for_the_number_of_pairs() -> None:
    """Six lost cases are significant in one pair, and not in three."""
    two = of(a="P" * 20, b="P" * 14 + "F" * 6)
    three = of(a="P" * 20, b="P" * 14 + "F" * 6, c="P" * 20)
    assert best(two) == ["a"]
    assert best(three) == ["a", "b", "c"]
    p_values = [pair.p_value for pair in three.pairs]
    assert [pair.adjusted for pair in three.pairs] == holm([p for p in p_values if p is not None])


@given(st.lists(letters, min_size=2, max_size=4))
def test_a_pair_is_what_comparing_its_two_runs_gives(runs: list[str]) -> None:
    group = [group_run(f"t{index}", found) for index, found in enumerate(runs)]
    found = compare_group("g", group)
    by_name = {run.target: run for run in group}
    for pair in found.pairs:
        alone = compare(fold(by_name[pair.a].facts), fold(by_name[pair.b].facts))
        assert (pair.pairs, pair.difference) == (alone.pairs, alone.difference)
        assert pair.p_value == (alone.test.p_value if alone.test else None)


@given(letters, st.integers(1, 5))
def test_identical_answers_leave_every_target_with_a_verdict_in_the_best_set(
    run: str, targets: int
) -> None:
    found = compare_group("g", [group_run(f"t{index}", run) for index in range(targets)])
    assert best(found) == [t.target for t in found.targets if t.judged]
    assert found.differing == ()


def test_clusters_count_as_in_a_comparison_of_two_runs() -> None:
    """Ten lost cases of one cluster are one observation."""
    runs = [
        group_run("a", "P" * 40, clusters="x" * 10 + "abcdefghijklmnopqrstuvwABCDEFG"),
        group_run("b", "F" * 10 + "P" * 30, clusters="x" * 10 + "abcdefghijklmnopqrstuvwABCDEFG"),
    ]
    (pair,) = compare_group("g", runs).pairs
    alone = compare(fold(runs[0].facts), fold(runs[1].facts))
    assert alone.test is not None
    assert (pair.test, pair.p_value) == ("student-t-clustered", alone.test.p_value)
    assert pair.difference == alone.difference
    assert pair.better is None
    plain = decide(Pairs(30, 10, 0, 0), 0.0).test
    assert plain is not None
    assert plain.value < 0.05


def test_repeats_count_as_one_case_and_show_in_the_cells() -> None:
    stable = GroupRun("1", "stable", [facts(0, "P", repeat=i) for i in range(3)])
    flaky = GroupRun("2", "flaky", [facts(0, "PPF"[i], repeat=i) for i in range(3)])
    found = compare_group("g", [stable, flaky])
    (case,) = found.differing
    assert [(cell.passes, cell.judged) for cell in case.cells if cell] == [(3, 3), (2, 3)]
    assert found.cases == found.pairs[0].pairs == 1
    assert any("1 case asked several times" in note for note in found.notes)


def test_cases_that_tell_the_most_targets_apart_come_first() -> None:
    found = of(a="PPP", b="PFP", c="PFP", d="PFF")
    assert [case.id for case in found.differing] == ["case-1", "case-2"]
    even = of(a="PP", b="PP", c="PF", d="FF")
    assert [case.id for case in even.differing] == ["case-1", "case-0"]


def test_only_the_first_differing_cases_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_table, "MAX_DIFFERING", 2)
    found = of(a="PPPPP", b="FFFFF", c="PPPFF")
    assert found.differing_count == 5
    assert [case.id for case in found.differing] == ["case-0", "case-1"]


def test_cases_that_changed_between_the_runs_are_not_compared() -> None:
    old = GroupRun("1", "a", [facts(0, "P"), facts(1, "P", key="old")])
    new = GroupRun("2", "b", [facts(0, "P"), facts(1, "F", key="new")])
    found = compare_group("g", [old, new])
    assert [case.id for case in found.not_comparable] == ["case-1"]
    assert (found.pairs[0].pairs, found.compared, found.differing) == (1, 1, ())
    assert any("changed between the runs" in note for note in found.notes)


def test_a_pair_that_compares_is_used_even_if_a_third_target_has_another_version() -> None:
    runs = [GroupRun(name, name, [facts(0, "P", key=key)]) for name, key in ("ax", "bx", "cy")]
    pairs = compare_group("g", runs).pairs
    assert [pair.pairs for pair in pairs] == [1, 0, 0]


def test_errored_cases_are_in_no_pair_and_a_target_with_nothing_else_is_not_best() -> None:
    found = of(a="PPPE", b="EEEE")
    assert best(found) == ["a"]
    assert found.pairs[0].pairs == 0
    assert found.pairs[0].p_value is None
    assert found.pairs[0].difference is None
    assert [target.errored for target in found.targets] == [1, 4]
    assert any("b has no judged case" in note for note in found.notes)


def test_a_partial_run_is_compared_over_the_cases_it_has() -> None:
    runs = [group_run("a", "PP", partial="it is interrupted"), group_run("b", "PPFF")]
    found = compare_group("g", [*runs, group_run("c", "PPPP")])
    assert (found.cases, found.compared) == (4, 2)
    assert [pair.pairs for pair in found.pairs] == [2, 2, 4]
    assert "the run of a is partial: it is interrupted" in found.notes
    assert [case.cells[0] for case in found.differing] == [None, None]


def test_a_target_has_its_rate_its_cost_and_its_latency() -> None:
    trials = [
        facts(place, "P", duration_ms=place + 1.0, cost_usd=0.5 if place else None)
        for place in range(100)
    ]
    (target,) = compare_group("g", [GroupRun("1", "a", [*trials, facts(100, "F")])]).targets
    assert (target.passed, target.judged) == (100, 101)
    assert target.cost_usd == 49.5
    assert target.p50_ms == 50.0
    assert target.p95_ms == pytest.approx(95.0)
    assert target.rate is not None
    assert target.rate.method == "wilson"


def test_the_highest_rate_is_also_given_shrunken() -> None:
    found = of(
        a="P" * 80 + "F" * 20, b="F" * 20 + "P" * 78 + "FF", c="P" * 40 + "F" * 22 + "P" * 38
    )
    shrunken = {target.target: target.shrunken for target in found.targets}
    assert len(set(shrunken.values())) == 1  # all of the differences may be chance
    (note,) = (note for note in found.notes if "too high on average" in note)
    assert note.endswith("corrected for that, the pass rate of a is 78.7 %, not 80 %")


def test_all_targets_with_the_highest_rate_are_named() -> None:
    found = of(a="PPPPF" * 8, b="PPFFF" * 8, c="PPPPF" * 8)
    (note,) = (note for note in found.notes if "too high on average" in note)
    assert "the pass rate of a and c is " in note


def test_a_rate_that_shrinks_by_less_than_is_shown_has_no_note() -> None:
    assert not [note for note in of(a="PPPP", b="PPPP").notes if "too high" in note]


def test_a_case_that_only_some_targets_skipped_is_in_a_note() -> None:
    said = "skipped for some of the targets"
    (note,) = (note for note in of(a="PSSP", b="PSPP").notes if said in note)
    assert note.endswith("so not compared for these: evals/weather.eval.yaml: case-2")
    assert not [note for note in of(a="PSE", b="PSP").notes if said in note]


def test_errored_cases_are_counted_in_a_note() -> None:
    notes = of(a="PPPE", b="PPEE").notes
    assert "a has 1 errored case, which is not compared" in notes
    assert "b has 2 errored cases, which are not compared" in notes


def test_large_differences_shrink_little() -> None:
    found = of(a="P" * 100, b="P" * 50 + "F" * 50, c="F" * 100)
    assert found.targets[0].shrunken == pytest.approx(1.0, abs=0.01)


def test_the_json_has_names_in_camel_case() -> None:
    plain = of(a="PP", b="PF").to_dict()
    assert plain["differingCount"] == 1
    assert plain["targets"][0].keys() >= {"runId", "rate", "costUsd", "p95Ms", "best"}
    assert plain["differing"][0]["cells"][1] == {
        "outcome": "failed",
        "passes": 0,
        "judged": 1,
        "score": 0.0,
    }


def test_the_order_of_the_targets_does_not_change_what_is_found() -> None:
    runs = [group_run("a", "PPPF"), group_run("b", "PFFF"), group_run("c", "FPPP")]
    one, other = compare_group("g", runs), compare_group("g", runs[::-1])
    assert {t.target: t for t in one.targets} == {t.target: t for t in other.targets}
    assert replace(one.pairs[0], difference=None) == replace(
        other.pairs[-1], a="a", b="b", difference=None
    )
