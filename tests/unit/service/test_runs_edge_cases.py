"""Runs that end early, compare in part, or get unusual input."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import assay
from assay.comparison.outcomes import find_run, outcomes_of
from assay.errors import ConfigError, EvalFileErrors, NotInStore, UsageError
from assay.model.comparison import Reasks
from assay.model.events import Event, Notice
from assay.service.history import show
from assay.service.runs import RunHooks, RunRequest, execute
from assay.service.store import open_store
from assay.service.test_cases import import_test_cases
from assay.settings import Settings
from assay.stats.planning import one_way_difference, paired_power
from timeouts import WAIT_SECONDS
from unit.numbered_cases import good_but, numbered, write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("assay.yaml").touch()
    return tmp_path


def run(target: Callable[[str], str], **options: Any) -> assay.Run:
    return assay.run("s.eval.jsonl", target=target, **options)


def test_a_run_that_had_nothing_left_to_ask_has_not_given_up() -> None:
    write(*numbered(5))
    found = run(good_but("c2"), max_failures=1, workers=20, min_pass_rate=0.5)
    assert (found.exit_code, found.record.status) == (0, "finished")


def test_a_budget_that_sees_no_cost_is_noted_once() -> None:
    write(*numbered(3))
    note = "its answers do not report a cost"
    assert [note in found for found in run(good_but(), budget_usd=1).notes] == [True]
    assert run(good_but()).notes == ()
    priced = assay.run(
        "s.eval.jsonl", target=lambda _: {"response": "good", "costUsd": 0.1}, budget_usd=1
    )
    assert priced.notes == ()


def test_a_pass_rate_that_nothing_shows_is_not_reached() -> None:
    write({"id": "later", "input": "x", "skip": "waits for the tool"})
    found = run(good_but(), min_pass_rate=0.9)
    assert found.exit_code == 1
    assert found.reasons == ("no case was judged; 90 % must pass",)
    assert run(good_but()).exit_code == run(good_but(), min_pass_rate=0).exit_code == 0


def test_a_share_that_is_missed_narrowly_does_not_look_reached() -> None:
    write(*numbered(3))
    found = run(good_but("c0"), min_pass_rate=0.667)
    assert found.reasons == ("2 of 3 judged cases passed; 66.7 % required",)


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_case_that_need_not_pass_passes_however_often_it_is_asked(repeat: int) -> None:
    write({"id": "c0", "input": "c0", "min_pass_rate": 0, "repeat": repeat})
    found = run(good_but("c0"))
    assert (found.exit_code, found.summary.passed) == (0, 1)
    (case,) = found.suites[0].cases
    assert (case.passed, case.outcome) == (True, "passed")


def test_an_assertion_without_data_is_counted_once_however_often_it_is_asked() -> None:
    write({"id": "c0", "input": "x", "expect": {"responseContains": ["{{seed:none}}", "good"]}})
    found = run(good_but(), repeat=3)
    assert (found.summary.passed, found.summary.skipped_assertions) == (1, 1)
    (case,) = found.suites[0].cases
    assert case.details.skipped_assertions == 1


def test_cases_to_be_skipped_are_skipped_after_giving_up() -> None:
    write(*numbered(4), {"id": "later", "input": "x", "skip": "waits for the tool"})
    found = run(good_but("c0", "c1", "c2", "c3"), max_failures=1, workers=1)
    assert (found.summary.skipped, found.summary.errored) == (1, 3)
    assert found.summary.coverage == 0.25
    assert found.reasons[-1] == f"`assay run --resume {found.id}` continues it"


def test_a_run_that_gave_up_is_compared_as_far_as_it_came() -> None:
    write(*numbered(6))
    base = run(good_but())
    found = run(good_but(*(f"c{i}" for i in range(6))), baseline=base.id, max_failures=2, workers=1)
    assert found.comparison is not None
    assert len(found.comparison.regressions) == 2
    assert len(found.comparison.unjudged) == 4
    assert found.exit_code == 3


def test_cases_that_were_not_selected_are_not_gone() -> None:
    write(*numbered(6))
    base = run(good_but())
    write(*numbered(5))
    found = run(good_but(), baseline=base.id, filter="c1")
    assert found.comparison is not None
    assert [ref.id for ref in found.comparison.removed] == ["c5"]
    assert show().comparison == found.comparison


def test_a_baseline_in_a_file_is_found_again() -> None:
    write(*numbered(2))
    Path("main.json").write_text(run(good_but(), store="sqlite:other.db").report("json"))
    found = run(good_but("c0"), baseline="main.json")
    assert found.comparison is not None
    assert show().comparison == found.comparison
    Path("main.json").write_text(run(good_but(), store="sqlite:other.db").report("json"))
    (note,) = show().notes
    assert "which cannot be read now" in note


def test_losses_that_were_not_confirmed_are_shown_as_such() -> None:
    write(*numbered(3, critical=True))
    base = run(good_but())
    found = run(good_but("c0", "c1", "c2"), baseline=base.id, max_failures=1, workers=1)
    assert found.comparison is not None
    assert (found.exit_code, found.verdict) == (3, "inconclusive")
    assert found.comparison.gate_failures == ()
    assert [loss.status for loss in found.comparison.losses] == ["unconfirmed"]
    assert show(found.id).comparison == found.comparison


@pytest.mark.parametrize(("critical", "code"), [(True, 3), (False, 0)])
def test_a_budget_that_is_spent_during_re_asks_confirms_nothing(critical: bool, code: int) -> None:
    write(*numbered(4, critical=critical))
    base = run(good_but())

    def answer(message: str) -> Any:
        good = message in ("c0", "c1")
        return assay.Observation("good" if good else "bad", cost_usd=0.1)

    found = run(answer, baseline=base.id, budget_usd=0.55, workers=1)
    assert (found.exit_code, found.verdict, found.record.status) == (
        code,
        "inconclusive",
        "finished",
    )
    assert found.comparison is not None
    assert [loss.status for loss in found.comparison.losses] == ["unconfirmed"] * 2
    assert found.notes == ("not every re-ask was made: the budget of $0.55 is spent",)
    assert show(found.id).comparison == found.comparison
    assert "2 lost cases could not be confirmed: not every re-ask was judged" in found.report()


def test_a_re_ask_that_a_spent_budget_prevents_fails_no_gate() -> None:
    write(*numbered(4, critical=True))
    base = run(good_but())

    def answer(message: str) -> Any:
        good = message in ("c0", "c1")
        return assay.Observation("good" if good else "bad", cost_usd=0.1)

    found = run(answer, baseline=base.id, budget_usd=0.45, workers=1, confirm=1)
    assert found.comparison is not None
    assert sorted(loss.status for loss in found.comparison.losses) == ["repeated", "unconfirmed"]
    assert "1 critical case passed before and fails now" in found.comparison.gate_failures[0]


def test_critical_cases_are_asked_after_the_decision() -> None:
    cases = numbered(40)
    cases[39]["critical"] = True
    write(*cases)
    base = run(good_but(*(f"c{i}" for i in range(39))))
    found = run(good_but("c39"), baseline=base.id, stop_when="decided", workers=1)
    assert found.summary.skipped > 0
    assert found.comparison is not None
    assert [loss.ref.id for loss in found.comparison.losses] == ["c39"]
    assert found.exit_code == 1


def test_an_excused_loss_stays_excused() -> None:
    write(*numbered(6, critical=True))
    base, asked = run(good_but()), []

    def flaky(message: str) -> str:
        asked.append(message)
        return "bad" if message == "c3" and asked.count("c3") == 1 else "good"

    found = run(flaky, baseline=base.id)
    assert (found.exit_code, asked.count("c3")) == (0, 4), "three of five must pass"
    assert assay.compare(base, found).exit_code == 0
    Path("found.json").write_text(found.report("json"))
    assert assay.compare(base, "found.json").exit_code == 0


def test_the_latest_run_is_one_with_cases() -> None:
    write(*numbered(2))
    first = run(good_but())
    assert run(good_but(), filter="nobody").exit_code == 5
    with closing(open_store(Settings.find(Path.cwd()))) as store:
        assert find_run("latest", store).id == first.id


def test_options_may_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    write(*numbered(4))
    monkeypatch.setenv("ASSAY_FILTER", "c1,c2")
    monkeypatch.setenv("ASSAY_REPEAT", "2")
    assert run(good_but()).summary.total_cases == 2
    assert run(good_but(), filter="c3").summary.total_cases == 1, "what is given wins"
    monkeypatch.setenv("ASSAY_WORKERS", "0")
    with pytest.raises(UsageError, match="'workers' is 0"):
        run(good_but())


def test_warnings_and_skipped_files_are_reported() -> None:
    write(*numbered(1))
    Path("plain.yaml").write_text("foo: bar\n")
    Path("old.eval.yaml").write_text(
        "cases:\n  - {id: a, input: x, outcome: y, expected_outcome: z, expected_output: good}\n"
    )
    seen: list[Event] = []
    order = RunRequest(["."], target=good_but(), hooks=RunHooks(seen.append))
    asyncio.run(execute(order, {"evaluators": ["equals"]}))
    notices = [event.text for event in seen if isinstance(event, Notice)]
    assert any("skipped plain.yaml (" in text for text in notices)
    assert any("ignored-alias" in text for text in notices)
    with pytest.raises(EvalFileErrors) as refused:
        asyncio.run(execute(order, {"strict": True}))
    assert [problem.code for problem in refused.value.problems] == ["ignored-alias"]


def test_an_invalid_target_is_refused() -> None:
    write(*numbered(1))
    with pytest.raises(UsageError, match="int is not a target"):
        assay.run("s.eval.jsonl", target=42)  # type: ignore[call-overload]


def test_two_targets_of_one_name_are_refused() -> None:
    write(*numbered(1))
    Path("assay.yaml").write_text(
        "targets:\n  - {name: a, provider: echo}\n  - {name: a, provider: echo}\n"
    )
    with pytest.raises(ConfigError, match="two targets are called 'a'"):
        assay.run("s.eval.jsonl", target="a")


@pytest.mark.parametrize("cases", [6, 10, 30, 100])
def test_few_cases_detect_changes_in_one_direction(cases: int) -> None:
    found = one_way_difference(cases)
    assert found is not None
    assert paired_power(cases, found, found, 0.05) >= 0.8 - 1e-6
    assert paired_power(cases, found - 0.01, found - 0.01, 0.05) < 0.8
    assert one_way_difference(4) is None


@pytest.mark.parametrize("reference", ["a\0b", "\ud800", "no\nrun"])
def test_a_reference_that_no_database_can_hold_is_not_there(reference: str) -> None:
    store = open_store(Settings.find(Path.cwd()), "memory:")
    with closing(store), pytest.raises(NotInStore):
        find_run(reference, store)


def replay(*lines: str) -> str:
    Path("seen.jsonl").write_text("".join(line + "\n" for line in lines))
    return "replay:seen.jsonl"


def test_broken_lines_of_a_recording_are_reported_once() -> None:
    write(*numbered(1))
    target = replay("{", '{"id": "c0", "response": "good"}', "[]", '{"response": "good"}')
    found = assay.run("s.eval.jsonl", target=target)
    assert found.passed
    (note,) = found.notes
    assert note.startswith(f"{target}: 3 lines cannot be read; the first: seen.jsonl:1:")
    assert "3 lines cannot be read; the first: seen.jsonl:1:" in found.report()


def test_a_recording_with_very_many_broken_lines_does_not_count_them_all() -> None:
    write(*numbered(1))
    found = assay.run("s.eval.jsonl", target=replay(*["{"] * 1200))
    assert ": more than 1,000 lines cannot be read; the first: seen.jsonl:1:" in found.notes[0]


def test_an_export_matches_the_recorded_trials() -> None:
    write(
        {"id": "flaky", "input": "flaky", "critical": True, "cluster": "k"},
        {"id": "dies", "input": "dies", "cluster": "k", "min_pass_rate": 0.5},
        *numbered(2, cluster="m"),
        {"id": "later", "input": "later", "skip": "not yet"},
    )
    base, asked = run(good_but()), []

    def answer(message: str) -> str:
        asked.append(message)
        if message == "dies" and asked.count("dies") < 3:
            raise RuntimeError("gone")
        return "bad" if message in ("c1", "flaky") and asked.count(message) <= 3 else "good"

    found = run(answer, baseline=base.id, repeat=3, workers=1)
    recorded = list(outcomes_of(found.id, found.store, Path()))
    by_id = {case.ref.id: case for case in recorded}
    assert (by_id["dies"].passes, by_id["dies"].judged, by_id["dies"].cluster) == (1, 1, "k")
    assert by_id["flaky"].reasks == Reasks(passed=3)
    for form in ("jsonl", "json"):
        Path(f"found.{form}").write_text(found.report(form))
        assert list(outcomes_of(f"found.{form}", found.store, Path())) == recorded
    (row,) = [
        row for row in csv.DictReader(found.report("csv").splitlines()) if row["id"] == "dies"
    ]
    counts = {name: row[name] for name in ("repeats", "judged", "passes", "reasks", "cluster")}
    assert list(counts.values()) == ["3", "1", "1", "", "k"]


def test_a_run_object_may_be_the_baseline() -> None:
    write(*numbered(3))
    base = run(good_but())
    found = run(good_but("c1"), baseline=base)
    assert found.comparison is not None
    assert [ref.id for ref in found.comparison.regressions] == ["c1"]
    assert (found.comparison.base, found.record.options["baseline"]) == (base.id, base.id)
    again = assay.regrade(found.id, baseline=base).comparison
    assert again is not None
    assert again.regressions == found.comparison.regressions
    Path("base.json").write_text(base.report("json"))
    from_file = run(good_but("c1"), baseline=Path("base.json")).comparison
    assert from_file is not None
    assert from_file.regressions == found.comparison.regressions


def test_a_run_of_another_store_is_a_baseline() -> None:
    write(*numbered(3))
    base = run(good_but(), store="memory:")
    found = run(good_but("c1"), baseline=base)
    assert found.comparison is not None
    assert [ref.id for ref in found.comparison.regressions] == ["c1"]
    # The store of the run does not have it.
    assert show(found.id).comparison is None


def responses(found: assay.Run) -> dict[str, tuple[Any, bool]]:
    """What each case was answered, and whether the cache had it."""
    cases = {case.id: case.details for case in found.suites[0].cases}
    return {name: (case.response, case.trials[0].cached) for name, case in cases.items()}


def test_the_cache_key_has_everything_that_a_target_is_given() -> None:
    write(*({"id": f"c{i}", "input": "who?", "metadata": {"user": f"u{i}"}} for i in range(2)))

    def agent(case: assay.EvalCase) -> str:
        return str(case.metadata["user"])

    for cached in (False, True):
        found = assay.run("s.eval.jsonl", target=agent, cache=True)
        assert responses(found) == {"c0": ("u0", cached), "c1": ("u1", cached)}


def test_the_cache_has_the_answer_to_a_test_case_whatever_is_expected_by_now() -> None:
    for expected in ("GOOD", "better"):
        write({"id": "c0", "input": "good", "expected_output": expected})
        import_test_cases("s.eval.jsonl")
        found = assay.run("store:", target=str.upper, cache=True)
        assert list(responses(found).values()) == [("GOOD", expected == "better")]
    assert found.summary.failed == 1


def test_the_cache_is_not_used_for_recorded_answers() -> None:
    write({"id": "a", "input": "who?"}, {"id": "b", "input": "who?"})
    for first in ("x", "z"):
        lines = [{"id": "a", "response": first}, {"id": "b", "response": "y"}]
        Path("seen.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = assay.run("s.eval.jsonl", target="replay:seen.jsonl", cache=True)
        assert responses(found) == {"a": (first, False), "b": ("y", False)}


def test_a_file_counts_with_its_content() -> None:
    asked = [{"role": "user", "content": [{"type": "file", "value": "seen.txt"}]}]
    write({"id": "a", "input": asked})
    Path("seen.txt").write_text("before")
    first = run(str.upper, cache=True)
    Path("seen.txt").write_text("after")
    second = run(str.upper, cache=True, baseline=first)
    assert responses(second) == {"a": ("FILE SEEN.TXT:\nAFTER", False)}
    assert second.comparison is not None
    assert [ref.id for ref in second.comparison.not_comparable] == ["a"]


@pytest.mark.parametrize(
    ("target", "suite", "options"),
    [({"workers": 12}, {}, {}), ({}, {"workers": 12}, {}), ({"workers": 2}, {}, {"workers": 12})],
)
def test_workers_may_exceed_the_default(
    monkeypatch: pytest.MonkeyPatch, target: Any, suite: Any, options: Any
) -> None:
    together = threading.Barrier(12, timeout=WAIT_SECONDS)

    def ask(text: str) -> str:
        together.wait()
        return "good"

    monkeypatch.setitem(sys.modules, "meeting", cast(Any, SimpleNamespace(ask=ask)))
    known = {"name": "a", "provider": "python", "callable": "meeting:ask", **target}
    Path("assay.yaml").write_text(json.dumps({"targets": [known]}))
    cases = numbered(12, expected_output="good")
    Path("s.eval.yaml").write_text(json.dumps({"cases": cases, "execution": suite}))
    assert assay.run("s.eval.yaml", target="a", **options).summary.passed == 12
