"""A run from within: the cancellation, the end of its grace, and clocks that jump."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from assay.comparison.outcomes import find_run
from assay.comparison.tally import compare, fold
from assay.engine.run_spec import RunSpec
from assay.engine.runner import GRACE_SECONDS
from assay.engine.session import run
from assay.errors import StoreError, UsageError
from assay.model.comparison import CaseOutcome, CaseRef, Comparison
from assay.model.events import Event, Notice, RunStarted
from assay.model.observation import Observation
from assay.model.options import RunOptions
from assay.model.run import CANCELLED, RunRecord, TrialRecord
from assay.model.run_result import RunResult
from assay.ports import Request
from assay.results.builder import RunResultBuilder
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from unit.conftest import Project
from unit.virtual_time import at_once

SUITE = """
cases:
  - {id: a, input: a, expected_output: "yes"}
  - {id: b, input: b, expected_output: "yes"}
"""


class Target:
    """Answers with a function of the case's id and of the number of requests so far."""

    name = "t"

    def __init__(self, answer: Callable[[str, int], Any]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._answer = answer

    async def ask(self, request: Request) -> Observation:
        assert request.case is not None
        self.asked.append((request.case.id, request.repeat))
        said = self._answer(request.case.id, len(self.asked))
        return Observation(await said if asyncio.iscoroutine(said) else said)

    async def close(self) -> None:
        pass


@pytest.fixture
def spec(project: Project) -> RunSpec:
    suite = project.suite(SUITE)
    target = Target(lambda name, count: "yes")
    options = RunOptions(workers=1)
    settings = Settings(project.root)
    results = RunResultBuilder(settings)
    return RunSpec(settings, [suite], options, MemoryStore(), results, target=target)


def asking(
    spec: RunSpec, answer: Callable[[str, int], Any], **changes: Any
) -> tuple[RunSpec, Target]:
    target = Target(answer)
    return replace(spec, target=target, **changes), target


def run_to_end(spec: RunSpec) -> tuple[RunResult, float]:
    """The result of a run, and how many seconds of virtual time it took."""

    async def timed() -> tuple[RunResult, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = await run(spec)
        return result, loop.time() - began

    return at_once(timed())


def resumed(spec: RunSpec, record: RunRecord) -> RunSpec:
    return replace(spec, resumed=spec.store.run(record.id))


async def never() -> str:
    await asyncio.Event().wait()
    return "yes"


# The cancellation


@pytest.mark.parametrize(("presses", "seconds"), [(1, GRACE_SECONDS), (2, 0.0)])
def test_trials_in_flight_have_a_grace_period_unless_cancelled_twice(
    spec: RunSpec, presses: int, seconds: float
) -> None:
    def answer(name: str, count: int) -> Any:
        for _ in range(presses):
            spec.cancellation.request()
        return never()

    stopped, target = asking(spec, answer)
    result, took = run_to_end(stopped)
    assert took == pytest.approx(seconds, abs=0.01)
    assert len(target.asked) == 1, "nothing new is asked"
    assert (result.exit_code, result.record.status) == (130, "interrupted")
    assert result.summary.total_cases == 0
    again = f"`assay run --resume {result.id}`"
    assert result.reasons[0] == f"the run was interrupted; {again} continues it"


def test_the_notice_about_silence_is_repeated_less_and_less_often(spec: RunSpec) -> None:
    notices: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    async def slow() -> str:
        await asyncio.sleep(119)
        return "yes"

    async def quick() -> str:
        await asyncio.sleep(20)
        return "yes"

    def answer(name: str, count: int) -> Any:
        return slow() if name == "a" else quick()

    run_to_end(asking(spec, answer, listen=listen)[0])
    waiting = "waiting for suite.yaml: a"
    assert notices == [f"no answer for 30 s: {waiting}", f"no answer for 60 s: {waiting}"]


def test_a_blocked_event_loop_causes_one_notice_about_silence(spec: RunSpec) -> None:
    events: list[Event] = []

    async def slow() -> str:
        asyncio.get_running_loop()._hands.now += 600  # type: ignore[attr-defined]
        await asyncio.sleep(100)
        return "yes"

    run_to_end(asking(spec, lambda name, count: slow(), listen=events.append)[0])
    assert len({str(event) for event in events}) == len(events)
    assert sum("no answer for" in str(event) for event in events) == 1


def test_cancellation_works_from_the_first_request_to_the_last(spec: RunSpec) -> None:
    observed: list[bool] = []

    def answer(name: str, count: int) -> str:
        observed.append(spec.cancellation.is_observed)
        return "yes"

    def compare(run_id: str, *more: object) -> Comparison:
        observed.append(spec.cancellation.is_observed)
        return Comparison("base", run_id, "unchanged", 2, "passed")

    run_to_end(asking(spec, answer, compare=compare)[0])
    assert observed == [True] * 4
    assert not spec.cancellation.is_observed


def losing(spec: RunSpec) -> Callable[..., Comparison]:
    """Compares with a baseline in which both cases passed."""
    base = [CaseOutcome(CaseRef("suite.yaml", name), "passed", 1, 1, None) for name in "ab"]
    return lambda run_id, sequential: compare(base, fold(spec.store.facts(run_id)))


def test_a_run_that_is_stopped_during_re_asks_has_no_verdict_yet(spec: RunSpec) -> None:
    def stops(name: str, count: int) -> Any:
        if count < 4:
            return "no" if name == "a" else "yes"
        spec.cancellation.request()
        spec.cancellation.request()
        return never()

    stopped, target = asking(spec, stops, compare=losing(spec))
    result, _ = run_to_end(stopped)
    assert (result.exit_code, result.comparison, result.verdict) == (130, None, "inconclusive")
    assert target.asked[2:] == [("a", 1), ("a", 2)], "the second re-ask did not end"
    events: list[Event] = []
    again, target = asking(stopped, lambda name, count: "no", listen=events.append)
    again = replace(resumed(again, result.record), cancellation=type(spec.cancellation)())
    whole, _ = run_to_end(again)
    assert events[0] == RunStarted(whole.id, "t", planned=2, done=2)
    assert target.asked == [("a", 2), ("a", 3), ("a", 4), ("a", 5)]
    assert (whole.exit_code, whole.reasons) == (1, ("1 lost case failed every re-ask",))
    trials = next(case for case in whole.suites[0].cases if case.id == "a").trials
    assert [trial.confirms for trial in trials] == [False, *[True] * 5]


def test_a_resumed_run_is_running_again_while_it_is_at_work(spec: RunSpec) -> None:
    def stops(name: str, count: int) -> str:
        spec.cancellation.request()
        return "yes"

    before = run_to_end(asking(spec, stops)[0])[0].record
    assert (before.status, before.verdict.exit_code) == ("interrupted", 130)
    seen: list[RunRecord] = []

    def looks(name: str, count: int) -> str:
        seen.append(spec.store.run(before.id))
        return "yes"

    again, _ = asking(spec, looks, cancellation=type(spec.cancellation)())
    done, _ = run_to_end(resumed(again, before))
    assert [(r.status, r.finished_at, r.summary) for r in seen] == [("running", None, None)]
    assert (done.record.status, done.exit_code) == ("finished", 0)


def test_a_resumed_run_is_no_longer_cancelled(spec: RunSpec) -> None:
    spec.cancellation.request()
    stopped, _ = run_to_end(spec)
    known = stopped.record
    spec.store.describe(known.id, known.suites, known.environment | {CANCELLED: True})
    again = replace(resumed(spec, known), cancellation=type(spec.cancellation)())
    done, _ = run_to_end(again)
    assert (done.record.status, done.record.cancelled) == ("finished", False)
    assert done.record.environment == known.environment


def test_a_run_cancelled_while_a_server_resumes_it_stays_cancelled(spec: RunSpec) -> None:
    spec.cancellation.request()
    known = run_to_end(replace(spec, started_by="serve"))[0].record
    spec.store.describe(known.id, known.suites, known.environment | {CANCELLED: 1})
    again = replace(
        resumed(spec, known), started_by="serve", cancellation=type(spec.cancellation)()
    )
    run_to_end(again)
    assert spec.store.run(known.id).environment == known.environment | {CANCELLED: 1}


@pytest.mark.parametrize(("begun", "resumed_by"), [("serve", ""), ("", "serve")])
def test_a_resumed_run_records_its_new_starter(spec: RunSpec, begun: str, resumed_by: str) -> None:
    """Only the process that works on it can be stopped."""
    spec.cancellation.request()
    stopped, _ = run_to_end(replace(spec, started_by=begun))
    assert stopped.record.started_by == begun
    again = replace(
        resumed(spec, stopped.record), started_by=resumed_by, cancellation=type(spec.cancellation)()
    )
    done, _ = run_to_end(again)
    assert (done.record.status, done.record.started_by) == ("finished", resumed_by)


# Faults of the store


class Full(MemoryStore):
    """Has room for one trial."""

    def save(self, *trials: TrialRecord) -> Future[None]:
        known = sum(1 for run in self.runs(1) for _ in self.facts(run.id))
        if known + len(trials) > 1:
            future: Future[None] = Future()
            future.set_exception(StoreError("the disk is full"))
            return future
        return super().save(*trials)


@pytest.mark.parametrize("workers", [1, 9])
def test_a_store_error_is_raised_once_with_its_own_message(spec: RunSpec, workers: int) -> None:
    full = replace(spec, store=Full(), options=RunOptions(workers=workers, repeat=3))
    with pytest.raises(StoreError, match="the disk is full"):
        run_to_end(full)
    assert full.store.runs(1)[0].status == "running"


def test_a_run_that_another_process_has_finished_is_not_resumed(spec: RunSpec) -> None:
    seen = run_to_end(asking(spec, lambda name, count: "yes")[0])[0].record
    stale = replace(spec, resumed=structs.replace(seen, status="running"))
    with pytest.raises(UsageError, match="is finished: there is nothing to resume"):
        run_to_end(stale)


# Clocks


def test_a_clock_that_jumps_changes_nothing_but_times(
    spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ids of later runs in this process would have to be greater still.
    monkeypatch.setattr("assay.model.run._last", 0)
    moments = [datetime(2030, 1, 1, tzinfo=UTC) - timedelta(hours=n) for n in range(4)]
    spec = replace(spec, now=lambda: moments.pop(0))
    first, _ = run_to_end(spec)
    monkeypatch.setattr("assay.model.run._last", 0)  # as in another process
    second, _ = run_to_end(spec)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.id < second.id, "the newest run is found as such"
    assert [record.id for record in spec.store.runs(2)] == [second.id, first.id]
    assert find_run("latest", spec.store).id == second.id
    assert first.record.started_at == "2030-01-01T00:00:00.000Z"
    assert second.record.started_at == "2029-12-31T23:00:00.000Z"
    for record in (first.record, second.record):
        assert record.finished_at is not None
        began, ended = map(datetime.fromisoformat, (record.started_at, record.finished_at))
        assert timedelta() <= ended - began < timedelta(minutes=30), "by a monotonic clock"
    assert all(case.duration_ms >= 0 for case in first.suites[0].cases)
