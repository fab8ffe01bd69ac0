"""Progress in a notebook, with a display that keeps what IPython would draw."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import assay
from assay.model.events import Notice, RunFinished, RunStarted
from assay.reporters.notebook import progress_line

CASES = [assay.Case(f"c{i}", "hi", expected_output="hi") for i in range(3)]


class Notebook:
    """IPython as a kernel has it: `display` draws below a cell, and its handle draws again."""

    def __init__(self, shell: Any) -> None:
        self.shell, self.drawn, self.cells = shell, list[str](), 0
        self.display = SimpleNamespace(display=self.draw)

    def get_ipython(self) -> Any:
        return self.shell

    def draw(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Notebook:
        assert raw
        assert display_id
        self.cells += 1
        self.update(data, raw=raw)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.drawn.append(data["text/plain"])


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    found = Notebook(SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return found


def test_arun_shows_progress_below_its_cell(notebook: Notebook) -> None:
    async def cell() -> assay.Run:
        return await assay.arun(CASES, target=lambda question: question, store="memory:")

    assert asyncio.run(cell()).passed
    assert notebook.drawn[0] == "[--------------------] 0 of 3 trials"
    assert notebook.drawn[-1].startswith("3 of 3 trials, finished after ")
    assert notebook.drawn[-1].endswith(": 3 passed")
    assert notebook.cells == 1


def test_run_does_too(notebook: Notebook) -> None:
    assay.run(CASES, target=lambda question: question, store="memory:")
    assert notebook.drawn[-1].endswith(": 3 passed")


def test_notices_stay_above_the_line_that_is_redrawn(notebook: Notebook) -> None:
    progress = progress_line()
    assert progress is not None
    for event in (RunStarted("run", "echo", 2), Notice("slow \x1b[31mtarget"), Notice("later")):
        progress(event)
    notice = "slow \\x1b[31mtarget"
    assert notebook.drawn[-1] == f"{notice}\nlater\n[--------------------] 0 of 2 trials"
    progress(RunFinished("finished"))
    assert notebook.drawn[-1].splitlines()[:2] == [notice, "later"]


def test_a_run_that_fails_leaves_no_line(notebook: Notebook) -> None:
    with pytest.raises(assay.AssayError):
        assay.run(CASES, target="no-such-target", store="memory:")
    assert not any(notebook.drawn[-1:])


def test_the_shell_of_a_terminal_shows_it_on_stderr(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.shell = object()
    assay.run(CASES, target=lambda question: question, store="memory:")
    assert "3 of 3 trials" in capsys.readouterr().err
    assert not notebook.drawn


def test_nothing_is_shown_elsewhere(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.shell = None  # IPython was imported, but does not run this code
    assert progress_line() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assay.run(CASES, target=lambda question: question, store="memory:")
    assert capsys.readouterr() == ("", "")
    assert not notebook.drawn
