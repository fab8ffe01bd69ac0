"""`local`: works in a thread of this process, one piece after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from functools import partial

from assay.ports import WorkOrder
from assay.threads import call_in_thread
from assay.work_orders import close_worker, worker_of


class Local:
    """The executor for work that needs objects of this process, and for systems without fork."""

    async def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
        try:
            work = worker_of(order)
            for piece in pieces:
                yield await asyncio.wrap_future(call_in_thread(partial(work, piece)))
        finally:
            close_worker(order)
