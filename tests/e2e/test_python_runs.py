"""Runs from Python: `assay.run`, `arun`, `regrade`, `compare`."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.errors import UsageError
from timeouts import WAIT_SECONDS


def answer(question: str) -> dict[str, Any]:
    if "warm" in question:
        return {"response": "It is 21.", "toolCalls": [{"name": "get_weather", "success": True}]}
    return {"response": "No idea.", "toolCalls": []}


def test_a_function_is_run_on_suites(place: Any) -> None:
    run = assay.run(assay.load("evals"), target=answer)
    assert isinstance(run, assay.Run)
    assert not run.passed
    assert run.exit_code == 1
    assert "FAILED evals/a.eval.yaml:5 cold" in run.report()
    (suite,) = run.suites
    assert isinstance(suite, assay.EvalSuiteResult)
    assert [case.outcome for case in suite.cases] == ["passed", "failed", "skipped"]
    assert run.to_dict() == json.loads(run.report("json"))
    assert repr(run) == f"<Run {run.id}: 1 of 3 passed, exit code 1>"
    assert repr(run.suites) == "(<EvalSuiteResult a: 1 of 3 passed>,)"


def test_paths_and_options_are_those_of_the_command(place: Any) -> None:
    run = assay.run("evals", target="replay:seen.jsonl", filter="warm", repeat=1)
    assert run.passed, run.report()
    assert run.summary.total_cases == 1
    with pytest.raises(UsageError, match="wrokers"):
        assay.run("evals", target=answer, wrokers=3)  # type: ignore[call-overload]


def test_run_works_inside_a_running_loop(place: Any) -> None:
    async def notebook() -> assay.Run:
        return assay.run("evals", target=answer)

    assert asyncio.run(notebook()).summary.passed == 1


def test_arun_runs_in_the_loop_of_its_caller(place: Any) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def agent(question: str) -> str:
        loops.append(asyncio.get_running_loop())
        return "21"

    async def main() -> bool:
        await assay.arun("evals", target=agent)
        return all(loop is asyncio.get_running_loop() for loop in loops)

    assert asyncio.run(main())
    assert loops


def test_run_asks_an_async_function_on_one_loop_which_ends_with_the_run(place: Any) -> None:
    threads: set[threading.Thread] = set()
    loops: set[asyncio.AbstractEventLoop] = set()

    async def agent(question: str) -> dict[str, Any]:
        threads.add(threading.current_thread())
        loops.add(asyncio.get_running_loop())
        return answer(question)

    async def notebook() -> assay.Run:
        return assay.run("evals", target=agent)

    assert asyncio.run(notebook()).summary.passed == 1
    (thread,), (loop,) = threads, loops
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    assert loop.is_closed()


@pytest.mark.parametrize("blocks", [True, False])
def test_run_leaves_an_async_function_that_hangs(place: Any, blocks: bool) -> None:
    release = threading.Event()

    async def agent(question: str) -> str:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0 if blocks else 0.01)
            if blocks:
                release.wait(WAIT_SECONDS)
        return "21"

    run = assay.run("evals", target=agent, timeout_seconds=0.1)
    release.set()
    for thread in threading.enumerate():
        if thread.name == "assay-loop" and blocks:
            thread.join(WAIT_SECONDS)  # it comes free, and ends
            assert not thread.is_alive()
    assert run.exit_code == 3
    assert run.summary.errored == 2


def test_arun_does_not_wait_for_a_function_that_is_not_cancelled(place: Any) -> None:
    release = asyncio.Event()

    async def agent(question: str) -> str:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return "21"

    async def main() -> assay.Run:
        run = await assay.arun("evals", target=agent, timeout_seconds=0.1)
        release.set()
        return run

    assert asyncio.run(main()).summary.errored == 2


def test_a_run_is_regraded_and_compared(place: Any) -> None:
    run = assay.run("evals", target=answer)
    suite = place.root / "evals" / "a.eval.yaml"
    suite.write_text(suite.read_text().replace('["-4"]', '["No idea"]'))
    again = assay.regrade(run.id)
    assert again.passed, again.report()
    comparison = assay.compare(run, again)
    assert comparison.not_comparable == (assay.CaseRef("evals/a.eval.yaml", "cold"),)
    assert assay.compare(run.id, "latest").pairs == comparison.pairs == 1


def test_runs_of_other_stores_are_compared(place: Any) -> None:
    one = assay.run("evals", target=answer, store="memory:")
    other = assay.run("evals", target=answer, store="sqlite:other.db")
    assert assay.compare(one, other).decision == "unchanged"


def test_observations_of_a_run_can_be_replayed(place: Any) -> None:
    run = assay.run("evals", target=answer)
    lines = [json.loads(line) for line in run.observations()]
    assert [line["id"] for line in lines] == ["warm", "cold"]
    place.write("again.jsonl", lines)
    again = assay.run("evals", target="replay:again.jsonl")
    assert assay.compare(run, again).decision == "unchanged"


HELD: dict[str, Callable[[assay.Run], Any]] = {
    "a copy": lambda run: copy.copy(run),
    "another copy": lambda run: msgspec.structs.replace(run, notes=()),
    "a suite": lambda run: run.suites[0],
    "an iterator": lambda run: run.suites[0].cases,
    "a function of a suite": lambda run: run.suites[0].entries,
    "a run without its suites": lambda run: msgspec.structs.replace(run, suites=()),
    "the store": lambda run: run.store,
}


def read(held: Any) -> int:
    """How many cases there are by whatever is left of the run."""
    if isinstance(held, assay.Run):
        return len(list(held.observations())) + 1  # one is skipped
    if isinstance(held, assay.EvalSuiteResult):
        return len(list(held.cases))
    if hasattr(held, "facts"):
        return len(list(held.facts(held.runs(1)[0].id)))
    return len(list(held() if callable(held) else held))


@pytest.mark.parametrize("what", HELD)
def test_the_store_is_open_for_as_long_as_a_part_of_the_run_is_held(place: Any, what: str) -> None:
    gc.collect()
    before = store_threads(), open_files(place.root)
    held = HELD[what](assay.run("evals", target=answer))
    gc.collect()
    assert read(held) == 3
    del held
    gc.collect()
    assert (store_threads(), open_files(place.root)) == before


def test_the_store_is_closed_as_soon_as_nobody_holds_the_run(place: Any) -> None:
    gc.collect()
    before = store_threads(), open_files(place.root)
    gc.disable()
    try:
        assay.run("evals", target=answer)
        assert (store_threads(), open_files(place.root)) == before
    finally:
        gc.enable()


def store_threads() -> int:
    """Only those of stores: other threads end when they had nothing to do for a while."""
    return sum(thread.name == "assay-store" for thread in threading.enumerate())


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return [file for file in found if file.startswith(str(folder))]


def test_options_can_be_made_and_checked(place: Any) -> None:
    options = assay.RunOptions(repeat=3)
    assert options.shown() == {"repeat": 3}


def test_errors_tell_python_code_what_to_give(place: Any) -> None:
    with pytest.raises(UsageError, match=r"give --target, or target= in Python \(for example"):
        assay.run("evals")
    with pytest.raises(UsageError, match="give --baseline, or baseline= in Python"):
        assay.run("evals", target=answer, stop_when="decided")
