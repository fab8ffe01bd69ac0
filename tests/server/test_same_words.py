"""One run on the terminal, on its page and in the HTML report: the same words and numbers."""

from __future__ import annotations

import io
from html import unescape

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.reporters import html, text
from assay.reporters.group_text import write_comparison, write_verdicts
from assay.reporters.group_words import (
    HOW_BEST,
    cell_words,
    counts_of,
    pair_cells,
    pair_words,
    run_words,
    standing,
    target_rows,
)
from assay.reporters.page import Page
from assay.reporters.terminal import Terminal
from assay.reporters.words import facts, opening, verdict, warnings
from assay.service.groups import group_result
from assay.service.history import restored
from assay.service.report import report as report_on
from assay.settings import Settings
from server.conftest import Agent
from server.test_pages import read_page
from server.test_run_pages import text_of
from server.test_runs import SUITES, finished
from unit.sample_groups import GROUP, TARGETS, fill_group

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


def test_a_group_is_described_in_the_same_words_everywhere(
    client: TestClient, store: Store, project: Settings
) -> None:
    targets = TARGETS | {"other": "P" * 10 + "EE"}
    records = fill_group(store, targets, cost_usd=0.001, judge_cost_usd=0.0001)
    runs = [restored(record, store, project) for record in records]
    group = group_result(GROUP, runs, store)
    report, terminal, markdown = io.StringIO(), io.StringIO(), io.StringIO()
    html.write_group(group, report)
    write_comparison(Page(terminal, Terminal(width=400)), group.comparison, all_pairs=True)
    write_verdicts(Page(terminal, Terminal(width=400)), group)
    report_on(group, "md", markdown)
    places = {
        "page": text_of(read_page(client, f"/groups/{GROUP}")),
        "report": text_of(report.getvalue().partition("</style>")[2]),
        "terminal": unwrapped(terminal.getvalue()),
        "markdown": text_of(unescape(markdown.getvalue())).replace(" |", ""),
    }
    found = group.comparison
    for name, shown in places.items():
        assert standing(found).sentence in shown, name
        assert counts_of(found)[1:] in shown, name
        assert HOW_BEST in shown, name
        for row in target_rows(found):
            assert " ".join(cell for cell in row.cells[:-1] if cell) in shown, name
            assert row.cells[-1] in shown, name
        for case in found.differing:
            for cell in case.cells:
                assert cell_words(cell) in shown, name
        for words in map(run_words, group.runs):
            assert words.sentence.lower() in shown.lower(), name
        for note in found.notes:
            assert note in shown, name
    for name in ("page", "report"):
        for pair in found.pairs:
            assert " ".join(pair_cells(pair)) in places[name], name
    for pair in found.pairs:
        assert pair_words(pair, len(found.pairs)) in places["terminal"]
