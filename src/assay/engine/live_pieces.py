"""Live runs on many machines: pieces of trials that workers ask, grade and save.

The coordinator decides what is asked, and counts; a worker only needs the positions of the trials.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from socket import gethostname
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.engine.plan import Plan, PlannedCase, Trial
from assay.engine.trial import FinishedTrial, TrialRunner
from assay.engine.trial_writer import TrialWriter
from assay.errors import ExecutorError, StoreError
from assay.model.events import Listener, PieceFinished
from assay.model.run import STOPPING, only
from assay.ports import Executor, Store, WorkOrder
from assay.redaction import redacting
from assay.threads import call_in_thread

#: How many trials a piece has: few make limits precise, many keep all lanes of a worker busy.
LEAST_TRIALS, MOST_TRIALS = 20, 50
#: How long the answers that are there may take to be saved when a worker is closed.
_CLOSING_SECONDS = 5.0
#: The time between two looks at the run, and after how many of them no process holds it any more:
#: after a restart of the database its main process has to take it again.
_WATCH_SECONDS, _LOOKS = 1.0, 4


class LivePiece(msgspec.Struct, array_like=True):
    """The position and repeat of each trial, and how many of them to ask at once.

    `spent_usd` is what the main process knows to be spent of the budget.
    """

    trials: list[tuple[int, int]]
    at_once: int
    confirms: bool = False
    spent_usd: float = 0.0


class LiveResult(msgspec.Struct, array_like=True):
    """Trials that are saved; their records come without result, observation and content."""

    trials: list[FinishedTrial]
    #: Was any answer from the cache, or any request repeated?
    asked_otherwise: bool
    #: The name of the worker's machine.
    machine: str
    #: Is the budget spent? Then trials may be missing.
    is_spent: bool = False


_PIECE = msgspec.msgpack.Decoder(LivePiece)
_RESULT = msgspec.msgpack.Decoder(LiveResult)


class LiveWorker:
    """Asks the trials of pieces in an event loop of its own; the Worker of a live run.

    Its costs are added to those of `budget`, which other runs may share.
    """

    def __init__(
        self,
        plan: Plan,
        trials: TrialRunner,
        store: Store,
        release: Callable[[], Coroutine[Any, Any, None]],
        budget: str,
    ) -> None:
        self._plan, self._trials, self._store, self._release = plan, trials, store, release
        self._budget = budget
        self._loop = asyncio.new_event_loop()
        self._asking: asyncio.Task[LiveResult] | None = None
        #: Must no further trial begin, because the run stops, or has spent its budget?
        self._is_over = self._is_spent = False
        self._idle = threading.Event()
        self._idle.set()

    def __call__(self, piece: bytes) -> bytes:
        self._idle.clear()
        try:
            with redacting(lambda: self._trials.redact):
                self._asking = self._loop.create_task(self._ask(_PIECE.decode(piece)))
                return msgspec.msgpack.encode(self._loop.run_until_complete(self._asking))
        except asyncio.CancelledError:
            raise ExecutorError("the run was stopped, or its main process was lost") from None
        finally:
            self._idle.set()

    def close(self) -> None:
        """Cancel the trials in flight, and release the targets; answers that are there are kept."""
        if self._asking is not None and not self._idle.is_set():
            self._loop.call_soon_threadsafe(self._asking.cancel)
        if self._idle.wait(_CLOSING_SECONDS):
            call_in_thread(lambda: self._loop.run_until_complete(self._release())).result()
            self._loop.close()

    async def _ask(self, piece: LivePiece) -> LiveResult:
        found: list[FinishedTrial] = []

        def saved(finished: FinishedTrial) -> None:
            bare = replace(finished.record, result=b"", observation=b"", content=b"")
            found.append(replace(finished, record=bare))

        await asyncio.to_thread(self._look)
        await self._spend(0.0, piece.spent_usd)
        waiting = iter(await asyncio.to_thread(self._unsaved, piece, saved))

        async def lane() -> None:
            for position, repeat in waiting:
                if self._is_over or self._is_spent:
                    return
                planned = self._plan.at(position)
                finished = await self._trials.run(planned, repeat, confirms=piece.confirms)
                record = finished.record
                await self._spend((record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0))
                await writer.add(finished)

        watcher = asyncio.create_task(self._watch_run(asyncio.current_task()))
        try:
            async with asyncio.TaskGroup() as group:
                writer = TrialWriter(self._store, saved, group.create_task, piece.at_once - 1)
                for _ in range(min(piece.at_once, len(piece.trials))):
                    group.create_task(lane())
        finally:
            watcher.cancel()
        return LiveResult(found, self._trials.asked_otherwise, gethostname(), self._is_spent)

    async def _spend(self, usd: float, at_least: float = 0.0) -> None:
        """Add to what all workers have spent, and compare it with the budget, if there is one."""
        if (limit := self._plan.options.budget_usd) is not None:
            permits: Any = self._store.permits  # type: ignore[attr-defined]
            spend = partial(permits.spend, self._budget, usd, at_least)
            self._is_spent = await asyncio.to_thread(spend) >= limit

    def _unsaved(
        self, piece: LivePiece, saved: Callable[[FinishedTrial], None]
    ) -> list[tuple[int, int]]:
        """The trials to ask: others were saved by a process that died on this piece."""
        left = []
        for position, repeat in piece.trials:
            known = self._store.trials(self._trials.run_id, positions=only(position))
            done = [trial for trial in known if trial.repeat == repeat and trial.final]
            if done:
                saved(FinishedTrial(done[0]))
            else:
                left.append((position, repeat))
        return left

    async def _watch_run(self, asking: asyncio.Task[Any] | None) -> None:
        """Cancel the piece when no process holds the run: another one may resume it."""
        looks = 0
        while asking is not None and looks < _LOOKS:
            await asyncio.sleep(_WATCH_SECONDS)
            with suppress(StoreError):  # trials that cannot be saved end the piece
                looks = 0 if await asyncio.to_thread(self._look) else looks + 1
        if asking is not None:
            asking.cancel()

    def _look(self) -> bool:
        """Does a process hold the run? It also says whether further trials may begin."""
        run_id = self._trials.run_id
        self._is_over = self._store.run(run_id).is_stopping
        return self._store.held(run_id)


class RemoteTrials:
    """Lets the workers of an executor ask trials, `workers` at once in all of them together."""

    def __init__(
        self,
        executor: Executor,
        order: Callable[[], WorkOrder],
        workers: int,
        store: Store,
        listen: Listener,
    ) -> None:
        self._executor, self._order, self._workers = executor, order, workers
        self._store, self._listen = store, listen
        self.asked_otherwise = False
        #: Is the budget spent?
        self.is_spent = False
        #: The trials that workers have not asked, as they were stopped.
        self.left: list[Trial] = []

    async def ask(
        self,
        trials: Iterable[Trial],
        is_over: Callable[[], bool],
        spent_usd: Callable[[], float],
        *,
        confirms: bool = False,
    ) -> AsyncGenerator[tuple[PlannedCase, FinishedTrial], None]:
        """Each trial once it is saved; no piece is begun once it `is_over`, or has no budget."""
        planned: dict[tuple[int, int], Trial] = {}

        def pieces() -> Iterator[bytes]:
            left = iter(trials)
            while not (is_over() or self.is_spent):
                taken = list(islice(left, self._size()))
                if not taken:
                    return
                numbers = [(trial.planned.position, trial.repeat) for trial in taken]
                planned.update(zip(numbers, taken, strict=True))
                piece = LivePiece(numbers, self._share(), confirms, spent_usd())
                yield msgspec.msgpack.encode(piece)

        async with aclosing(self._executor.run(self._order(), pieces())) as results:
            async for data in results:
                result = _RESULT.decode(data)
                self.asked_otherwise |= result.asked_otherwise
                self.is_spent |= result.is_spent
                for finished in result.trials:
                    record = finished.record
                    yield planned.pop((record.position, record.repeat)).planned, finished
                self._listen(PieceFinished({}, 0.0, result.machine))
        self.left = list(planned.values())

    def stop(self, run_id: str) -> None:
        """Let workers begin no further trial; they look at the run every second."""

        def note() -> None:
            with suppress(StoreError):  # they end their pieces
                record = self._store.run(run_id)
                environment = record.environment | {STOPPING: True}
                self._store.describe(run_id, record.suites, environment)

        call_in_thread(note)

    def _share(self) -> int:
        """How many trials each process asks at once."""
        processes: int = getattr(self._executor, "processes", 1)
        return max(-(-self._workers // max(processes, 1)), 1)

    def _size(self) -> int:
        return min(max(2 * self._share(), LEAST_TRIALS), MOST_TRIALS)
