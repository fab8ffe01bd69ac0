"""Repeats are folded, pairs counted, decided on and explained; test_gate.py has the gate."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.comparison.gate import GateRules
from assay.comparison.tally import MAX_SUITES, compare, fold
from assay.model.comparison import CaseOutcome, CaseRef, Comparison, SignificanceTest
from assay.model.run import TrialFacts
from assay.stats.paired import Pairs, newcombe
from unit.case_outcomes import SUITE, Runs, case, ids, run_of, runs_of

MIRRORED = {"regressed": "improved", "improved": "regressed"}


def facts(position: int, repeat: int, outcome: str, **rest: Any) -> TrialFacts:
    fields: dict[str, Any] = {
        "suite": SUITE,
        "case_id": f"case-{position}",
        "score": None,
        "duration_ms": 1.0,
        "cost_usd": None,
        "judge_cost_usd": None,
        "comparability": "k",
        "critical": False,
        "cluster": None,
        "min_pass_rate": 1.0,
        "skipped_assertions": 0,
        "confirms": False,
        "final": True,
    }
    return TrialFacts(position=position, repeat=repeat, **fields | {"outcome": outcome} | rest)


# Folding


@pytest.mark.parametrize(
    ("outcomes", "least", "outcome", "passes", "judged"),
    [
        ("P", 1.0, "passed", 1, 1),
        ("F", 1.0, "failed", 0, 1),
        ("E", 1.0, "errored", 0, 0),
        ("S", 1.0, "skipped", 0, 0),
        ("PPP", 1.0, "passed", 3, 3),
        ("PPF", 1.0, "failed", 2, 3),
        ("PPF", 2 / 3, "passed", 2, 3),
        ("PFF", 2 / 3, "failed", 1, 3),
        ("PEE", 1.0, "passed", 1, 1),
        ("FEP", 0.5, "passed", 1, 2),
        ("EES", 1.0, "errored", 0, 0),
        ("SS", 1.0, "skipped", 0, 0),
        ("PPPPPPPFFF", 0.7, "passed", 7, 10),
    ],
)
def test_repeats_are_one_case(
    outcomes: str, least: float, outcome: str, passes: int, judged: int
) -> None:
    names = {"P": "passed", "F": "failed", "E": "errored", "S": "skipped"}
    trials = [facts(0, i, names[o], min_pass_rate=least) for i, o in enumerate(outcomes)]
    (found,) = fold(trials)
    assert (found.outcome, found.passes, found.judged) == (outcome, passes, judged)


def test_cases_keep_their_order_and_the_fields_for_comparing() -> None:
    trials = [
        facts(0, 0, "passed", score=1.0, critical=True, cluster="x", comparability="one"),
        facts(0, 1, "failed", score=0.5, critical=True, cluster="x", comparability="one"),
        facts(0, 2, "errored", critical=True, cluster="x", comparability="one"),
        facts(3, 0, "passed", score=0.9),
    ]
    assert list(fold(trials)) == [
        CaseOutcome(CaseRef(SUITE, "case-0"), "failed", 1, 2, 0.75, "one", True, "x"),
        CaseOutcome(CaseRef(SUITE, "case-3"), "passed", 1, 1, 0.9, "k", False, None),
    ]


def test_without_trials_there_is_no_case() -> None:
    assert list(fold([])) == []


# Lists


def test_every_case_is_in_its_list() -> None:
    base = [
        *run_of("PFPFPEE"),
        case("changed", key="old"),
        case("gone"),
    ]
    candidate = [
        *run_of("PPFFEPS"),
        case("changed", "failed", key="new"),
        case("new"),
    ]
    found = compare(base, candidate, names=("one", "two"))
    assert (found.base, found.candidate, found.pairs) == ("one", "two", 4)
    assert ids(found.regressions) == ["case-2"]
    assert ids(found.new_passes) == ["case-1"]
    assert ids(found.unjudged) == ["case-4", "case-5", "case-6"]
    assert ids(found.not_comparable) == ["changed"]
    assert ids(found.added) == ["new"]
    assert ids(found.removed) == ["gone"]


def test_cases_that_one_run_skipped_are_noted_and_in_no_list() -> None:
    found = compare(run_of("PPFSS"), run_of("PSSPS"))
    assert found.pairs == 1
    assert [name for name, refs in found.lists.items() if refs] == []
    listed = ", ".join(f"{SUITE}: case-{n}" for n in (1, 2, 3))
    assert found.notes == (f"skipped in one of the runs, so not compared: {listed}",)
    many = compare(run_of("P" * 15), run_of("P" + "S" * 14))
    assert many.notes[0].endswith("case-10 and 4 more")


def test_runs_with_skipped_cases_only_have_nothing_to_compare() -> None:
    found = compare(run_of("SS"), run_of("SP"))
    assert found.decision == "not_comparable"
    assert "no case that can be compared: 2 skipped." in found.explanation


@pytest.mark.parametrize(("before", "now"), [("", "b"), ("a", ""), ("", "")])
def test_a_key_that_is_not_known_counts_as_the_same(before: str, now: str) -> None:
    found = compare([case("a", key=before)], [case("a", "failed", key=now)])
    assert (ids(found.regressions), found.not_comparable) == (["a"], ())


def test_a_changed_case_is_never_a_regression() -> None:
    found = compare([case("a", key="old")], [case("a", "failed", key="new", critical=True)])
    assert (found.regressions, found.losses) == ((), ())
    assert (found.decision, found.pairs, found.difference) == ("not_comparable", 0, None)


def test_flaky_cases_passed_and_failed_in_one_run() -> None:
    base = [case("a", trials=(3, 3)), case("b", "failed", trials=(1, 3)), case("c", trials=(2, 2))]
    candidate = [
        case("a", "failed", trials=(2, 3)),
        case("b", "failed", trials=(0, 3)),
        case("c", trials=(2, 2)),
    ]
    found = compare(base, candidate)
    assert ids(found.flaky) == ["a", "b"]
    assert found.notes == (
        "cases that were asked several times: 3; each counts once, as passed when enough of its"
        " trials passed",
    )


# The decision, row by row


def decision(both: int, lost: int, gained: int, neither: int, **rules: Any) -> Comparison:
    return compare(*runs_of(both, lost, gained, neither), GateRules(**rules))


def test_no_comparable_pair() -> None:
    assert compare([], []).decision == "not_comparable"
    assert compare(run_of("P"), run_of("P", start=1)).decision == "not_comparable"
    assert compare(run_of("E"), run_of("P")).decision == "not_comparable"


def test_no_discordant_pair_is_unchanged_however_few() -> None:
    found = decision(1, 0, 0, 0)
    assert (found.decision, found.exit_code) == ("unchanged", 0)
    assert found.test == SignificanceTest("mcnemar-exact", 1.0, (0, 0))


@pytest.mark.parametrize(("lost", "gained", "word"), [(6, 0, "regressed"), (0, 6, "improved")])
def test_below_a_twentieth_it_is_more_than_chance(lost: int, gained: int, word: str) -> None:
    found = decision(20, lost, gained, 4)
    assert found.decision == word
    assert found.test is not None
    assert found.test.p_value == 0.03125


def test_five_of_five_may_be_chance() -> None:
    found = decision(20, 5, 0, 0)
    assert found.decision == "inconclusive"
    assert found.test is not None
    assert found.test.p_value == 0.0625


@pytest.mark.parametrize(
    ("lost", "gained", "method"), [(25, 24, "mcnemar-exact"), (25, 25, "mcnemar-corrected")]
)
def test_from_50_discordant_pairs_on_the_test_is_chi_square(
    lost: int, gained: int, method: str
) -> None:
    found = decision(1000, lost, gained, 0)
    assert found.test is not None
    assert found.test.name == method


def test_an_interval_within_the_margin_is_unchanged() -> None:
    found = decision(9900, 10, 12, 78)
    assert found.difference is not None
    assert -0.02 <= found.difference.low <= found.difference.high <= 0.02
    assert found.decision == "unchanged"
    assert decision(9900, 10, 12, 78, margin=0.0001).decision == "inconclusive"


def test_the_difference_is_newcombes() -> None:
    found, wanted = decision(30, 8, 3, 9), newcombe(Pairs(30, 8, 3, 9))
    assert wanted is not None
    assert found.difference == wanted


def test_significant_wins_over_the_margin() -> None:
    """A difference that is certain is reported, even when it is small."""
    found = decision(9_900, 30, 5, 65)
    assert found.difference is not None
    assert found.difference.low > -0.02
    assert found.decision == "regressed"


def test_identical_runs_are_unchanged() -> None:
    run = run_of("PPFPEFPSPP")
    found = compare(run, run, GateRules(strict=True))
    assert (found.decision, found.exit_code, found.gate_failures) == ("unchanged", 0, ())


counts = st.integers(0, 40)


@given(counts, counts, counts, counts, st.floats(0, 0.2))
def test_worse_one_way_is_better_the_other(
    both: int, lost: int, gained: int, neither: int, margin: float
) -> None:
    base, candidate = runs_of(both, lost, gained, neither)
    there = compare(base, candidate, GateRules(margin=margin))
    back = compare(candidate, base, GateRules(margin=margin))
    assert back.decision == MIRRORED.get(there.decision, there.decision)
    assert back.regressions == there.new_passes
    assert back.pairs == there.pairs


# Clusters


def clustered(lost: int, clusters: int) -> Runs:
    """So many lost passes, all in one cluster, and 20 cases in each of the others."""
    names = [*["bad"] * lost, *(f"c{i}" for i in range(clusters - 1) for _ in range(20))]
    base = [case(str(i), cluster=name) for i, name in enumerate(names)]
    return base, [b._replace(outcome="failed", passes=0) if b.cluster == "bad" else b for b in base]


def test_a_cluster_that_moves_together_is_one_event() -> None:
    base, candidate = clustered(8, 25)
    bare = compare(*runs_of(480, 8, 0, 0))
    assert bare.decision == "regressed"
    found = compare(base, candidate)
    assert found.decision == "inconclusive"
    assert found.test is not None
    assert found.difference is not None
    assert found.test.name == "student-t-clustered"
    assert found.difference.method == "newcombe-clustered"
    assert found.notes == ()
    plain = bare.difference
    assert plain is not None
    assert found.difference.low <= plain.low < plain.high <= found.difference.high


def test_few_clusters_are_warned_of() -> None:
    found = compare(*clustered(3, 5))
    assert found.notes == (
        "the cases fall into 5 clusters; with fewer than 20 the interval is unreliable",
    )


def test_one_cluster_says_nothing() -> None:
    base = [case(str(i), cluster="x") for i in range(10)]
    candidate = [c._replace(outcome="failed", passes=0) for c in base[:9]] + base[9:]
    found = compare(base, candidate)
    assert found.decision == "inconclusive"
    assert found.difference is not None
    assert (found.difference.low, found.difference.high) == (-1.0, 1.0)


def test_cases_without_a_cluster_are_clusters_of_their_own() -> None:
    base, candidate = runs_of(60, 10, 0, 0)
    base[-1], candidate[-1] = (run[-1]._replace(cluster="x") for run in (base, candidate))
    found = compare(base, candidate)
    assert (found.decision, found.notes) == ("regressed", ())


# Scores


def scored(scores: list[float], suite: str = SUITE) -> list[CaseOutcome]:
    return [case(str(i), suite=suite, score=score) for i, score in enumerate(scores)]


def test_graded_scores_are_compared_too() -> None:
    base, candidate = scored([0.8, 0.9, 1.0] * 8), scored([0.7, 0.8, 0.9] * 8)
    found = compare(base, candidate)
    (score,) = found.scores
    assert found.decision == "unchanged"
    assert score.suite == SUITE
    assert score.pairs == 24
    assert score.difference.estimate == pytest.approx(-0.1)
    assert score.test.method == "permutation"
    assert score.test.adjusted == score.test.value < 0.05
    assert found.exit_code == 0


def test_from_200_pairs_on_scores_are_tested_by_t() -> None:
    (score,) = compare(scored([0.5, 0.7] * 100), scored([0.6, 0.6] * 100)).scores
    assert score.test.method == "paired-t"


def test_scores_of_several_suites_are_adjusted_among_themselves() -> None:
    base = scored([0.5, 0.6, 0.7] * 2, "one.yaml") + scored([0.5, 0.6, 0.7], "two.yaml")
    candidate = scored([0.6, 0.7, 0.8] * 2, "one.yaml") + scored([0.5, 0.7, 0.6], "two.yaml")
    one, two = compare(base, candidate).scores
    assert (one.suite, two.suite) == ("one.yaml", "two.yaml")
    assert one.test.adjusted == pytest.approx(2 * one.test.value)


def test_scores_of_very_many_suites_are_compared_together() -> None:
    suites = [f"{i}.yaml" for i in range(MAX_SUITES + 1)]
    base = [case("a", suite=suite, score=0.5) for suite in suites]
    (score,) = compare(base, [c._replace(score=0.6) for c in base]).scores
    assert (score.suite, score.pairs) == ("", MAX_SUITES + 1)


@pytest.mark.parametrize(("before", "now"), [([1.0, 0.0], [0.5, 0.5]), ([0.5, 0.5], [1.0, 0.0])])
def test_scores_that_only_say_pass_or_fail_are_not(before: list[float], now: list[float]) -> None:
    assert compare(scored(before), scored(now)).scores == ()


# Words


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            (30, 12, 5, 3),
            "Too early to tell: 17 of 50 cases changed, 12 for the worse and 5 for the better,"
            " and two equally good runs differ by as much in about 14 of 100 comparisons. About 93"
            " more cases like these would settle it.",
        ),
        (
            (50, 0, 0, 0),
            "Nothing changed: 50 cases had the same outcome in both runs. Judging by this many"
            " cases, the difference lies between -7.1 and +7.1 points.",
        ),
        (
            (20, 6, 0, 4),
            "The candidate is worse: of 30 cases, 6 stopped passing and 0 started to, from 86.7 %"
            " to 66.7 %. This is unlikely to be luck: two equally good runs differ by as much in"
            " about 31 of 1,000 comparisons.",
        ),
        (
            (20, 0, 60, 20),
            "The candidate is better: of 100 cases, 0 stopped passing and 60 started to, from"
            " 20 % to 80 %. This is unlikely to be luck: two equally good runs differ by as"
            " much in fewer than 1 of 1,000 comparisons.",
        ),
        (
            (9900, 10, 12, 78),
            "Nothing that matters changed: 22 of 10,000 cases changed, 10 for the worse and 12 for"
            " the better. The difference lies between -0.1 and +0.1 points, which is within the"
            " margin of 2 points.",
        ),
        (
            (0, 0, 0, 0),
            "The runs have no case that can be compared, as neither has a case. Run the cases of"
            " the base again with the candidate to learn more.",
        ),
    ],
)
def test_the_explanation_is_two_plain_sentences(
    counts: tuple[int, int, int, int], words: str
) -> None:
    assert decision(*counts).explanation == words


def test_cases_that_cannot_be_compared_are_counted_by_reason() -> None:
    base = [case("a"), case("b", key="old"), case("c", "errored")]
    candidate = [case("b", key="new"), case("c"), case("d")]
    assert compare(base, candidate).explanation.startswith(
        "The runs have no case that can be compared: 1 new, 1 gone, 1 changed since, 1 not judged."
    )


def test_evenly_split_changes_are_settled_by_the_margin() -> None:
    found = decision(30, 5, 5, 10)
    assert "differ by as much in nearly all comparisons" in found.explanation
    assert "About 1,900 more cases like these would settle it." in found.explanation
    assert decision(1, 1, 1, 0, margin=0).explanation.endswith(
        "No realistic number of cases would settle it: the runs are too much alike."
    )


def test_more_cases_do_settle_it() -> None:
    """As many more cases as it says, of the same kind, do decide in most worlds."""
    found = decision(30, 12, 5, 3)
    factor = (50 + 93) / 50
    scaled = [round(part * factor) for part in (30, 12, 5, 3)]
    assert found.decision == "inconclusive"
    assert decision(*scaled).decision == "regressed"


# JSON


def test_json_names_the_cases_of_each_suite() -> None:
    base = [case("a", suite="one.yaml"), case("a", suite="two.yaml"), case("b", suite="two.yaml")]
    candidate = [c._replace(outcome="failed", passes=0) for c in base[:2]]
    document = compare(base, candidate).to_dict()
    assert document["regressions"] == ["a", "a"]
    assert [(loss["suite"], loss["id"]) for loss in document["losses"]] == [
        ("one.yaml", "a"),
        ("two.yaml", "a"),
    ]
    assert document["suites"] == {
        "one.yaml": {"regressions": ["a"]},
        "two.yaml": {"regressions": ["a"], "removed": ["b"]},
    }
    assert document["exitCode"] == 0
