"""Runs of several targets are asked case by case, and none waits for one that will not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from assay.engine.cancellation import Cancellation
from assay.engine.run_spec import RunSpec
from assay.engine.runner import MAX_UNREACHABLE
from assay.engine.session import run_together
from assay.errors import StoreError, TargetError
from assay.model.observation import Observation
from assay.model.options import RunOptions
from assay.model.run_result import RunResult
from assay.ports import Request
from assay.results.builder import RunResultBuilder
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from unit.conftest import Project
from unit.virtual_time import at_once

CASES = 60
SUITE = "cases:" + "".join(
    f"\n  - {{id: c{n}, input: q{n}, expected_output: 'yes'}}" for n in range(CASES)
)
Answer = Callable[[str, int], Any]


class Agent:
    """Takes some seconds for each answer; `asked` has the questions of all agents in order."""

    def __init__(self, name: str, asked: list[tuple[str, str]], seconds: float = 1.0) -> None:
        self.name, self._asked, self._seconds = name, asked, seconds
        self.answer: Answer = lambda case, count: "yes"
        #: When it was asked last, by the clock of the loop.
        self.last = 0.0
        self.cost: float | None = None

    async def ask(self, request: Request) -> Observation:
        assert request.case is not None
        self._asked.append((self.name, request.case.id))
        count = sum(name == self.name for name, _ in self._asked)
        self.last = asyncio.get_running_loop().time()
        said = self.answer(request.case.id, count)
        await asyncio.sleep(said if isinstance(said, float) else self._seconds)
        if isinstance(said, BaseException):
            raise said
        return Observation(str(said), cost_usd=self.cost)

    async def close(self) -> None:
        pass


class Matrix:
    """Two agents of very different speed, and what they were asked."""

    def __init__(self, project: Project) -> None:
        self.asked: list[tuple[str, str]] = []
        self.slow = Agent("slow", self.asked, 10.0)
        self.quick = Agent("quick", self.asked, 0.125)
        settings, store = Settings(project.root), MemoryStore()
        results = RunResultBuilder(settings)
        options = RunOptions(workers=3)
        self.suites = [project.suite(SUITE)]
        self.spec = RunSpec(settings, self.suites, options, store, results)

    def specs(self, **changes: Any) -> list[RunSpec]:
        spec = replace(self.spec, group="g", **changes)
        stop = spec.cancellation
        agents = (self.slow, self.quick)
        return [replace(spec, target=agent, cancellation=stop.child()) for agent in agents]

    def run(self, specs: Sequence[RunSpec]) -> list[RunResult]:
        return at_once(run_together(specs))

    @property
    def leads(self) -> list[int]:
        """How many cases the quick agent was ahead, after every question."""
        found, lead = [], 0
        for name, _ in self.asked:
            lead += 1 if name == "quick" else -1
            found.append(lead)
        return found

    def of(self, agent: Agent) -> list[str]:
        return [case for name, case in self.asked if name == agent.name]


@pytest.fixture
def matrix(project: Project) -> Matrix:
    return Matrix(project)


def test_targets_are_asked_the_same_cases_at_about_the_same_time(matrix: Matrix) -> None:
    slow, quick = matrix.run(matrix.specs())
    assert (slow.summary.passed, quick.summary.passed) == (CASES, CASES)
    assert matrix.of(matrix.slow) == matrix.of(matrix.quick), "in the same order"
    assert matrix.of(matrix.slow) != sorted(matrix.of(matrix.slow)), "which is shuffled"
    assert max(matrix.leads) <= 3, "ahead by the number of workers"
    assert min(matrix.leads) >= -3
    group = matrix.spec.store.group("g")
    assert [record.id for record in group] == [slow.id, quick.id], "in the order of the targets"


def test_a_single_run_waits_for_nobody(matrix: Matrix) -> None:
    (alone,) = matrix.run(matrix.specs()[1:])
    assert alone.summary.passed == CASES


def test_a_target_that_cannot_be_reached_does_not_hold_up_the_others(matrix: Matrix) -> None:
    matrix.slow.answer = lambda case, count: TargetError("refused", unreachable=True)
    slow, quick = matrix.run(matrix.specs())
    assert len(matrix.of(matrix.slow)) < MAX_UNREACHABLE + 3
    assert (slow.exit_code, slow.record.status) == (3, "interrupted")
    assert (quick.exit_code, quick.summary.passed) == (0, CASES)


def test_max_failures_counts_for_each_run(matrix: Matrix) -> None:
    matrix.slow.answer = lambda case, count: "no"
    slow, quick = matrix.run(matrix.specs(options=RunOptions(workers=3, max_failures=5)))
    assert len(matrix.of(matrix.slow)) <= 5 + 3
    assert (slow.exit_code, quick.exit_code) == (1, 0)
    assert slow.reasons[0] == "1 case failed" or "max-failures is 5" in " ".join(slow.reasons)
    assert quick.summary.passed == CASES


def test_a_run_that_gave_up_is_not_waited_for(matrix: Matrix) -> None:
    """One of its trials is still in flight for a long time."""
    matrix.slow.answer = lambda case, count: 100.0 if count == 1 else "no"
    options = RunOptions(workers=3, max_failures=2)
    slow, quick = matrix.run(matrix.specs(options=options))
    assert (slow.record.status, quick.summary.passed) == ("interrupted", CASES)
    assert matrix.quick.last < 60.0


def test_the_budget_is_for_all_runs_together(matrix: Matrix) -> None:
    matrix.slow.cost = matrix.quick.cost = 1.0
    slow, quick = matrix.run(matrix.specs(options=RunOptions(workers=1, budget_usd=19)))
    spent = [result.summary.estimated_cost_usd or 0.0 for result in (slow, quick)]
    assert sum(spent) == 19, "the quick one waits when the slow one spends the last dollar"
    assert abs(spent[0] - spent[1]) <= 3
    assert [result.exit_code for result in (slow, quick)] == [3, 3]
    assert slow.reasons[0] == quick.reasons[0] == "the budget of $19 is spent"


def test_a_resumed_group_has_spent_what_its_runs_have_spent(matrix: Matrix) -> None:
    matrix.slow.cost = matrix.quick.cost = 1.0
    specs = matrix.specs(options=RunOptions(workers=1, budget_usd=20))
    ended = matrix.run(specs)
    before = len(matrix.asked)
    store = matrix.spec.store
    again = [
        replace(spec, resumed=store.run(result.id))
        for spec, result in zip(specs, ended, strict=True)
    ]
    matrix.run(again)
    assert len(matrix.asked) == before, "the budget is spent"


def test_what_finished_runs_of_the_group_have_spent_counts(matrix: Matrix) -> None:
    matrix.quick.cost = 1.0
    specs = matrix.specs(options=RunOptions(workers=1, budget_usd=20))
    at_once(run_together(specs[1:], spent_usd=15.0))
    assert 5 <= len(matrix.of(matrix.quick)) <= 6


@pytest.mark.parametrize("requests", [1, 2])
def test_one_cancellation_stops_all_runs(matrix: Matrix, requests: int) -> None:
    cancellation = Cancellation()

    def answer(case: str, count: int) -> str:
        if count == 10:
            for _ in range(requests):
                cancellation.request()
        return "yes"

    matrix.quick.answer = answer
    slow, quick = matrix.run(matrix.specs(cancellation=cancellation))
    assert (slow.exit_code, quick.exit_code) == (130, 130)
    assert not cancellation.is_observed
    assert len(matrix.asked) <= 2 * 10 + 2 * 3, "nobody is asked any more"


def test_cancelling_one_run_lets_the_others_go_on(matrix: Matrix) -> None:
    slow, quick = matrix.specs()
    slow = replace(slow, cancellation=Cancellation())
    quick = replace(quick, cancellation=Cancellation())

    def answer(case: str, count: int) -> str:
        if count == 5:
            slow.cancellation.request()
        return "yes"

    matrix.slow.answer = answer
    first, second = matrix.run([slow, quick])
    assert (first.exit_code, second.exit_code) == (130, 0)
    assert second.summary.passed == CASES


def test_a_cancelled_run_is_not_waited_for(matrix: Matrix) -> None:
    """Its trial in flight has ten seconds to finish, in which the other run goes on."""
    slow, quick = matrix.specs()

    def answer(case: str, count: int) -> float:
        if count == 1:
            slow.cancellation.request()
        return 1000.0

    matrix.slow.answer = answer
    first, second = matrix.run([slow, quick])
    assert (first.exit_code, second.summary.passed) == (130, CASES)
    assert matrix.quick.last < 5.0


def test_a_run_with_fewer_trials_left_waits_for_the_place_of_the_others(matrix: Matrix) -> None:
    """The run that is ahead after a kill is asked its next cases when the other one is."""
    specs = matrix.specs()
    cancellation = Cancellation()

    def answer(case: str, count: int) -> str:
        if count == 30:
            cancellation.request()
        return "yes"

    matrix.quick.answer = answer
    quick = replace(specs[1], cancellation=cancellation)
    (alone,) = matrix.run([quick])
    assert alone.exit_code == 130
    done = len(matrix.of(matrix.quick))
    matrix.asked.clear()
    store = matrix.spec.store
    matrix.run([specs[0], replace(specs[1], resumed=store.run(alone.id))])
    slow_before = matrix.asked.index(("quick", matrix.of(matrix.quick)[0]))
    assert slow_before >= done - 3
    assert len(matrix.of(matrix.quick)) == CASES - done, "nothing is asked twice"
    assert matrix.of(matrix.slow)[done:] == matrix.of(matrix.quick)


def test_re_asks_of_one_run_hold_nobody_up_for_ever(matrix: Matrix) -> None:
    """The slow run asks lost cases again while the other one is in its rubric phase."""
    from assay.comparison.tally import compare, fold
    from assay.model.comparison import CaseOutcome, CaseRef, Comparison

    store = matrix.spec.store
    base = [CaseOutcome(CaseRef("suite.yaml", f"c{n}"), "passed", 1, 1, None) for n in range(CASES)]

    def compared(run_id: str, sequential: Any) -> Comparison:
        return compare(base, fold(store.facts(run_id)))

    matrix.slow.answer = lambda case, count: "no" if case == "c7" else "yes"
    slow, quick = matrix.specs(compare=compared)
    rubric = replace(matrix.suites[0], name="r", file="r.yaml", tier="rubric", tool_name="other")
    slow, quick = (replace(spec, suites=[*spec.suites, rubric]) for spec in (slow, quick))
    first, second = matrix.run([slow, quick])
    assert len(matrix.of(matrix.slow)) > 2 * CASES, "the loss is asked again"
    assert (first.record.status, second.record.status) == ("finished", "finished")
    assert second.summary.passed == 2 * CASES


def test_an_error_of_one_run_ends_all_of_them(matrix: Matrix) -> None:
    class Full(MemoryStore):
        def save(self, *trials: Any) -> Any:
            if any(trial.run_id == self.group("g")[1].id for trial in trials):
                raise StoreError("the disk is full")
            return super().save(*trials)

    specs = matrix.specs(store=Full())
    with pytest.raises(StoreError, match="the disk is full"):
        matrix.run(specs)
    assert [run.status for run in specs[0].store.group("g")] == ["running", "running"]
    assert len(matrix.asked) < CASES


def test_nothing_is_recorded_if_any_target_is_wrong(matrix: Matrix) -> None:
    good, bad = matrix.specs()
    bad = replace(bad, target=None, options=RunOptions(target="nobody"))
    with pytest.raises(Exception, match="no target is called 'nobody'"):
        matrix.run([good, bad])
    assert matrix.spec.store.runs(9) == []
    assert matrix.asked == []
