"""Recorded transcripts of other tools are graded, and an unknown answer never passes a check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.one_suite_project import outcomes as outcomes_of

FORMATS = Path(__file__).parents[1] / "unit" / "observations" / "formats"
CHECK = {"expect": {"response_not_contains": ["cannot"]}}


def shape(name: str) -> Any:
    text = (FORMATS / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def outcomes(document: Any, suite: str) -> dict[str, str]:
    return {key.removeprefix(f"{suite}:"): value for key, value in outcomes_of(document).items()}


@pytest.mark.parametrize("suite", ["evals/b.eval.jsonl", "evals/b.eval.yaml"])
def test_a_check_that_something_is_absent_does_not_pass_on_an_unknown_answer(
    place: Any, suite: str
) -> None:
    names = ("otel_content_off", "question_only", "tau_bench", "responses_whole", "nothing")
    cases = [{"id": name, "input": "Hi", **CHECK} for name in names]
    place.write(
        suite, cases if suite.endswith("l") and "jsonl" in suite else json.dumps({"cases": cases})
    )
    seen = [{**shape(f"{name}.json"), "id": name} for name in names[:4]]
    place.write("seen.jsonl", [*seen, {"id": "nothing", "toolCalls": []}])
    document = place.json("run", suite, "--target", "replay:seen.jsonl", "--json", code=3)
    assert outcomes(document, suite) == {
        "otel_content_off": "errored",
        "question_only": "errored",
        "tau_bench": "passed",
        "responses_whole": "passed",
        "nothing": "errored",
    }
    result = place.assay("run", suite, "--target", "replay:seen.jsonl", code=3)
    assert "the answer is not in the record: the spans have no messages" in result.stdout


@pytest.mark.parametrize("suite", ["evals/b.eval.jsonl", "evals/b.eval.yaml"])
def test_a_folder_of_transcripts_is_a_target(place: Any, suite: str) -> None:
    cases = [
        {"id": "atif", "input": "Hi", "expect": {"tools_called": ["bash"]}},
        {"id": "claude", "input": "Hi", "expect": {"tools_called": ["Grep", "Edit"]}},
        {"id": "other", "input": "Hi", **CHECK},
    ]
    place.write(suite, cases if "jsonl" in suite else json.dumps({"cases": cases}))
    place.write("seen/atif.json", json.dumps(shape("atif.json")))
    place.write("seen/claude.jsonl", shape("claude_code_session.jsonl"))
    place.write("seen/unused.json", json.dumps({"response": "x"}))
    arguments = ("run", suite, "--target", "replay:seen")
    document = place.json(*arguments, "--json", code=3)
    assert outcomes(document, suite) == {"atif": "passed", "claude": "passed", "other": "errored"}
    result = place.assay(*arguments, code=3)
    assert "no recorded observation for 'other' in seen" in result.stdout
    assert "replay:seen: 1 file has an id that no selected case has" in result.output
