"""One run on the terminal, on its page and in the HTML report: the same words and numbers."""

from __future__ import annotations

import io
from html import unescape

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.reporters import html, text
from assay.reporters.words import facts, opening, verdict, warnings
from assay.service.history import restored
from assay.settings import Settings
from server.conftest import Agent
from server.test_pages import read_page
from server.test_run_pages import text_of
from server.test_runs import SUITES, finished

#: The facts that a run page leaves out: its address has the id, and there is no folder to open.
ONLY_WHERE_COPIED = {"Run", "Results"}


@pytest.mark.parametrize("options", [{}, {"baseline": "main"}, {"baseline": "main", "repeat": 3}])
def test_a_run_is_described_in_the_same_words_everywhere(
    running: TestClient,
    store: Store,
    project: Settings,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
) -> None:
    before = finished(running, SUITES)
    running.put("/api/baselines/main", json={"run": before["runId"]})
    monkeypatch.setattr(agent, "known", {"Spain": "Madrid"})
    run_id = finished(running, SUITES | {"options": options})["runId"]
    run = restored(store.run(run_id), store, project)

    page = text_of(read_page(running, f"/runs/{run_id}"))
    report, terminal = io.StringIO(), io.StringIO()
    html.write(run, report)
    text.write(run, terminal)
    document = report.getvalue().partition("</style>")[2]
    places = {
        "page": page,
        "report": text_of(document.partition("<script")[0]),
        "terminal": unwrapped(terminal.getvalue()),
    }

    sentence, said = opening(run)
    for where in ("page", "report"):
        assert f"{verdict(run).capitalize()}: {sentence}" in places[where]
        for paragraph in said:
            assert paragraph in places[where]
    for name, shown in places.items():
        for reason in run.reasons:
            assert reason in shown, name
        for label, value in facts(run):
            if name == "terminal" or label not in ONLY_WHERE_COPIED:
                assert f"{label} {value}" in shown, name
        for label, note in warnings(run):
            assert f"{label} {note}" in shown, name
    assert run.reasons
    assert len(said) == 1 + ("baseline" in options)


def unwrapped(report: str) -> str:
    """The text of a report without its line breaks and columns."""
    return " ".join(unescape(report).split())
