"""`--stop-when decided`: when it stops, what it leaves, and how seldom it is wrong."""

from __future__ import annotations

import asyncio
import heapq
import json
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

import assay
from assay.blocking import wait_for
from assay.engine.cancellation import Cancellation
from assay.engine.sequential_stop import SequentialStop
from assay.errors import UsageError
from assay.model.comparison import CaseOutcome, CaseRef
from assay.model.result import Outcome
from assay.model.run_result import RunResult
from assay.service import history
from assay.service.baselines import set_baseline
from assay.service.runs import RunHooks, RunRequest, execute
from unit.case_outcomes import case
from unit.conftest import Project
from unit.results.test_statistics import trial

BASE = "base.yaml"
SAYS: dict[bool, Outcome] = {True: "passed", False: "failed"}


def before(count: int, outcome: Outcome = "passed", **more: Any) -> list[CaseOutcome]:
    return [case(f"c{n}", outcome, suite=BASE, **more) for n in range(count)]


def seen(number: int, outcome: Outcome = "failed", **more: Any) -> Any:
    facts = trial(outcome, case=f"c{number}", suite=BASE, **more)

    return msgspec.structs.replace(facts, position=number)


def early(
    base: list[CaseOutcome], repeats: int = 1, order: list[int] | None = None
) -> SequentialStop:
    return SequentialStop(base, order or list(range(len(base))), lambda position: repeats)


def test_seven_losses_in_a_row_decide() -> None:
    test = early(before(20))
    reasons = [test.add(seen(n)) for n in range(7)]
    assert reasons[:6] == [""] * 6
    words = "decided after 7 compared cases: regressed, as 7 stopped passing and 0 started to"
    assert reasons[6] == words
    assert test.add(seen(7, "passed")) == words
    assert (test.test.lost, test.pairs) == (7, 7)


def test_seven_gains_decide_as_well() -> None:
    test = early(before(20, "failed"))
    assert [test.add(seen(n, "passed")) for n in range(7)][-1].startswith("decided")
    assert test.test.verdict == "improved"


def test_cases_are_looked_at_in_the_order_of_the_plan() -> None:
    """Quick answers that all pass must not be counted before slow ones that fail."""
    test = early(before(20, "failed"))
    for n in range(1, 12):
        assert test.add(seen(n, "passed")) == ""
    assert test.pairs == 0
    assert test.add(seen(0, "passed")).startswith("decided after 7 ")


def test_a_case_is_looked_at_when_all_its_repeats_are_there() -> None:
    test = early(before(3), repeats=2)
    test.add(seen(0, "passed"))
    assert test.pairs == 0
    test.add(seen(0, "failed", repeat=1))
    assert (test.pairs, test.test.lost) == (1, 1)


@pytest.mark.parametrize("outcome", ["errored", "skipped"])
def test_unjudged_cases_do_not_count(outcome: Outcome) -> None:
    test = early(before(10))
    for n in range(9):
        test.add(seen(n, outcome))
    assert test.pairs == 0


def test_cases_that_cannot_be_compared_do_not_count() -> None:
    test = early(before(10, key="other"))
    for n in range(9):
        assert test.add(seen(n)) == ""
    unknown = SequentialStop(before(0), range(10), lambda position: 1)
    for n in range(9):
        assert unknown.add(seen(n)) == ""
    assert test.pairs == unknown.pairs == 0


def test_reasks_are_not_repeats() -> None:

    test = early(before(10))
    for n in range(9):
        test.add(msgspec.structs.replace(seen(n), confirms=True))
    assert test.pairs == 0


def test_of_a_cluster_only_the_first_move_counts() -> None:
    test = early(before(30))
    for n in range(20):
        assert test.add(seen(n, cluster="one")) == ""
    assert test.test.lost == 1
    assert [test.add(seen(n)) for n in range(20, 26)][-1].startswith("decided")


def test_files_without_suites_are_found_by_id() -> None:
    base = [c._replace(ref=CaseRef("", c.ref.id)) for c in before(10)]
    assert [early(base).add(seen(0)), early(base).pairs] == ["", 0]
    test = early(base)
    assert [test.add(seen(n)) for n in range(7)][-1]


def test_an_interrupted_run_is_resumed() -> None:

    test = early(before(20))
    test.restore([seen(n) for n in range(5)])
    test.restore([msgspec.structs.replace(seen(n), final=False) for n in range(5, 9)])
    assert test.pairs == 5
    assert test.add(seen(5)) == ""
    assert test.add(seen(6)).startswith("decided after 7 ")


# With the engine


def suite(project: Project, count: int = 60, **more: Any) -> None:
    cases = (
        {"id": f"c{n}", "input": f"c{n}", "expected_output": "yes", **more} for n in range(count)
    )
    project.write("suite.jsonl", "\n".join(map(json.dumps, cases)))


def answering(wrong: Callable[[int], bool]) -> Callable[[str], str]:
    return lambda question: "no" if wrong(int(question[1:])) else "yes"


def run(wrong: Callable[[int], bool], **options: Any) -> RunResult:
    return assay.run("suite.jsonl", target=answering(wrong), **options)


def reasons(result: RunResult) -> Iterator[str]:
    return (c.error or "" for c in result.suites[0].cases if c.outcome == "skipped")


def test_a_run_stops_when_it_is_decided(project: Project) -> None:
    suite(project)
    set_baseline("main", run(lambda n: False).id)
    found = run(lambda n: n % 2 == 0, baseline="main", stop_when="decided", workers=1)
    assert found.summary.skipped > 20
    assert found.summary.coverage == 1.0
    (reason,) = set(reasons(found))
    assert reason.startswith("not asked: decided after ")
    assert any(note.startswith("stopped early: decided after") for note in found.notes)
    assert "stopped early: decided after" in found.report()  # type: ignore[attr-defined]
    comparison = found.comparison
    assert comparison is not None
    assert comparison.decision == "regressed"
    assert comparison.test is not None
    assert comparison.test.name == "e-process"
    assert comparison.test.discordant[0] == 7
    assert comparison.to_dict()["test"]["eValue"] >= 20
    assert comparison.test.p_value <= 0.05
    assert "However often it is checked" in comparison.explanation
    assert found.exit_code == 1
    assert history.show(found.id).comparison == comparison
    (note, *_) = history.compare("main", found.id).notes
    assert "is partial: it stopped as soon as it was decided" in note


@pytest.mark.parametrize("workers", [1, 4, 30])
def test_where_it_stops_does_not_depend_on_workers(project: Project, workers: int) -> None:
    suite(project)
    set_baseline("main", run(lambda n: False).id)

    async def slow_when_wrong(question: str) -> str:
        if int(question[1:]) % 2 == 0:
            for _ in range(50):
                await asyncio.sleep(0)
            return "no"
        return "yes"

    found = assay.run(
        "suite.jsonl",
        target=slow_when_wrong,
        baseline="main",
        stop_when="decided",
        workers=workers,
    )
    assert found.comparison is not None
    assert found.comparison.test is not None
    assert found.comparison.test.discordant == (7, 0)
    (note,) = found.notes
    assert note.startswith("stopped early: decided after 15 compared cases: regressed")


def test_a_run_that_is_not_decided_asks_everything(project: Project) -> None:
    suite(project)
    set_baseline("main", run(lambda n: False).id)
    found = run(lambda n: n < 3, baseline="main", stop_when="decided")
    assert found.summary.skipped == 0
    assert found.comparison is not None
    assert found.comparison.decision == "inconclusive"
    # Six losses convince the usual test, but not one that has been looked at all the time.
    found = run(lambda n: n < 6, baseline="main", stop_when="decided")
    assert found.comparison is not None
    assert found.comparison.decision == "inconclusive"
    assert assay.compare("main", found.id).decision == "regressed"


def test_a_resumed_run_stops_where_the_other_would_have(project: Project) -> None:
    suite(project)
    set_baseline("main", run(lambda n: False).id)
    cancellation, asked = Cancellation(), []
    options = {"baseline": "main", "stop_when": "decided", "workers": 1}

    def half(question: str) -> str:
        asked.append(question)
        if len(asked) == 8:
            cancellation.request()
        return "no" if int(question[1:]) % 2 == 0 else "yes"

    def carried(resume: str | None) -> RunResult:
        hooks = RunHooks(cancellation=cancellation if resume is None else None)
        order = RunRequest("suite.jsonl", half, resume=resume, hooks=hooks)
        return wait_for(lambda: execute(order, dict(options)))

    assert carried(None).exit_code == 130
    found = carried("")
    assert len(asked) == 15
    (note,) = found.notes
    assert note.startswith("stopped early: decided after 15 compared cases")


def test_repeats_of_a_case_stay_together(project: Project) -> None:
    suite(project)
    set_baseline("main", run(lambda n: False).id)
    found = run(lambda n: True, baseline="main", stop_when="decided", repeat=3, workers=1)
    assert found.summary.failed == 7
    assert found.summary.skipped == 53


def test_stopping_needs_a_baseline(project: Project) -> None:
    suite(project)
    with pytest.raises(UsageError, match="give --baseline"):
        run(lambda n: False, stop_when="decided")


# How often it is wrong


def most(runs: int) -> float:
    """5 %; of a few runs two standard deviations more, as a coin has its whims."""
    return 0.05 * runs + (2 * math.sqrt(0.05 * 0.95 * runs) if runs < 100 else 0)


def alarm(random: Random, cases: int) -> bool:
    """Does a run that is as good as its base, with noise, ever look decided?"""
    rates = [random.choice((0.5, 0.8, 0.95)) for _ in range(cases)]
    base = [
        case(f"c{n}", "passed" if random.random() < rate else "failed", suite=BASE)
        for n, rate in enumerate(rates)
    ]
    order = list(range(cases))
    random.shuffle(order)
    test = early(base, order=order)
    for n in order:
        outcome: Outcome = "passed" if random.random() < rates[n] else "failed"
        if test.add(seen(n, outcome)):
            return True
    return False


@pytest.mark.parametrize("runs", [60, pytest.param(2000, marks=pytest.mark.full)])
def test_false_alarms_are_rare(runs: int) -> None:
    random = Random(7)
    alarms = sum(alarm(random, 200) for _ in range(runs))
    assert alarms <= most(runs)


def slowly(random: Random, cases: int, lanes: int = 50) -> bool:
    """The same when failures take ten times as long, and results come in as they end."""
    rates = [random.choice((0.5, 0.8)) for _ in range(cases)]
    before_now = [(random.random() < rate, random.random() < rate) for rate in rates]
    free, ends = [0.0] * lanes, []
    for n, (_, now) in enumerate(before_now):
        end = heapq.heappop(free) + (1 if now else 10) * (0.5 + random.random())
        heapq.heappush(free, end)
        ends.append((end, n))
    base = [case(f"c{n}", SAYS[b], suite=BASE) for n, (b, _) in enumerate(before_now)]
    test = early(base)
    return any(test.add(seen(n, SAYS[before_now[n][1]])) for _, n in sorted(ends))


@pytest.mark.parametrize("runs", [40, pytest.param(1000, marks=pytest.mark.full)])
def test_slow_failures_raise_no_false_alarms(runs: int) -> None:
    random = Random(3)
    assert sum(slowly(random, 300) for _ in range(runs)) <= most(runs)


@pytest.mark.parametrize("runs", [3, pytest.param(100, marks=pytest.mark.full)])
def test_false_alarms_are_rare_end_to_end(project: Project, runs: int) -> None:
    suite(project, 60)
    random, alarms = Random(11), 0
    for seed in range(runs):
        noise = [(random.random() < 0.3, random.random() < 0.3) for _ in range(60)]
        base = run(lambda n, noise=noise: noise[n][0])  # type: ignore[misc]
        now = run(
            lambda n, noise=noise: noise[n][1],  # type: ignore[misc]
            baseline=base.id,
            stop_when="decided",
            seed=seed,
        )
        alarms += any(note.startswith("stopped early") for note in now.notes)
    assert alarms <= most(runs)
