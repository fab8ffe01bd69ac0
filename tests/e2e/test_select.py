"""`--select`: the filter language chooses cases, by their content or by the results of a run."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import assay
from e2e.projects import ASSAY, Project, outcomes


def case(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "input": name,
        "expect": {"response_contains": ["yes"]},
    } | more


@pytest.fixture
def shop(home: Project) -> Project:
    """Two suites: refunds fail, one order is flaky, all else passes."""
    replies = {"refund": "no", "flaky": ["yes", "no"], "invoice": "yes", "late": "yes"}
    home.write(
        "assay.yaml", {"targets": [{"name": "a", "provider": "scripted", "replies": replies}]}
    )
    home.write(
        "evals/billing.eval.yaml",
        {
            "cases": [
                case("refund-1", tags=["billing", "slow"]),
                case("refund-2", tags=["billing"]),
                case("invoice", tags=["billing"], description="Where is my Invoice?"),
            ]
        },
    )
    judge = {"type": "contains", "name": "polite", "value": "yes"}
    home.write(
        "evals/orders.eval.yaml",
        {"name": "Orders", "cases": [case("flaky"), case("late", evaluators=[judge])]},
    )
    return home


def selected(project: Project, *arguments: str) -> list[str]:
    return list(outcomes(project.call("run", "evals", *arguments, "--json", code=None).stdout))


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("tag:billing -tag:slow", ["refund-2", "invoice"]),
        ("id:refund-*", ["refund-1", "refund-2"]),
        ("id:refund-1,late", ["refund-1", "late"]),
        ("suite:orders", ["flaky", "late"]),
        ("suite:Orders", ["flaky", "late"]),
        ("suite:evals/orders.eval.yaml -id:late", ["flaky"]),
        ("evaluator:polite", ["late"]),
        ("evaluator:contains", ["late"]),
        ('"my invoice"', ["invoice"]),
        ("REFUND-2", ["refund-2"]),
    ],
)
def test_cases_are_selected_by_their_content(shop: Project, filter: str, found: list[str]) -> None:  # noqa: A002
    assert selected(shop, "--select", filter) == found


def test_results_of_a_run_select_cases(shop: Project) -> None:
    shop.call("run", "evals", "--repeat", "2", code=1)
    of = ("--of", "latest", "--repeat", "2")
    assert selected(shop, "--select", "outcome:failed -flaky", *of) == ["refund-1", "refund-2"]
    shop.call("baseline", "set", "full", "latest", "--accept", code=None)
    [full] = [r for r in runs(shop) if r["totalCases"] == 5]
    of = ("--of", full["runId"], "--repeat", "2")
    assert selected(shop, "--select", "flaky", *of) == ["flaky"]
    assert selected(shop, "--select", "-outcome:failed score>0.9", *of) == ["invoice", "late"]
    done = shop.call("run", "evals", "--select", "score>2", *of, code=5)
    assert f"no case of the run {full['runId']} matches --select 'score>2'" in done.stdout


def runs(project: Project) -> list[dict[str, Any]]:
    return list(json.loads(project.call("runs", "list", "--json").stdout))


def test_results_need_a_run(shop: Project) -> None:
    done = shop.call("run", "evals", "--select", "outcome:failed score<1", code=2)
    assert "needs results (outcome, score): name the run" in done.stderr
    assert "--of RUN" in done.stderr
    done = shop.call("run", "evals", "--of", "latest", code=2)
    assert "--of latest has no effect: give --select FILTER too" in done.stderr
    done = shop.call("run", "evals", "--select", "flaky", "--of", "nothing", code=2)
    assert "the store has no run or baseline 'nothing'" in done.stderr
    assert runs(shop) == []


def test_a_rerun_and_a_regrade_select_by_the_run_they_are_based_on(shop: Project) -> None:
    shop.call("run", "evals", "--repeat", "2", code=1)
    again = shop.call("run", "--rerun-failed", "latest", "--select", "flaky", "--json", code=None)
    assert list(outcomes(again.stdout)) == ["flaky"]
    [full] = [r["runId"] for r in runs(shop) if r["totalCases"] == 5]
    regraded = shop.call("regrade", full, "--select", "outcome:passed", "--json", code=None)
    assert list(outcomes(regraded.stdout)) == ["invoice", "late"]


def test_all_mistakes_are_reported_with_their_columns(shop: Project) -> None:
    done = shop.call("run", "evals", "--select", "tga:billing outcome:fialed score>", code=2)
    assert done.stderr.splitlines() == [
        "assay: filter, column 1: unknown field 'tga': put a text to search for in quotes"
        " (did you mean 'tag'?)",
        "assay: filter, column 21: outcome cannot be 'fialed' (did you mean 'failed'?)",
        "assay: filter, column 34: 'score' needs a value",
    ]
    with pytest.raises(assay.AssayError, match="column 1: unknown field 'tga'"):
        assay.run(str(shop.root / "evals"), target="a", select="tga:billing")


def test_a_terminal_shows_a_caret_below_each_mistake(shop: Project) -> None:
    ours, theirs = pty.openpty()
    with closing(os.fdopen(ours, "rb", 0)) as screen:
        arguments = [ASSAY, "run", "evals", "--select", "tag:a outcome:fialed"]
        subprocess.run(arguments, cwd=shop.root, stderr=theirs, stdout=theirs, check=False)
        os.close(theirs)
        lines = screen.read(10_000).decode().split("\r\n")
    assert lines[1:3] == ["  tag:a outcome:fialed", "                ^"]


def test_shards_and_resumed_runs_keep_the_selection(shop: Project) -> None:
    parts = [selected(shop, "--select", "tag:billing", "--shard", f"{n}/2") for n in (1, 2)]
    assert parts == [["refund-1", "invoice"], ["refund-2"]]
    merged = shop.call("runs", "merge", *[r["runId"] for r in runs(shop)], "--json")
    record = json.loads(merged.stdout)
    shown = json.loads(shop.call("runs", "show", record["runId"], "--json").stdout)
    assert shown["suites"][0]["options"]["select"] == "tag:billing"
    shop.call("baseline", "set", "main", record["runId"], code=1)  # it is partial


def test_a_run_selected_by_results_can_be_resumed(shop: Project) -> None:
    shop.call("run", "evals", code=1)
    flags = (
        "--select",
        "outcome:failed",
        "--of",
        "latest",
        "--max-failures",
        "1",
        "--workers",
        "1",
    )
    shop.call("run", "evals", *flags, code=1)
    more = (*flags[:4], "--max-failures", "9", "--resume")
    done = shop.call("run", "evals", *more, "--json", code=1)
    assert outcomes(done.stdout) == {"refund-1": "failed", "refund-2": "failed"}
    assert len(runs(shop)) == 2


def test_streamed_suites_are_selected_too(home: Project) -> None:
    cases = [case(f"c{n}", tags=[f"t{n % 3}"]) for n in range(4000)]
    home.write("big.jsonl", "".join(json.dumps(c) + "\n" for c in cases))
    seen = [{"id": c["id"], "response": "yes" if n % 2 else "no"} for n, c in enumerate(cases)]
    home.write("seen.jsonl", "".join(json.dumps(s) + "\n" for s in seen))
    target = ("--target", "replay:seen.jsonl")
    home.call("run", "big.jsonl", *target, "--select", "tag:t1 id:c1*", code=1)
    [run] = runs(home)
    expected = [n for n in range(4000) if n % 3 == 1 and str(n).startswith("1")]
    assert run["totalCases"] == len(expected)
    again = home.document(
        "big.jsonl", *target, "--select", "outcome:failed", "--of", "latest", code=1
    )
    assert list(outcomes(again)) == [f"c{n}" for n in expected if n % 2 == 0]


def test_python_takes_the_same_filter(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.root)
    first = assay.run("evals", target="a", select="suite:billing")
    assert [c.id for s in first.suites for c in s.cases] == ["refund-1", "refund-2", "invoice"]
    second = assay.run("evals", target="a", select="outcome:passed", of=first.id)
    assert [c.id for s in second.suites for c in s.cases] == ["invoice"]
    assert Path(second.folder).exists()
