"""`/trend`: the pass rate over the runs of each target."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from assay.model.run import SuiteHeader
from assay.ports import Store
from assay.testing.stores import make_run
from server.test_compare_page import links_of, words
from server.test_pages import read_page
from unit.charts.drawn_charts import HOSTILE

_COUNTS = {"errored": 0, "skipped": 0, "skippedAssertions": 0, "coverage": 1.0}


def add_run(
    store: Store, number: int, passed: int, *, target: str = "agent", key: str = "k", **more: Any
) -> str:
    """A finished run of 100 cases."""
    run_id = f"01938c4e-0000-7000-8000-{number:012}"
    counts = {"totalCases": 100, "passed": passed, "failed": 100 - passed, "comparability": key}
    counts |= {"totalDurationMs": 25_000.0, "estimatedCostUsd": 0.5} | _COUNTS
    environment = {"git": {"revision": f"{number:07}abcdef", "dirty": False}}
    started = f"2026-01-{number:02}T12:00:00Z"
    record = replace(make_run(run_id, **more), target=target, started_at=started)
    suites = [SuiteHeader("weather", "evals/weather.eval.yaml", cases=100)]
    store.begin(replace(record, environment=environment, suites=suites))
    summary = counts | {"suites": [counts], "verdict": {}}
    store.finish(run_id, "finished", started, summary)
    return run_id


def test_every_run_is_a_point_with_its_interval(client: TestClient, store: Store) -> None:
    runs = [add_run(store, number, 80 + number) for number in (1, 2, 3)]
    store.set_baseline("main", runs[1])
    page = read_page(client, "/trend")
    read = words(page)
    assert "newest: 83 % (74.5 to 89.1), 83 of 100" in read
    assert "0000003: 83 % (74.5 to 89.1), 83 of 100; 01938c4e-0000, 2026-01-03 12:00 UTC" in page
    assert "baseline 0000002: 82 %" in page
    assert "0000001 $0.5000" in read
    assert "0000001 250 ms" in read
    links = links_of(page)
    assert f"/runs/{runs[2]}" in links
    assert f"/compare?base=main&candidate={runs[2]}" in links


def test_other_questions_break_the_line(client: TestClient, store: Store) -> None:
    for number, key in ((1, "one"), (2, "one"), (3, "other")):
        add_run(store, number, 90, key=key)
    page = read_page(client, "/trend")
    assert page.count('class="break"') == 1
    assert "the questions changed: not comparable with the run before" in words(page)


def test_a_run_of_a_part_of_the_cases_is_hollow(client: TestClient, store: Store) -> None:
    add_run(store, 1, 90, plan={"limit": 100})
    page = read_page(client, "/trend")
    assert 'class="hollow"' in page
    assert "incomplete" in words(page)


def test_targets_have_their_own_trends_and_can_be_picked(client: TestClient, store: Store) -> None:
    add_run(store, 1, 70, target="old")
    add_run(store, 2, 90, target="new")
    both = words(read_page(client, "/trend"))
    assert "newest: 70 %" in both
    assert "newest: 90 %" in both
    alone = read_page(client, "/trend?target=new&suite=evals/weather.eval.yaml&last=1")
    assert "newest: 70 %" not in words(alone)
    assert alone.count(" selected>") == 2


def test_without_runs_it_says_what_makes_one(client: TestClient) -> None:
    assert "No finished run yet" in words(read_page(client, "/trend"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("target=agnet", "no run has a target 'agnet'; did you mean 'agent'"),
        ("suite=x", "no run has a suite 'x'"),
        ("last=0", "it must be a number from 1 to 60"),
        (f"last=000000006{'9' * 5000}", "it must be a number from 1 to 60"),
        ("last=many", "it must be a number from 1 to 60"),
        ("sweet=x", "is not known"),
    ],
)
def test_a_mistake_in_the_address_is_explained(
    client: TestClient, store: Store, query: str, said: str
) -> None:
    add_run(store, 1, 90)
    assert said in words(read_page(client, f"/trend?{query}", 400)).replace("No run", "no run")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isprintable() and name])
def test_hostile_targets_are_only_text(client: TestClient, store: Store, name: str) -> None:
    add_run(store, 1, 90, target=name)
    assert name[:20] in words(read_page(client, "/trend"))
