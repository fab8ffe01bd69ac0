"""TrialWriter: saves finished trials in the background, while others are asked.

One save is in progress at a time, and saves begin at least BATCH_SECONDS apart. Trials that finish
between two saves are one batch, so that neither the lanes nor the disk wait for each trial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from assay.engine.trial import FinishedTrial
from assay.errors import StoreError
from assay.model.run import TrialRecord
from assay.ports import Store

#: The least time between the beginnings of two saves.
BATCH_SECONDS = 0.02
#: At most this many trials are saved together.
MAX_BATCH = 500

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class TrialWriter:
    """Saves trials in the order in which they are added, and reports each once it is on disk.

    `spawn` starts a task in the task group of the lanes: an error of the store ends them all, and
    the group waits for unsaved trials. If the process were killed, a resumed run would have to ask
    unsaved trials again. So no lane continues while more than `max_unsaved` trials are unsaved and
    the save in progress takes longer than BATCH_SECONDS, or while a whole batch is waiting.
    """

    def __init__(
        self, store: Store, report: Callable[[FinishedTrial], None], spawn: Spawn, max_unsaved: int
    ) -> None:
        self._store, self._report, self._spawn = store, report, spawn
        self._max_unsaved = max_unsaved
        self._batch: list[FinishedTrial] = []
        self._unsaved = 0
        self._is_saving = False
        self._saved, self._full = asyncio.Event(), asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        #: When the last save began.
        self._began = float("-inf")

    async def add(self, finished: FinishedTrial) -> None:
        """Save a trial soon; waits only while too many are unsaved."""
        self._batch.append(finished)
        self._unsaved += 1
        if not self._is_saving:
            self._is_saving = True
            self._spawn(self._save_all())
        if len(self._batch) >= MAX_BATCH:
            self._full.set()
        while self._is_behind:
            self._saved.clear()
            await self._saved.wait()

    @property
    def _is_behind(self) -> bool:
        """Should lanes wait for the disk?"""
        if self._unsaved <= self._max_unsaved:
            return False
        return len(self._batch) >= MAX_BATCH or self._clock() >= self._began + BATCH_SECONDS

    async def _pause(self) -> None:
        """Wait until the next save may begin."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._began + BATCH_SECONDS):
                await self._full.wait()

    async def _save_all(self) -> None:
        try:
            while self._batch:
                await self._pause()
                batch, self._batch = self._batch, []
                self._full.clear()
                self._began = self._clock()
                await self._save_batch(batch)
                self._unsaved -= len(batch)
                self._saved.set()
                for finished in batch:
                    self._report(finished)
            self._is_saving = False
        finally:
            # When the run is cancelled, answers are still saved, but not reported.
            if self._batch:
                self._store.save(*_records(self._batch))

    async def _save_batch(self, batch: list[FinishedTrial]) -> None:
        try:
            await self._save(batch)
        except StoreError:
            if len(batch) == 1:
                raise
            # A single trial may be the cause: save all others.
            saves = [self._save([finished]) for finished in batch]
            for error in await asyncio.gather(*saves, return_exceptions=True):
                if error is not None:
                    raise error from None

    def _save(self, batch: list[FinishedTrial]) -> asyncio.Future[None]:
        return asyncio.wrap_future(self._store.save(*_records(batch)))


def _records(batch: list[FinishedTrial]) -> list[TrialRecord]:
    return [finished.record for finished in batch]
