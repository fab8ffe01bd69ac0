"""Journal: saves finished trials in the background, while others are asked.

One save is in progress at a time. Trials that finish meanwhile are saved together as the next
batch, so that neither the lanes nor the disk wait for each trial by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from assay.engine.trial import Finished
from assay.errors import StoreError
from assay.model.run import TrialRecord
from assay.ports import Store

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Journal:
    """Saves trials in the order in which they are added, and reports each once it is on disk.

    `spawn` starts a task in the task group of the lanes: an error of the store ends them all, and
    the group waits for unsaved trials. No lane continues while more than `max_unsaved` trials are
    unsaved: if the process were killed, a resumed run would have to ask them again.
    """

    def __init__(
        self, store: Store, report: Callable[[Finished], None], spawn: Spawn, max_unsaved: int
    ) -> None:
        self._store, self._report, self._spawn = store, report, spawn
        self._max_unsaved = max_unsaved
        self._batch: list[Finished] = []
        self._unsaved = 0
        self._is_saving = False
        self._saved = asyncio.Event()

    async def add(self, finished: Finished) -> None:
        """Save a trial soon; waits only while too many are unsaved."""
        self._batch.append(finished)
        self._unsaved += 1
        if not self._is_saving:
            self._is_saving = True
            self._spawn(self._save_all())
        while self._unsaved > self._max_unsaved:
            self._saved.clear()
            await self._saved.wait()

    async def _save_all(self) -> None:
        try:
            while batch := self._batch:
                self._batch = []
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

    async def _save_batch(self, batch: list[Finished]) -> None:
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

    def _save(self, batch: list[Finished]) -> asyncio.Future[None]:
        return asyncio.wrap_future(self._store.save(*_records(batch)))


def _records(batch: list[Finished]) -> list[TrialRecord]:
    return [finished.record for finished in batch]
