"""The gate: losses, re-asks, the four conditions, accepted losses, and the words for them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.comparison.gate import GateRules, repeats_by_chance
from assay.comparison.tally import compare, fold
from assay.errors import UnknownName, UsageError
from assay.model.accepted import AcceptedLoss
from assay.model.comparison import CaseOutcome, Comparison, Reasks
from assay.model.run import TrialFacts
from assay.stats.sequential import Sequential
from unit.case_outcomes import SUITE, case, ids, run_of, runs_of


def lost(
    *reasks: tuple[int, ...], critical: bool = False, both: int = 30, **rules: Any
) -> Comparison:
    """The comparison of runs in which a case is lost for each entry, with these re-asks."""
    base, candidate = run_of("P" * both), run_of("P" * both)
    for number, made in enumerate(reasks):
        base.append(case(f"lost-{number}", critical=critical))
        candidate.append(case(f"lost-{number}", "failed", critical=critical, reasks=made))
    return compare(base, candidate, GateRules(**rules))


def statuses(found: Comparison) -> list[str]:
    return [loss.status for loss in found.losses]


# What re-asks show


def test_reasks_are_not_repeats() -> None:
    fields: dict[str, Any] = dict.fromkeys(("score", "cost_usd", "judge_cost_usd", "cluster"))
    fields |= {"position": 0, "suite": SUITE, "case_id": "a", "duration_ms": 1.0, "final": True}
    fields |= {"comparability": "k", "critical": False, "min_pass_rate": 1.0}
    fields |= {"skipped_assertions": 0}
    outcomes = ("failed", "passed", "failed", "errored")
    trials = [
        TrialFacts(repeat=i, outcome=outcome, confirms=i > 0, **fields)  # type: ignore[arg-type]
        for i, outcome in enumerate(outcomes)
    ]
    (found,) = fold(trials)
    assert (found.outcome, found.passes, found.judged) == ("failed", 0, 1)
    assert found.reasks == Reasks(passed=1, failed=1, errored=1)


@pytest.mark.parametrize(
    ("reasks", "critical", "status"),
    [
        ((), False, "unconfirmed"),
        ((), True, "unconfirmed"),
        ((0, 5, 0), False, "repeated"),
        ((1, 0, 0), False, "excused"),
        ((1, 4, 0), False, "excused"),
        ((1, 0, 4), False, "excused"),
        ((0, 4, 1), False, "unconfirmed"),
        ((0, 0, 1), False, "unconfirmed"),
        ((3, 2, 0), True, "excused"),
        ((2, 3, 0), True, "repeated"),
        ((0, 3, 0), True, "repeated"),
        ((1, 1, 0), True, "repeated"),
        ((3, 0, 2), True, "excused"),
        ((2, 1, 2), True, "unconfirmed"),
        ((0, 3, 2), True, "repeated"),
        ((0, 2, 3), True, "unconfirmed"),
    ],
)
def test_status_of_a_loss(reasks: tuple[int, ...], critical: bool, status: str) -> None:
    assert statuses(lost(reasks, critical=critical)) == [status]


@pytest.mark.parametrize(
    ("trials", "critical", "status"),
    [
        ((1, 3), False, "excused"),
        ((0, 3), False, "unconfirmed"),
        ((2, 3), True, "excused"),
        ((1, 3), True, "unconfirmed"),
        ((1, 2), True, "unconfirmed"),
    ],
)
def test_passing_repeats_excuse_a_loss(
    trials: tuple[int, int], critical: bool, status: str
) -> None:
    base = [case("a", trials=(3, 3), critical=critical)]
    found = compare(base, [case("a", "failed", trials=trials, critical=critical)])
    assert statuses(found) == [status]


@given(
    st.lists(st.sampled_from(["passed", "failed", "errored"]), min_size=1, max_size=9),
    st.booleans(),
)
def test_settled_reasks_would_not_change_with_more(outcomes: list[Any], critical: bool) -> None:
    """Stopping early gives the status that all re-asks would have given."""
    times = len(outcomes)
    for made in range(times + 1):
        if Reasks.of(outcomes[:made]).settle(times, critical=critical):
            early, whole = Reasks.of(outcomes[:made]), Reasks.of(outcomes)
            assert early.excuse(critical=critical) == whole.excuse(critical=critical)
            if not early.excuse(critical=critical):
                assert early.repeat(critical=critical)
            return


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ({}, "not confirmed; not asked again"),
        ({"reasks": (0, 5, 0)}, "the failure repeats; 0 of 5 re-asks passed"),
        ({"reasks": (1, 0, 0)}, "flaky, so excused; 1 of 1 re-ask passed"),
        ({"reasks": (0, 2, 1)}, "not confirmed; 0 of 2 re-asks passed, 1 could not be judged"),
        ({"trials": (2, 3)}, "flaky, so excused; 2 of 3 trials passed"),
        (
            {"reasks": (1, 3, 0), "critical": True},
            "the failure repeats; 1 of 4 re-asks passed (critical: more than half must pass)",
        ),
    ],
)
def test_each_loss_has_a_reason(loss: dict[str, Any], reason: str) -> None:
    (found,) = compare([case("a")], [case("a", "failed", **loss)]).losses
    assert found.reason == f"passed before, fails now: {reason}"


# The verdict


def test_one_repeated_loss_fails_an_agent_that_repeats_itself() -> None:
    found = lost((0, 5, 0))
    assert (found.verdict, found.exit_code) == ("failed", 1)
    assert found.gate_failures == ("1 lost case failed every re-ask",)


def test_excused_losses_alone_pass() -> None:
    found = lost((1, 0, 0), (1, 2, 0))
    assert (found.verdict, found.exit_code, found.undecided) == ("passed", 0, ())


@pytest.mark.parametrize(
    ("repeated", "excused", "verdict"),
    [
        (1, 1, "inconclusive"),
        (2, 1, "failed"),
        (1, 3, "inconclusive"),
        (2, 2, "inconclusive"),
        (3, 2, "failed"),
    ],
)
def test_repeats_next_to_excused_losses_may_be_chance(
    repeated: int, excused: int, verdict: str
) -> None:
    # As many cases got better, so that the paired test says nothing.
    base = [*run_of("F" * 10), *(case(f"l{i}") for i in range(repeated + excused))]
    made = [(0, 5, 0)] * repeated + [(1, 0, 0)] * excused
    now = [*run_of("P" * 10), *(case(f"l{i}", "failed", reasks=m) for i, m in enumerate(made))]
    found = compare(base, now)
    assert found.verdict == verdict
    assert (repeats_by_chance(repeated, excused) < 0.05) == (verdict == "failed")


def test_chance_of_repeats() -> None:
    assert repeats_by_chance(1, 1) == pytest.approx(1 - (7 / 8) ** 2)
    assert repeats_by_chance(2, 1) == pytest.approx(3 * 7 / 8**3 + 1 / 8**3)
    assert repeats_by_chance(1, 0) == 0.0


@pytest.mark.parametrize(("losses", "code"), [(4, 0), (5, 1)])
def test_five_losses_without_a_gain_fail_by_the_one_sided_test(losses: int, code: int) -> None:
    found = compare(*runs_of(20, losses, 0, 0))
    assert found.exit_code == code
    assert found.worse is not None
    assert found.worse.p_value == 0.5**losses
    assert found.is_worse == bool(code)
    if code:
        assert found.gate_failures == (
            "the pass rate fell: of 25 cases, 5 stopped passing and 0 started to, from 100 % to"
            " 80 %",
        )


def test_many_discordant_pairs_use_the_normal_approximation() -> None:
    found = compare(*runs_of(1000, 40, 20, 0))
    assert found.worse is not None
    assert found.worse.name == "mcnemar-corrected-worse"
    assert found.worse.p_value == pytest.approx(0.0070857, abs=1e-7)
    better = compare(*runs_of(1000, 20, 40, 0)).worse
    assert better is not None
    assert better.p_value > 0.99


def test_clusters_use_the_larger_p() -> None:
    """Losses of one cluster are one event."""
    names = [*["bad"] * 8, *(f"c{i}" for i in range(24) for _ in range(20))]
    base = [case(str(i), cluster=name) for i, name in enumerate(names)]
    now = [b._replace(outcome="failed", passes=0) if b.cluster == "bad" else b for b in base]
    found = compare(base, now)
    assert found.worse is not None
    assert found.worse.name == "student-t-clustered-worse"
    assert found.worse.p_value > 0.05
    assert found.verdict == "inconclusive"
    assert compare(*runs_of(480, 8, 0, 0)).verdict == "failed"


def test_sequential_test_replaces_the_paired_test() -> None:
    base, candidate = runs_of(20, 5, 0, 0)
    test = Sequential()
    undecided = compare(base, candidate, GateRules(sequential=test.after(True, False)))
    assert undecided.verdict == "inconclusive"
    assert undecided.worse is not None
    assert (undecided.worse.name, undecided.is_worse) == ("e-process", False)
    for _ in range(12):
        test = test.after(True, False)
    assert test.verdict == "regressed"
    assert compare(base, candidate, GateRules(sequential=test)).verdict == "failed"


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        ((2, 2), (0, 2), 1),
        ((3, 3), (0, 2), 1),
        ((1, 1), (0, 3), 0),
        ((3, 3), (0, 1), 0),
        ((3, 3), (1, 3), 0),
        ((2, 3), (0, 3), 0),
    ],
)
def test_a_flip_of_all_repeats_fails(
    before: tuple[int, int], now: tuple[int, int], code: int
) -> None:
    found = compare([case("a", trials=before)], [case("a", "failed", trials=now)])
    assert found.exit_code == code
    wanted = "1 case passed every trial before and none now"
    assert found.gate_failures == ((wanted,) if code else ())


def test_an_excused_flip_does_not_fail() -> None:
    now = case("a", "failed", trials=(0, 3), reasks=(1, 0, 0))
    assert compare([case("a", trials=(3, 3))], [now]).verdict == "passed"


def test_a_flip_that_flaky_cases_explain_does_not_fail() -> None:
    flaky = [case(f"f{i}", "failed", trials=(1, 2)) for i in range(3)]
    base = [case("a", trials=(2, 2)), *flaky]
    candidate = [case("a", "failed", trials=(0, 2)), *flaky]
    found = compare(base, candidate)
    assert (found.verdict, found.gate_failures) == ("inconclusive", ())
    assert any("as the flaky cases explain" in note for note in found.notes)
    flips = [case(f"b{i}", trials=(2, 2)) for i in range(3)]
    more = [case(f"b{i}", "failed", trials=(0, 2)) for i in range(3)]
    assert compare([*base, *flips], [*candidate, *more]).verdict == "failed"


@pytest.mark.parametrize(
    ("reasks", "verdict", "code"),
    [
        ((), "failed", 1),
        ((0, 3, 0), "failed", 1),
        ((2, 3, 0), "failed", 1),
        ((3, 1, 0), "passed", 0),
        ((0, 0, 1), "inconclusive", 3),
        ((1, 1, 3), "inconclusive", 3),
    ],
)
def test_critical_losses(reasks: tuple[int, ...], verdict: str, code: int) -> None:
    found = lost(reasks, critical=True)
    assert (found.verdict, found.exit_code) == (verdict, code)
    if code == 1:
        assert found.gate_failures[0] == "1 critical case passed before and fails now"


def test_a_failed_gate_wins_over_an_unconfirmed_critical_loss() -> None:
    base = [case("a", critical=True), case("b"), *run_of("PP")]
    now = [case("a", "failed", critical=True, reasks=(0, 0, 1))]
    now += [case("b", "failed", reasks=(0, 5, 0)), *run_of("PP")]
    assert compare(base, now).exit_code == 1


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 4)])
def test_inconclusive_is_exit_code_4_only_with_strict(strict: bool, code: int) -> None:
    found = lost((), strict=strict)
    assert (found.verdict, found.exit_code) == ("inconclusive", code)
    nothing = compare([], [], GateRules(strict=strict))
    assert (nothing.verdict, nothing.exit_code) == ("inconclusive", code)
    assert nothing.undecided == ("no case can be compared with the baseline",)


def test_strict_follows_the_verdict_not_the_decision() -> None:
    found = compare(*runs_of(20, 0, 3, 0), GateRules(strict=True))
    assert (found.decision, found.verdict, found.exit_code) == ("inconclusive", "passed", 0)


def test_an_undecided_gate_says_how_to_settle_it() -> None:
    found = lost((), (0, 2, 1), (1, 0, 0))
    untried, unjudged, settle = found.undecided
    assert untried == "1 lost case could not be asked again"
    assert unjudged == "1 lost case could not be confirmed: not every re-ask was judged"
    assert settle.startswith("to settle it: about ")
    assert settle.endswith(" more cases like these, or --repeat 2 in both runs")
    repeated = lost((0, 5, 0), (1, 0, 0))
    assert repeated.undecided[0] == (
        "1 lost case failed every re-ask, but 1 passed again: the agent changes its answers, so"
        " this may be chance"
    )


def test_a_case_that_failed_before_does_not_fail_the_gate() -> None:
    found = compare(*runs_of(0, 0, 0, 10))
    assert (found.verdict, found.exit_code) == ("passed", 0)
    assert len(found.still_failing) == 10


@given(st.integers(0, 30), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_the_verdict_is_consistent(both: int, repeated: int, excused: int, gained: int) -> None:
    base = [*run_of("P" * both), *(case(f"g{i}", "failed") for i in range(gained))]
    now: list[CaseOutcome] = [*run_of("P" * both), *(case(f"g{i}") for i in range(gained))]
    for i in range(repeated + excused):
        base.append(case(f"l{i}"))
        now.append(case(f"l{i}", "failed", reasks=(0, 5, 0) if i < repeated else (1, 0, 0)))
    found = compare(base, now)
    assert (found.verdict == "failed") == bool(found.gate_failures) == (found.exit_code == 1)
    assert (found.verdict == "inconclusive") == bool(found.undecided)
    if repeated and not excused:
        assert found.verdict == "failed"


# Other gates


def test_gate_strict_fails_on_any_loss() -> None:
    found = compare(*runs_of(20, 2, 5, 0), GateRules("strict", strict=True))
    assert found.gate_failures == ("2 cases passed before and fail now",)
    assert found.exit_code == 1
    assert compare(*runs_of(20, 0, 5, 3), GateRules("strict")).verdict == "passed"
    assert lost((1, 0, 0), gate="strict").verdict == "failed"


def test_gate_non_inferiority_needs_proof() -> None:
    rules = GateRules("non-inferiority")
    assert compare(*runs_of(400, 0, 0, 0), rules).exit_code == 0
    few = compare(*runs_of(50, 0, 0, 0), rules)
    assert few.gate_failures == (
        "the pass rate may be lower by more than 2 points: the difference lies between -7.1 and"
        " +7.1 points",
    )
    assert compare(*runs_of(50, 0, 0, 0), GateRules("non-inferiority", 0.1)).exit_code == 0
    # This gate does not look at single cases.
    base, candidate = runs_of(4000, 1, 0, 0)
    assert compare(base, candidate, rules).verdict == "passed"


def test_gate_non_inferiority_fails_when_nothing_can_be_compared() -> None:
    found = compare(run_of("P"), run_of("E"), GateRules("non-inferiority"))
    assert found.gate_failures == (
        "the pass rate may be lower by more than 2 points: no case can be compared",
    )


@pytest.mark.parametrize("gate", ["regression", "strict", "non-inferiority"])
def test_cases_without_a_baseline_must_pass(gate: Any) -> None:
    base, candidate = runs_of(500, 0, 0, 0)
    rules = GateRules(gate)
    assert compare(base, [*candidate, case("new")], rules).exit_code == 0
    assert compare(base, [*candidate, case("new", "errored")], rules).exit_code == 0
    found = compare(base, [*candidate, case("new", "failed")], rules)
    assert found.gate_failures == ("1 new case fails",)
    base = [*base, case("changed", "failed", key="old")]
    found = compare(base, [*candidate, case("changed", "failed", key="new")], rules)
    assert found.gate_failures == ("1 case that changed since the baseline fails",)


def test_a_pass_rate_may_be_enough_for_cases_without_a_baseline() -> None:
    new = [case("a"), case("b", "failed"), case("c", "errored")]
    assert compare(run_of("P"), run_of("P") + new, GateRules(min_pass_rate=0.5)).exit_code == 0
    found = compare(run_of("P"), run_of("P") + new, GateRules(min_pass_rate=0.6))
    assert found.gate_failures == ("1 of 2 cases without a baseline pass, less than 60 %",)


def test_rules_are_checked() -> None:
    with pytest.raises(UnknownName, match="did you mean 'strict'"):
        GateRules("strikt").checked()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"the margin is 2; it must be between 0 and 1"):
        GateRules(margin=2).checked()


# Accepted losses


def accepting(case_name: str, until: str | None = None) -> GateRules:
    entry = AcceptedLoss(case=case_name, reason="the API is gone", until=until)
    return GateRules(accepted=(entry,), today=date(2026, 11, 18))


@pytest.mark.parametrize("name", ["case-1", f"{SUITE}: case-1"])
def test_an_accepted_case_is_not_a_loss(name: str) -> None:
    found = compare(run_of("PP"), run_of("PF"), accepting(name))
    assert (found.verdict, found.losses, ids(found.regressions)) == ("passed", (), ["case-1"])
    assert found.to_dict()["accepted"] == [
        {"suite": SUITE, "id": "case-1", "reason": "the API is gone"}
    ]
    assert found.warnings == ()


def test_an_accepted_case_of_another_suite_is_a_loss() -> None:
    found = compare(run_of("PP"), run_of("PF"), accepting("evals/other.yaml: case-1"))
    assert ids(loss.ref for loss in found.losses) == ["case-1"]


def test_accepted_losses_do_not_count_in_the_test() -> None:
    base, candidate = runs_of(20, 5, 0, 0)
    assert compare(base, candidate).is_worse
    rules = GateRules(accepted=(AcceptedLoss(case="case-20", reason="known"),))
    found = compare(base, candidate, rules)
    assert found.worse is not None
    assert found.worse.p_value == 0.5**4
    assert found.test is not None
    assert found.test.discordant == (5, 0), "the decision is about all cases"


def test_an_accepted_case_may_fail_without_a_baseline() -> None:
    now = [*run_of("P"), case("new", "failed")]
    assert compare(run_of("P"), now).verdict == "failed"
    assert compare(run_of("P"), now, accepting("new")).verdict == "passed"


@pytest.mark.parametrize(
    ("name", "until", "letters", "why"),
    [
        ("case-1", None, "PP", "the case passes"),
        ("gone", None, "PP", "there is no such case"),
        ("case-1", "2026-11-17", "PF", "its date 2026-11-17 has passed, so the loss counts again"),
    ],
)
def test_an_entry_that_no_longer_applies_is_a_warning(
    name: str, until: str | None, letters: str, why: str
) -> None:
    found = compare(run_of("PP"), run_of(letters), accepting(name, until))
    assert found.warnings == (
        f"accepted case {name!r} in the configuration: {why}; remove the entry",
    )
    assert len(found.losses) == letters.count("F")


@pytest.mark.parametrize("second", ["case-1", f"{SUITE}: case-1"])
def test_a_second_entry_for_a_case_is_a_warning(second: str) -> None:
    entries = [AcceptedLoss(case=name, reason=name) for name in ("case-1", second)]
    found = compare(run_of("PP"), run_of("PF"), GateRules(accepted=tuple(entries)))
    assert [case.reason for case in found.accepted] == ["case-1"]
    why = "an earlier entry accepts the case"
    assert found.warnings == (
        f"accepted case {second!r} in the configuration: {why}; remove the entry",
    )


def test_a_secret_in_the_reason_of_an_entry_is_redacted() -> None:
    key = "sk-proj-" + "a1B2" * 10
    entry = AcceptedLoss(case="case-1", reason=f"fails since we use {key}")
    found = compare(run_of("PP"), run_of("PF"), GateRules(accepted=(entry,)))
    assert key not in found.accepted[0].reason
    assert found.accepted[0].reason.startswith("fails since we use ")


def test_an_entry_counts_on_its_last_day() -> None:
    found = compare(run_of("PP"), run_of("PF"), accepting("case-1", "2026-11-18"))
    assert (found.verdict, found.warnings) == ("passed", ())


def test_a_partial_run_does_not_show_that_a_case_is_gone() -> None:
    found = compare(run_of("PP"), run_of("P"), accepting("case-1"), complete=False)
    assert found.warnings == ()


@pytest.mark.parametrize("until", ["tomorrow", "2026-13-01", "20261"])
def test_a_date_must_be_one(until: str) -> None:
    with pytest.raises(ValueError, match="is not a date"):
        AcceptedLoss(case="a", reason="b", until=until)
