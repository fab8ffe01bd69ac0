"""Journal: finished trials on their way to the store, while others are asked.

One save is under way at a time. What is finished meanwhile gathers and is saved together, so that
neither a lane nor the disk waits for each trial by itself.
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
    """Saves trials in the order in which they are kept, and tells each when it is on disk.

    `spawn` starts a task in the group of the lanes: a fault of the store ends them all, and the
    group waits for what is not saved yet. When a lane goes on, no more than `most` trials are
    unsaved: were the process killed, a resumed run would ask them again.
    """

    def __init__(
        self, store: Store, tell: Callable[[Finished], None], spawn: Spawn, most: int
    ) -> None:
        self._store, self._tell, self._spawn, self._most = store, tell, spawn, most
        self._gathered: list[Finished] = []
        self._unsaved = 0
        self._is_saving = False
        self._saved = asyncio.Event()

    async def keep(self, finished: Finished) -> None:
        """Save it soon; waits only when too much is unsaved."""
        self._gathered.append(finished)
        self._unsaved += 1
        if not self._is_saving:
            self._is_saving = True
            self._spawn(self._save())
        while self._unsaved > self._most:
            self._saved.clear()
            await self._saved.wait()

    async def _save(self) -> None:
        try:
            while group := self._gathered:
                self._gathered = []
                await self._together(group)
                self._unsaved -= len(group)
                self._saved.set()
                for finished in group:
                    self._tell(finished)
            self._is_saving = False
        finally:
            # The run was cancelled: what was asked is saved all the same, but not reported.
            if self._gathered:
                self._store.save(*_records(self._gathered))

    async def _together(self, group: list[Finished]) -> None:
        try:
            await self._hand_in(group)
        except StoreError:
            if len(group) == 1:
                raise
            # It may be about one of them: all others are kept.
            saves = [self._hand_in([finished]) for finished in group]
            for fault in await asyncio.gather(*saves, return_exceptions=True):
                if fault is not None:
                    raise fault from None

    def _hand_in(self, group: list[Finished]) -> asyncio.Future[None]:
        return asyncio.wrap_future(self._store.save(*_records(group)))


def _records(group: list[Finished]) -> list[TrialRecord]:
    return [finished.record for finished in group]
