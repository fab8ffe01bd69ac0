"""`assay regrade`: the same observations, today's evaluators, a new run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Outcomes = Callable[[Any], dict[str, str]]
FILE = "evals/a.eval.yaml"


def notes(place: Any) -> str:
    shown: str = place.assay("runs", "show").stdout
    return "\n".join(line for line in shown.splitlines() if line.startswith("Note"))


def test_todays_evaluators_judge_yesterdays_answers(place: Any, outcomes: Outcomes) -> None:
    old = place.run()
    (place.root / "seen.jsonl").unlink()  # nobody is asked
    suite = (place.root / FILE).read_text()
    place.write(FILE, suite.replace('["-4"]', '["No idea"]'))
    new = place.json("regrade", "latest", "--json", code=0)
    assert new["runId"] != old["runId"]
    assert outcomes(old)[f"{FILE}:cold"] == "failed"
    assert outcomes(new) == {
        f"{FILE}:warm": "passed",
        f"{FILE}:cold": "passed",
        f"{FILE}:later": "skipped",
    }
    warm_before, warm_now = (d["suites"][0]["cases"][0] for d in (old, new))
    assert warm_now["durationMs"] == warm_before["durationMs"] == 12.5
    assert new["suites"][0]["target"] == "replay:seen.jsonl"


def test_paths_and_filters_choose_what_is_graded(place: Any, outcomes: Outcomes) -> None:
    run_id = place.run()["runId"]
    place.write("evals/b.eval.yaml", "cases: [{id: new, input: x, expected_output: y}]")
    document = place.json("regrade", "latest", "evals", "--filter", "warm", "--json", code=0)
    assert outcomes(document) == {f"{FILE}:warm": "passed"}
    everything = place.json("regrade", run_id, "evals", "--json", code=1)
    assert "evals/b.eval.yaml:new" not in outcomes(everything), "the run did not ask it"


def test_repeats_are_graded_again_each(place: Any, outcomes: Outcomes) -> None:
    answers = [{"id": "cold", "response": text} for text in ("-4", "5")]
    place.write("seen.jsonl", answers)
    place.run("--repeat", "2", "--filter", "cold", code=1)
    document = place.json("regrade", "latest", "--json", code=1)
    (case,) = document["suites"][0]["cases"]
    assert [trial["outcome"] for trial in case["details"]["trials"]] == ["passed", "failed"]


def test_the_report_says_whose_observations_were_graded(place: Any) -> None:
    run_id = place.run()["runId"]
    place.assay("regrade", run_id, code=1)
    assert run_id in notes(place)
    assert "redacted" not in notes(place)


def test_the_report_says_when_redacted_text_was_graded(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")
    place.write("seen.jsonl", [{"id": "cold", "response": "-4 correct-horse-battery"}])
    place.run("--filter", "cold", code=0)
    stored = place.assay("export", "--format", "observations").stdout
    assert "correct-horse" not in stored
    shown = place.assay("regrade", "latest", code=0)
    assert "correct-horse" not in shown.output
    told = shown.output.replace("\n", " ")
    assert "1 observation was graded as redacted text" in told


def test_what_was_not_asked_then_is_errored_now(place: Any, outcomes: Outcomes) -> None:
    place.write("seen.jsonl", [{"id": "warm", "response": "0"}, {"id": "cold", "response": "-4"}])
    run_id = place.run("--max-failures", "1", "--workers", "1", code=1)["runId"]
    document = place.json("regrade", run_id, "--json", code=1)
    assert outcomes(document)[f"{FILE}:cold"] == "errored"
    cold = document["suites"][0]["cases"][1]
    assert "was not asked in that run" in cold["error"]


def test_a_regraded_run_can_be_compared_with_the_old_one(place: Any) -> None:
    place.run()
    place.assay("baseline", "set", "before")
    document = place.json("regrade", "before", "--baseline", "before", "--json", code=0)
    assert document["comparison"]["decision"] == "unchanged"


def test_a_run_that_is_not_there_is_refused(place: Any) -> None:
    assert "no run or baseline 'mian'" in place.assay("regrade", "mian", code=2).stderr
