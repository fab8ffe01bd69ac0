"""The table of `assay runs list` on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from assay.cli.runs import table


def row(**changes: Any) -> dict[str, Any]:
    finished = {
        "runId": "01a1ec45-b89a-7126-90c4-40a2e48279a2",
        "startedAt": "2026-11-18T01:29:14.650Z",
        "status": "finished",
        "target": "http://127.0.0.1:8765/ask",
        "suites": ["evals/weather.eval.yaml"],
        "totalCases": 5,
        "passed": 3,
        "failed": 1,
        "errored": 0,
        "skipped": 1,
        "baselines": [],
    }
    return finished | changes


@pytest.mark.parametrize("width", [20, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = table([row(), row(baselines=["main"], target="echo:\x1b[31m")], width)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_a_run_is_told_in_cells_below_their_heads() -> None:
    lines = table([row(), row(suites=["a", "b"], status="interrupted", failed=0)], 120)
    assert lines[0].split() == ["Run", "Started", "(UTC)", "Result", "Target", "Suite"]
    assert lines[1].startswith("01a1ec45-b89a  2026-11-18 01:29  3 passed, 1 failed, 1 skipped ")
    assert "  interrupted, 3 passed, 1 skipped  " in lines[2]
    places = [line.index("http") for line in lines[1:]]
    assert places == [lines[0].index("Target")] * 2


def test_names_of_baselines_have_a_column_when_there_are_any() -> None:
    lines = table([row(), row(baselines=["main", "best"])], 120)
    assert lines[2].index("main, best") == lines[0].index("Baseline")
