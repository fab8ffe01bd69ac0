"""Makes what the pages of large runs show as soon as the runs have ended, before it is asked for.

A run that another process made is found within seconds, or when the server starts.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from assay.errors import AssayError, StoreError, cause_of
from assay.model.case_filter import CaseFilter
from assay.model.run import RunRecord
from assay.redaction import redacted
from assay.server.pages.kept_overviews import Stopped
from assay.server.pages.run import RUN_TEMPLATE
from assay.server.state import State
from assay.service.groups import group_with
from assay.web.environment import environment

log = logging.getLogger("assay.server")
#: Runs of fewer cases open fast enough.
LARGE = 2000
#: How many of the newest runs are looked at, and how often; those of a group end together.
NEWEST, SECONDS = 10, 5.0


class Preparer:
    """Works in the background, one run at a time, while the server is up."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._prepared: set[tuple[str, str | None]] = set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Give up the work in progress."""
        self._stopped.set()
        if self._task is not None:
            await self._task

    async def _watch(self) -> None:
        while not self._stopped.is_set():
            with suppress(StoreError):  # the next round tries again
                await self.prepare_newest()
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._stopped.wait()

    async def prepare_newest(self) -> None:
        """Prepare those of the newest runs that need it."""
        for record in await asyncio.to_thread(self._waiting):
            await self._state.scan(partial(self._prepare, record))

    def _waiting(self) -> list[RunRecord]:
        """The large ones among the newest runs that have ended, if they are not prepared."""
        return [
            record
            for record in self._state.store.runs(NEWEST)
            if record.status == "finished"
            and (record.summary or {}).get("totalCases", 0) >= LARGE
            and (record.id, record.finished_at) not in self._prepared
        ]

    def _prepare(self, record: RunRecord) -> None:
        state = self._state
        if self._stopping():
            return
        try:
            state.overviews.of(record, state.store, state.settings, self._stopping)
            state.overviews.facets(state.store, record, CaseFilter())
            self._prepare_group(record)
            environment().get_template(RUN_TEMPLATE)  # compiles it
        except Stopped:
            return
        except Exception as error:  # its page shows it too; the others are still prepared
            reason = str(error) if isinstance(error, AssayError) else cause_of(error)
            log.warning("the pages of %s cannot be prepared: %s", record.id, redacted(reason))
        self._prepared.add((record.id, record.finished_at))

    def _prepare_group(self, record: RunRecord) -> None:
        """Compare the targets of a group once the last of its runs has ended."""
        group = None if record.group is None else group_with(record.group, self._state.store)
        if group is not None and group.finished:
            self._state.overviews.group(group, self._state.store)

    def _stopping(self) -> bool:
        return self._stopped.is_set() or self._state.run_manager.stopping
