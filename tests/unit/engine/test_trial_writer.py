"""Trials on their way to the store, while others are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

import pytest
from msgspec.structs import replace

from assay.engine import trial_writer
from assay.engine.run_spec import RunSpec
from assay.engine.session import run
from assay.engine.trial import FinishedTrial
from assay.engine.trial_writer import TrialWriter
from assay.errors import StoreError
from assay.model.events import Event, TrialFinished
from assay.model.options import RunOptions
from assay.model.run import TrialRecord
from assay.results.builder import RunResultBuilder
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from assay.testing.stores import make_run, make_trial
from unit.conftest import Project
from unit.engine.test_session import Target

#: So many turns of the loop are enough for everybody who need not wait.
TURNS = 200


@pytest.fixture(autouse=True)
def unpaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves begin as soon as the one before has ended."""
    monkeypatch.setattr(trial_writer, "BATCH_SECONDS", 0.0)


class Held(MemoryStore):
    """Has everything on disk only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[tuple[TrialRecord, ...]] = []
        self.waiting: list[tuple[Future[None], tuple[TrialRecord, ...]]] = []

    def save(self, *trials: TrialRecord) -> Future[None]:
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        self.groups.append(trials)
        self.waiting.append((future, trials))
        return future

    def let_go(self) -> None:
        """What was handed in so far is on disk."""
        waiting, self.waiting = self.waiting, []
        for future, trials in waiting:
            super().save(*trials)
            future.set_result(None)

    @property
    def sizes(self) -> list[int]:
        return [len(group) for group in self.groups]


class Picky(Held):
    """Refuses a group in which the trial at position 1 is."""

    def let_go(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future, trials in waiting:
            if any(trial.position == 1 for trial in trials):
                future.set_exception(StoreError("this cannot be stored"))
            else:
                MemoryStore.save(self, *trials)
                future.set_result(None)


def finished(position: int) -> FinishedTrial:
    return FinishedTrial(make_trial(position))


async def settled() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def writing(
    store: Held, most: int, work: Callable[[TrialWriter], Awaitable[None]], reported: list[int]
) -> None:
    """Let `work` use a TrialWriter; the positions that it reports are in `reported`."""
    store.begin(make_run())

    def tell(finished: FinishedTrial) -> None:
        reported.append(finished.record.position)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            await work(TrialWriter(store, tell, group.create_task, most))

    asyncio.run(main())


# The writer alone


def test_trials_that_finish_during_a_save_are_one_batch_reported_in_order() -> None:
    store, reported = Held(), list[int]()

    async def work(trial_writer: TrialWriter) -> None:
        await trial_writer.add(finished(0))
        await settled()
        for position in (3, 1, 2):
            await trial_writer.add(finished(position))
        assert (store.sizes, reported) == ([1], [])
        store.let_go()
        await settled()
        assert (store.sizes, reported) == ([1, 3], [0])
        store.let_go()

    writing(store, 9, work, reported)
    assert reported == [0, 3, 1, 2]


@pytest.mark.parametrize("most", [0, 2])
def test_add_waits_while_too_many_trials_are_unsaved(most: int) -> None:
    store, reported = Held(), list[int]()

    async def work(trial_writer: TrialWriter) -> None:
        for position in range(most):
            await trial_writer.add(finished(position))
        async with asyncio.TaskGroup() as group:
            waits = group.create_task(trial_writer.add(finished(most)))
            await settled()
            assert not waits.done()
            store.let_go()
        store.let_go()

    writing(store, most, work, reported)
    assert reported == list(range(most + 1))


def test_a_trial_that_cannot_be_stored_does_not_affect_others() -> None:
    store = Picky()

    async def work(trial_writer: TrialWriter) -> None:
        for position in range(3):
            await trial_writer.add(finished(position))
        await settled()
        store.let_go()
        await settled()
        store.let_go()

    with pytest.raises(ExceptionGroup) as raised:
        writing(store, 9, work, [])
    assert str(raised.value.exceptions[0]) == "this cannot be stored"
    assert sorted(trial.position for trial in store.facts("run-1")) == [0, 2]


def test_answers_are_saved_when_the_run_is_cancelled() -> None:
    store = Held()

    async def work(trial_writer: TrialWriter) -> None:
        await trial_writer.add(finished(0))
        await settled()
        await trial_writer.add(finished(1))
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        writing(store, 9, work, [])
    store.let_go()
    assert [trial.position for trial in store.facts("run-1")] == [0, 1]


def test_trials_between_two_saves_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_writer, "BATCH_SECONDS", 3600.0)
    monkeypatch.setattr(trial_writer, "MAX_BATCH", 3)
    store, reported = Held(), list[int]()

    async def work(trial_writer: TrialWriter) -> None:
        for position, sizes in enumerate([[1], [1], [1], [1, 3]]):
            await trial_writer.add(finished(position))
            await settled()
            store.let_go()
            assert store.sizes == sizes

    writing(store, 10, work, reported)
    assert reported == [0, 1, 2, 3]


def test_lanes_wait_while_a_whole_batch_is_unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_writer, "BATCH_SECONDS", 3600.0)
    monkeypatch.setattr(trial_writer, "MAX_BATCH", 2)
    store = Held()

    async def work(trial_writer: TrialWriter) -> None:
        await trial_writer.add(finished(0))
        await settled()
        await trial_writer.add(finished(1))
        async with asyncio.TaskGroup() as group:
            waits = group.create_task(trial_writer.add(finished(2)))
            await settled()
            assert not waits.done()
            store.let_go()
            await settled()
            assert waits.done()
        store.let_go()

    writing(store, 1, work, [])


# In a run


def job_of(
    project: Project, answer: str, **options: object
) -> tuple[RunSpec, Held, Target, list[Event]]:
    cases = "".join(f"  - {{id: c{n}, input: a, expected_output: 'yes'}}\n" for n in range(9))
    store, target = Held(), Target(lambda name, count: answer)
    events: list[Event] = []
    suite = project.suite(f"cases:\n{cases}")
    settings = Settings(project.root)
    results = RunResultBuilder(settings)
    spec = RunSpec(settings, [suite], RunOptions.model_validate(options), store, results)
    return replace(spec, target=target, listen=events.append), store, target, events


def number_reported(events: list[Event]) -> int:
    return sum(isinstance(event, TrialFinished) for event in events)


async def ended(task: asyncio.Task[object], store: Held) -> None:
    while not task.done():
        store.let_go()
        await asyncio.sleep(0)


@pytest.mark.parametrize(("workers", "asked"), [(1, 1), (2, 3), (9, 9)])
def test_lanes_ask_on_while_trials_are_saved_but_not_far_ahead(
    project: Project, workers: int, asked: int
) -> None:
    spec, store, target, events = job_of(project, "yes", workers=workers)

    async def main() -> None:
        task = asyncio.create_task(run(spec))
        await settled()
        assert (len(target.asked), number_reported(events)) == (asked, 0)
        await ended(task, store)

    asyncio.run(main())
    assert len(set(target.asked)) == len(target.asked) == number_reported(events) == 9


def test_a_limit_stops_the_asking_before_the_trials_that_reach_it_are_saved(
    project: Project,
) -> None:
    spec, store, target, events = job_of(project, "no", workers=4, max_failures=2)

    async def main() -> None:
        task = asyncio.create_task(run(spec))
        await settled()
        assert len(target.asked) <= 4
        await ended(task, store)

    asyncio.run(main())
    assert len(target.asked) <= 4
    assert number_reported(events) == 9


def test_the_first_lane_asks_before_the_last_has_begun(project: Project) -> None:
    spec, _, _, _ = job_of(project, "yes", workers=30, repeat=4)
    begun = []

    async def answer() -> str:
        await asyncio.sleep(0)
        begun.append(len(target.asked))
        return "yes"

    target = Target(lambda name, count: answer())
    asyncio.run(run(replace(spec, target=target, store=MemoryStore())))
    assert begun[0] < 30 <= begun[-1]
