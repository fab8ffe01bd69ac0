"""What the page of a large run shows is made before it is opened, and outlives the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.model.calibration import Calibration
from assay.ports import Store
from assay.results import calibrations
from assay.server import preparing
from assay.server.app import create_app
from assay.server.pages import kept_overviews
from assay.server.pages.kept_overviews import Overviews, Stopped
from assay.server.pages.overviews import overview_of
from assay.server.preparing import Preparer
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from assay.stores.sqlite import SqliteStore
from server.conftest import ADDRESS, Agent
from server.test_pages import read_page
from server.test_runs import SUITES, finished
from timeouts import WAIT_SECONDS


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(
        MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    ) as opened:
        yield opened


class Makers:
    """Counts how many overviews are made."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.reached = threading.Event()

    def make(self, record: Any, *rest: Any) -> Any:
        self.made.append(record.id)
        self.reached.set()
        return overview_of(record, *rest)


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> Makers:
    makers = Makers()
    monkeypatch.setattr(kept_overviews, "overview_of", makers.make)
    return makers


def run_twice(project: Settings, store: Store) -> tuple[str, str, str]:
    """The ids of a baseline and of a run that is compared with it, and the page of that."""
    with TestClient(create_app(project, store), ADDRESS) as client:
        base = finished(client, SUITES)["runId"]
        store.set_baseline("main", base)
        run = finished(client, SUITES | {"options": {"baseline": "main"}})["runId"]
        return base, run, read_page(client, f"/runs/{run}")


def test_the_page_of_a_run_is_the_same_after_a_restart_and_not_made_again(
    project: Settings, store: Store, agent: Agent, makers: Makers
) -> None:
    _, run, page = run_twice(project, store)
    assert makers.made == [run]
    with TestClient(create_app(project, store), ADDRESS) as client:
        assert read_page(client, f"/runs/{run}") == page
    assert makers.made == [run]


def test_what_is_kept_is_made_again_once_it_would_be_wrong(
    project: Settings, store: Store, agent: Agent, makers: Makers
) -> None:
    _, run, _ = run_twice(project, store)
    calibrations.save(project.root, Calibration("id", "e", "t", "j", "l", "r", "c", 1, 2, 3, 4))
    Overviews().of(store.run(run), store, project)
    assert makers.made == [run, run]
    store.reopen(run)
    store.finish(run, "finished", "2026-01-31T12:00:00Z", {"totalCases": 2})
    again = Overviews().of(store.run(run), store, project)
    assert makers.made == [run, run, run]
    assert again.base == ""


def test_a_large_run_is_prepared_once_it_has_ended(
    project: Settings, store: Store, agent: Agent, makers: Makers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "LARGE", 2)
    monkeypatch.setattr(preparing, "SECONDS", 0.01)
    with TestClient(create_app(project, store), ADDRESS) as client:
        run = finished(client, SUITES)["runId"]
        assert makers.reached.wait(WAIT_SECONDS)
        read_page(client, f"/runs/{run}")
    assert makers.made == [run]


def test_a_run_that_cannot_be_prepared_does_not_stop_the_server(
    project: Settings, store: Store, agent: Agent, makers: Makers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "LARGE", 2)
    monkeypatch.setattr(preparing, "SECONDS", 3600.0)  # that of the server prepares nothing here

    def fails(record: Any, *rest: Any) -> Any:
        makers.made.append(record.id)
        raise IndexError

    app = create_app(project, store)
    with TestClient(app, ADDRESS) as client:
        runs = [finished(client, SUITES)["runId"] for _ in range(2)]
        monkeypatch.setattr(kept_overviews, "overview_of", fails)
        makers.made.clear()
        preparer = Preparer(app.state.assay)
        for _ in range(2):
            asyncio.run(preparer.prepare_newest())
    assert sorted(makers.made) == sorted(runs), "each is tried once"


def test_small_runs_and_runs_in_progress_are_not_prepared(
    project: Settings, store: Store, agent: Agent, makers: Makers
) -> None:
    app = create_app(project, store)
    with TestClient(app, ADDRESS) as client:
        finished(client, SUITES)
        asyncio.run(Preparer(app.state.assay).prepare_newest())
    assert makers.made == []


def test_a_server_that_stops_gives_up_what_it_prepares(
    project: Settings, store: Store, agent: Agent
) -> None:
    with TestClient(create_app(project, store), ADDRESS) as client:
        record = store.run(finished(client, SUITES)["runId"])
    kept = Overviews()
    with pytest.raises(Stopped):
        kept.of(record, store, project, lambda: True)
    assert not store.case_index.has(record.id)
    assert kept.of(record, store, project).word == "failed"
