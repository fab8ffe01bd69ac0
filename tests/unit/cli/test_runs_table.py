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
        "group": None,
    }
    return finished | changes


@pytest.mark.parametrize("width", [20, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = table([row(), row(baselines=["main"], target="echo:\x1b[31m")], width)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_a_run_is_told_in_cells_below_their_heads() -> None:
    other = row(runId="01a1ec45-b89b", suites=["a", "b"], status="interrupted", failed=0)
    lines = table([row(), other], 120)
    assert lines[0].split() == ["Run", "Started", "(UTC)", "Result", "Target", "Suite"]
    assert lines[1].startswith("01a1ec45-b89a  2026-11-18 01:29  3 passed, 1 failed, 1 skipped ")
    assert "  interrupted, 3 passed, 1 skipped  " in lines[2]
    places = [line.index("http") for line in lines[1:]]
    assert places == [lines[0].index("Target")] * 2


def test_names_of_baselines_have_a_column_when_there_are_any() -> None:
    lines = table([row(), row(baselines=["main", "best"])], 120)
    assert lines[2].index("main, best") == lines[0].index("Baseline")


def test_runs_of_a_group_have_whole_ids_as_they_begin_in_the_same_millisecond() -> None:
    group = "01a1ec45-b899-7126-90c4-40a2e48279a2"
    ids = ["01a1ec45-b89a-7126-90c4-40a2e48279a3", "01a1ec45-b89a-7126-90c4-40a2e48279a4"]
    lines = table([row(runId=ids[0], group=group), row(runId=ids[1], group=group)], 200)
    assert lines[0].split() == ["Run", "Started", "(UTC)", "Result", "Group", "Target", "Suite"]
    for line, run_id in zip(lines[1:], ids, strict=True):
        assert line.startswith(run_id)
        assert " 01a1ec45-b899 " in line
