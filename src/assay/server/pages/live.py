"""A run in progress: how far it is, on its page and as a stream of events for several runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from assay.charts.intervals import rate_words
from assay.errors import NotInStore
from assay.model.result import Outcome
from assay.model.run import RunRecord
from assay.ports import Store
from assay.redaction import cut
from assay.server.feed import HEARTBEAT_SECONDS, Progress, ServerSentEvent, Snapshot
from assay.server.pages.places import case_page, run_page
from assay.server.pages.rendering import page
from assay.server.result_pages import progress_of
from assay.server.run_manager import is_unfinished
from assay.server.runs import POLL_SECONDS, STREAM, EventStream, cancel, requested_run
from assay.server.schemas import uuid_or_none
from assay.server.state import State, state_of
from assay.service.cases import positions_in
from assay.stats.proportions import wilson
from assay.stats.sequential import Sequential
from assay.text import count, duration, money
from assay.web.content import visible

#: How often a stream is updated, and how many runs it may follow.
SECONDS, MAX_RUNS = 0.25, 20
#: The most characters of an id.
MAX_ID = 120


class Failure(msgspec.Struct, frozen=True):
    """One of the newest failures."""

    id: str
    outcome: Outcome
    address: str


class Live(msgspec.Struct, frozen=True):
    """How far a run is, in words. `texts` are by the names that the page has for them."""

    run: str
    done: int
    planned: int | None
    texts: dict[str, str]
    failures: list[Failure]


async def live_of(record: RunRecord, state: State) -> Live:
    """Where a run is now: known here, or else counted from the store."""
    handle = state.run_manager.find(record.id)
    if handle is not None:
        found = handle.feed.snapshot()
        # The positions of a stream are found by reading what it has so far.
        quick = not found.failures or all(suite.cases is not None for suite in record.suites[:-1])
        return await state.read(partial(described, found, record, state.store), quick=quick)
    progress = await state.scan(partial(progress_of, state.store, record))
    return described(Snapshot(progress), record, state.store)


def described(found: Snapshot, record: RunRecord, store: Store) -> Live:
    """The snapshot in words, with links to its failures."""
    positions = positions_in(store, record)
    failures = [
        Failure(
            visible(cut(trial.case_id, MAX_ID)),
            trial.outcome,
            case_page(record.id, positions.shown(trial.position)),
        )
        for trial in found.failures
    ]
    progress = found.progress
    return Live(record.id, progress.done, progress.planned, texts_of(found), failures)


def texts_of(found: Snapshot) -> dict[str, str]:
    """The numbers in words, each with what it is of."""
    progress = found.progress
    judged = progress.passed + progress.failed
    known = wilson(progress.passed, judged)
    planned = "" if progress.planned is None else f" of {progress.planned:,}"
    texts = {
        "done": f"{progress.done:,}{planned} trials",
        "passed": f"{progress.passed:,} of {count(judged, 'judged trial')}",
        "failed": f"{progress.failed:,} of {count(judged, 'judged trial')}",
        "errored": f"{progress.errored:,} of {count(progress.done, 'trial')}",
        "skipped": f"{progress.skipped:,} of {count(progress.done, 'trial')}",
        "rate": rate_words(known) if known is not None else "none judged yet",
        "cost": f"{money(progress.cost_usd)} for {count(progress.done, 'trial')}",
        "left": _time_left(found, progress),
    }
    if found.e_value is not None:
        limit = 1 / Sequential().alpha
        texts["evidence"] = f"{found.e_value:.3g} of {limit:g} that decide it"
    return texts


def _time_left(found: Snapshot, progress: Progress) -> str:
    if progress.planned is None or not found.speed:
        return "not known"
    left = max(progress.planned - progress.done, 0) / found.speed
    return f"about {duration(1000 * left)}"


async def follow(request: Request) -> Response:
    """The stream of `/live?runs=ID,ID`: where each run is, at most four times a second."""
    ids = [uuid_or_none(text) for text in request.query_params.get("runs", "").split(",")]
    known = [run_id for run_id in ids if run_id is not None][:MAX_RUNS]
    return EventStream(_encoded(_events(known, state_of(request))), headers=STREAM)


async def _encoded(events: AsyncIterator[ServerSentEvent]) -> AsyncIterator[bytes]:
    async for event in events:
        yield event.encoded()


async def _events(ids: Sequence[str], state: State) -> AsyncIterator[ServerSentEvent]:
    """What changed about the runs, until all have ended or the server stops."""
    sent: dict[str, Live] = {}
    left, number, silent = list(ids), 0, 0.0
    while left and not state.run_manager.stopping:
        polled = False
        for run_id in list(left):
            found = await _current(run_id, state)
            if found is None:
                left.remove(run_id)
                number += 1
                yield ServerSentEvent("finished", str(number), {"run": run_id})
            elif sent.get(run_id) != found:
                sent[run_id], silent = found, 0.0
                number += 1
                yield ServerSentEvent("live", str(number), found)
            polled = polled or state.run_manager.find(run_id) is None
        pause = POLL_SECONDS if polled else SECONDS
        silent += pause
        if silent >= HEARTBEAT_SECONDS:
            silent = 0.0
            yield ServerSentEvent("", "", {})
        await asyncio.sleep(pause if left else 0)


async def _current(run_id: str, state: State) -> Live | None:
    """Where a run is; None if it has ended, or was deleted."""
    try:
        record = await state.read(lambda: state.store.run(run_id))
    except NotInStore:
        return None
    return await live_of(record, state) if is_unfinished(record) else None


async def stop(request: Request) -> Response:
    """Cancel a run."""
    record = await requested_run(request.path_params["id"], request)
    await cancel(record.id, request)
    return RedirectResponse(run_page(record.id), 303)


ROUTES = [page("/live", follow, "runs"), page("/runs/{id}/cancel", stop, method="POST")]
