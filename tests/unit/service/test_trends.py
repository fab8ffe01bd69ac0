"""`assay trend`: which runs, which rates, and how they are drawn."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from assay.cli.trend import chart, draw
from assay.service.matrix import run
from assay.service.trends import Point, trend
from assay.stats.proportions import wilson
from unit.conftest import Project, invoke


def point(passed: int, judged: int, target: str = "echo") -> Point:
    rate = wilson(passed, judged)
    assert rate is not None
    return Point("0198c0de-1", "2026-01-31T12:00:00Z", target, passed, judged, rate)


@pytest.fixture
def runs(project: Project) -> list[str]:
    """Two suites, three runs: 2 of 4, 3 of 4 and 4 of 4 pass."""
    for suite in ("a", "b"):
        cases = [{"id": f"c{n}", "input": str(n), "expected_output": "yes"} for n in range(2)]
        project.write(f"{suite}.yaml", json.dumps({"dataset": f"suite {suite}", "cases": cases}))
    seen = {"count": 0}

    def agent(good: int) -> Callable[[str], str]:
        def answer(question: str) -> str:
            seen["count"] += 1
            return "yes" if (seen["count"] - 1) % 4 < good else "no"

        return answer

    return [run(["a.yaml", "b.yaml"], target=agent(good), workers=1).id for good in (2, 3, 4)]


def test_the_newest_run_comes_last(runs: list[str]) -> None:
    found = trend()
    assert [p.run_id for p in found] == runs
    assert [(p.passed, p.judged) for p in found] == [(2, 4), (3, 4), (4, 4)]
    assert found[0].pass_rate == wilson(2, 4)
    assert [p.run_id for p in trend(last=2)] == runs[1:]


@pytest.mark.parametrize("name", ["a.yaml", "suite a"])
def test_a_suite_has_a_trend_of_its_own(runs: list[str], name: str) -> None:
    found, others = trend(name), trend("b.yaml")
    assert [p.judged for p in found] == [2, 2, 2]
    both = [p.passed + other.passed for p, other in zip(found, others, strict=True)]
    assert both == [2, 3, 4]


def test_an_unknown_suite_is_refused(runs: list[str]) -> None:
    found = invoke("trend", "--suite", "suite aa")
    assert found.exit_code == 2
    assert "no run has a suite 'suite aa'; did you mean 'suite a'" in found.stderr


def test_clusters_keep_their_interval(project: Project) -> None:
    cases = [
        {"id": f"c{n}", "input": "x", "expected_output": "x" if n else "y", "cluster": "one"}
        for n in range(4)
    ]
    project.write("a.yaml", json.dumps({"cases": cases}))
    run("a.yaml", target=lambda question: question)
    assert trend()[0].pass_rate.method == "wilson-clustered"
    assert trend("a.yaml")[0].pass_rate.method == "wilson-clustered"


def test_json(runs: list[str]) -> None:
    rows = json.loads(invoke("trend", "--json").stdout)
    assert [row["runId"] for row in rows] == runs
    assert rows[2]["passRate"]["estimate"] == 1.0
    assert rows[2]["passRate"]["low"] == pytest.approx(0.5101, abs=1e-5)


def test_text(runs: list[str]) -> None:
    out = invoke("trend").stdout.splitlines()
    assert len(out) == 5
    assert out[0].split() == ["Started", "(UTC)", "0", "%", "100", "%"]
    assert out[1].startswith("python:")
    assert "   50 % of 4  (15 % to 85 %) " in out[2]
    assert out[4].endswith("o|")


def test_the_id_that_is_shown_names_one_run(runs: list[str]) -> None:
    _, _, *lines = invoke("trend").stdout.splitlines()
    for run_id, line in zip(runs, lines, strict=True):
        shown = line.split()[2]
        assert invoke("runs", "show", shown, "--json").stdout.startswith(f'{{"runId":"{run_id}"')


def test_without_runs_there_is_nothing_to_draw(project: Project) -> None:
    found = invoke("trend")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "there is no finished run yet" in found.stderr
    assert json.loads(invoke("trend", "--json").stdout) == []


def test_the_chart_is_true_to_scale() -> None:
    assert chart(point(5, 10), 20) == "    ------o-----    "
    assert chart(point(10, 10), 20) == " " * 14 + "-----o"
    assert chart(point(0, 10), 20) == "o-----" + " " * 14
    assert chart(point(10**6, 10**6), 10) == " " * 9 + "o"


@pytest.mark.parametrize("width", [20, 80, 90, 100, 400])
def test_lines_fit_the_terminal_or_have_a_small_chart(width: int) -> None:
    name = "a target with quite a long name\x1b[31m"
    head, *lines = draw([point(5, 10), point(10, 10, name)], width)
    assert lines[0] == "echo"
    assert lines[2].startswith("a target with")
    assert "\x1b" not in "".join(lines)
    assert len({len(line) for line in (head, lines[1], lines[3])}) == 1
    if width >= 80:
        assert max(map(len, (head, *lines))) <= width


@pytest.fixture
def targets(project: Project) -> dict[str, list[str]]:
    """Runs of two targets in turn, by target."""
    cases = [{"id": "a", "input": "yes", "expected_output": "yes"}]
    project.write("a.yaml", json.dumps({"cases": cases}))
    project.write("no.jsonl", '{"id": "a", "response": "no"}\n')
    found: dict[str, list[str]] = {}
    for target in ("echo:", "replay:no.jsonl") * 2:
        found.setdefault(target, []).append(run("a.yaml", target=target).id)
    return found


def test_every_target_has_a_series_of_its_own(targets: dict[str, list[str]]) -> None:
    echo, replay = targets.values()
    assert [p.run_id for p in trend()] == [*echo, *replay]
    out = [line.split()[0] for line in invoke("trend").stdout.splitlines()[1:]]
    dates = {line for line in out if line[:2] == "20"}
    assert [line for line in out if line not in dates] == list(targets)
    assert [line in dates for line in out] == [False, True, True] * 2
    rows = json.loads(invoke("trend", "--json").stdout)
    assert [(row["runId"], row["target"]) for row in rows] == [
        (run_id, target) for target, ids in targets.items() for run_id in ids
    ]


def test_a_target_can_be_selected(targets: dict[str, list[str]]) -> None:
    echo = targets["echo:"]
    rows = json.loads(invoke("trend", "--target", "echo:", "--json").stdout)
    assert [row["runId"] for row in rows] == echo
    assert [p.run_id for p in trend(target="echo:", last=1)] == echo[1:]
    unknown = invoke("trend", "--target", "ecko:")
    assert unknown.exit_code == 2
    assert "no run has a target 'ecko:'; did you mean 'echo:'?" in unknown.stderr
