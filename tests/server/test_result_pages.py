"""Results of a run are filtered, sorted and paged; few searches are made at once."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.model.case_filter import folded
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


def trial(position: int, response: str = "", **more: Any) -> TrialRecord:
    result = sample_runs.entry(f"c{position}", more.get("outcome", "passed"), description="d")
    del result["details"]["response"]
    encoded = json.dumps(result).encode()
    seen = more.pop("seen", None) or json.dumps({"response": response}).encode()
    return make_trial(position, case_id=f"c{position}", result=encoded, observation=seen, **more)


def store_of(*trials: TrialRecord) -> MemoryStore:
    store = MemoryStore()
    store.begin(make_run())
    saved(store, *trials)
    return store


def page(store: Store, search: ResultQuery) -> tuple[list[int], int, str | None]:
    found = msgspec.json.decode(search.results(store, store.run("run-1")))
    assert found["count"] == len(found["results"])
    assert found["facets"]["total"] == found["total"]
    return [case["position"] for case in found["results"]], found["total"], found["next"]


def test_results_are_filtered_sorted_and_paged() -> None:
    outcomes = ("passed", "failed", "errored")
    scores = (1.0, 0.25, None)
    trials = (trial(n, outcome=outcomes[n % 3], score=scores[n % 3]) for n in range(30))
    store = store_of(*trials)
    assert page(store, ResultQuery(limit=3, skip=4)) == ([4, 5, 6], 30, "6")
    assert page(store, ResultQuery(outcome="failed", limit=2, after="6")) == ([7, 10], 10, "10")
    assert page(store, ResultQuery(outcome="skipped")) == ([], 0, None)
    search = {"filter": "id:c1* -outcome:passed", "sort": "-score"}
    assert page(store, ResultQuery(limit=5, **search)) == ([1, 10, 13, 16, 19], 8, "19:0.25")
    assert page(store, ResultQuery(limit=5, after="19:0.25", **search)) == ([11, 14, 17], 8, None)


def test_attempts_of_a_case_are_one_result() -> None:
    attempts = [trial(3, repeat=n, outcome=("passed", "failed")[n]) for n in range(2)]
    store = store_of(trial(2), *attempts, trial(4))
    assert page(store, ResultQuery(outcome="failed")) == ([3], 1, None)
    assert page(store, ResultQuery(filter="flaky")) == ([3], 1, None)
    assert page(store, ResultQuery(limit=2, after="2")) == ([3, 4], 3, "4")


@given(TEXTS, TEXTS.filter(bool), st.booleans())
def test_words_are_found_however_the_answer_was_written(
    response: str, words: str, ascii_only: bool
) -> None:
    seen = json.dumps({"response": response}, ensure_ascii=ascii_only).encode()
    store = store_of(trial(0, seen=seen))
    text = folded("\n".join(("c0", "d", "", response)))
    assert page(store, ResultQuery(q=words))[0] == ([0] if folded(words) in text else [])


def test_escaped_text_is_found() -> None:
    store = store_of(trial(0, seen=rb'{"response":"\u0052ain and\/or sun"}'))
    for words in ("rain", "and/or", "rain and/or sun"):
        assert page(store, ResultQuery(q=words))[0] == [0]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"filter": "outcome:failde"}, "column 9: outcome cannot be 'failde'"),
        ({"after": "x"}, "'x' is not a cursor of a page sorted by position"),
        ({"after": "3:0.5"}, "'3:0.5' is not a cursor of a page sorted by position"),
        ({"after": "3", "sort": "-score"}, "'3' is not a cursor of a page sorted by -score"),
        ({"after": '3:"x"', "sort": "score"}, "is not a cursor of a page sorted by score"),
        ({"after": '3:"\\u0000"', "sort": "id"}, "is not a cursor of a page sorted by id"),
    ],
)
def test_a_wrong_filter_or_cursor_is_refused(query: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        page(store_of(trial(0)), ResultQuery(**query))


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
