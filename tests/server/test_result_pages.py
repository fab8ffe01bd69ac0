"""Results are found by one scan, and answers are read only where they are needed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx2
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from assay.model.run import TrialRecord
from assay.ports import Store
from assay.server.app import create_app
from assay.server.result_pages import ResultQuery
from assay.server.state import MAX_SCANS, State
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from assay.testing.stores import make_run, make_trial, saved
from server.conftest import ADDRESS
from timeouts import WAIT_SECONDS
from unit import sample_runs

#: Letters that are others in lower case, what JSON escapes, and what lies between two texts.
TEXTS = st.text(st.sampled_from('aAbK\u212a\u00df\u017f\u00e9"\\/\n\t\x1f \u2028'), max_size=6)


class Watched:
    """Notes which trials of a store were read whole."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def trials(self, run_id: str, **options: Any) -> Iterator[TrialRecord]:
        for trial in self._store.trials(run_id, **options):
            self.read.append(trial.position)
            yield trial


def trial(position: int, response: str = "", **more: Any) -> TrialRecord:
    result = sample_runs.entry(f"c{position}", more.get("outcome", "passed"), description="d")
    del result["details"]["response"]
    encoded = json.dumps(result).encode()
    seen = more.pop("seen", None) or json.dumps({"response": response}).encode()
    return make_trial(position, result=encoded, observation=seen, **more)


def store_of(*trials: TrialRecord) -> Watched:
    store = MemoryStore()
    store.begin(make_run())
    saved(store, *trials)
    return Watched(store)


def page(store: Watched, search: ResultQuery) -> tuple[list[int], int, int | None]:
    found = msgspec.json.decode(search.page(cast("Store", store), store.run("run-1")))
    assert found["count"] == len(found["results"])
    return [case["position"] for case in found["results"]], found["total"], found["next"]


def test_without_words_only_the_page_is_read() -> None:
    outcomes = ("passed", "failed", "errored")
    store = store_of(*(trial(n, outcome=outcomes[n % 3]) for n in range(30)))
    assert page(store, ResultQuery(limit=3, skip=4)) == ([4, 5, 6], 30, 6)
    assert page(store, ResultQuery(outcome="failed", limit=2, after=6)) == ([7, 10], 10, 10)
    assert page(store, ResultQuery(outcome="skipped")) == ([], 0, None)
    assert store.read == [4, 5, 6, 7, 10]


def test_words_are_looked_for_once() -> None:
    store = store_of(*(trial(n, "rain" if n % 2 else "sun") for n in range(10)))
    assert page(store, ResultQuery(q="rain", limit=2, skip=1, after=1)) == ([5, 7], 5, 7)
    assert store.read == list(range(10))


def test_attempts_of_a_case_are_one_result() -> None:
    attempts = [trial(3, repeat=n, outcome=("passed", "failed")[n]) for n in range(2)]
    store = store_of(trial(2), *attempts, trial(4))
    assert page(store, ResultQuery(outcome="failed")) == ([3], 1, None)
    assert page(store, ResultQuery(limit=2, after=2)) == ([3, 4], 3, 4)


@given(TEXTS, TEXTS.filter(bool), st.booleans())
def test_words_are_found_however_the_answer_was_written(
    response: str, words: str, ascii_only: bool
) -> None:
    seen = json.dumps({"response": response}, ensure_ascii=ascii_only).encode()
    store = store_of(trial(0, seen=seen))
    text = "\n".join(("c0", "d", "", response)).casefold()
    expected = [0] if words.casefold() in text else []
    assert page(store, ResultQuery(q=words.casefold()))[0] == expected


def test_escaped_text_is_found() -> None:
    store = store_of(trial(0, seen=rb'{"response":"\u0052ain and\/or sun"}'))
    for words in ("rain", "and/or", "rain and/or sun"):
        assert page(store, ResultQuery(q=words))[0] == [0]


class Slow(MemoryStore):
    """Gives no results until it is let to."""

    def __init__(self) -> None:
        super().__init__()
        self.scans, self.open = 0, threading.Event()

    def trials(self, *which: Any, **options: Any) -> Iterator[TrialRecord]:
        self.scans += 1
        assert self.open.wait(WAIT_SECONDS)
        return super().trials(*which, **options)


RUN = "01a1ebc4-5245-7f4b-bb30-80cb18ae9575"


def test_many_searches_do_not_delay_other_requests(settings: Settings) -> None:
    store = Slow()
    store.begin(make_run(RUN))
    app = create_app(settings, store)

    async def scenario() -> tuple[int, int]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MAX_SCANS + 1))
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url=ADDRESS, timeout=WAIT_SECONDS
        ) as client:
            search = f"/api/runs/{RUN}/results?q=rain"
            searches = [asyncio.create_task(client.get(search)) for _ in range(10)]
            try:
                tagged = client.get("/api/test-cases?tag=rain")  # it needs a thread as well
                other = await asyncio.wait_for(tagged, WAIT_SECONDS / 3)
            finally:
                at_once = store.scans
                store.open.set()
            assert {found.status_code for found in await asyncio.gather(*searches)} == {200}
            return other.status_code, at_once

    status, at_once = asyncio.run(scenario())
    assert status == 200
    assert at_once <= MAX_SCANS
    assert store.scans == 10


def test_a_cancelled_search_keeps_its_slot_until_its_thread_ends(settings: Settings) -> None:
    held, scans = threading.Event(), list[int]()

    def scan() -> None:
        scans.append(1)
        assert held.wait(WAIT_SECONDS)

    async def scenario() -> int:
        app = create_app(settings, MemoryStore())
        state: State = app.state.assay
        for _ in range(5):
            before, waiting = len(scans), asyncio.create_task(state.scan(scan))
            has_room = not state.scans.locked()
            await asyncio.sleep(0)
            while has_room and len(scans) == before:  # its thread begins
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        at_once = len(scans)
        held.set()
        await state.scan(lambda: None)  # the turns come back
        return at_once

    assert asyncio.run(scenario()) == MAX_SCANS


def test_an_abandoned_search_is_not_made(settings: Settings) -> None:
    store = Slow()
    store.open.set()
    store.begin(make_run(RUN))
    sent: list[Any] = []

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    path = f"/api/runs/{RUN}/results"
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"q=rain", "headers": [(b"host", b"localhost")]}
    asyncio.run(create_app(settings, store)(scope, gone, send))
    assert (store.scans, sent) == (0, [])
