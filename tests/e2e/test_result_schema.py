"""Result files of every kind fit `assay schema result`, and are read back as they were written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from assay.model.result import CaseResult
from e2e.one_suite_project import OneSuiteProject, checked_result

VERDICT: dict[str, Any] = {"score": 0.9, "hits": ["polite"], "misses": [], "reasoning": "it greets"}
CHECKS = {"checks": [{"id": "polite", "satisfied": True, "reasoning": "it greets"}]}
CALLS = [{"name": "search", "params": {"q": "rain"}, "result": "none", "success": True}]
REPLIES: dict[str, Any] = {
    "right": {"response": "yes", "toolCalls": CALLS, "usage": {"inputTokens": 3}, "costUsd": 0.25},
    "wrong": "no",
    "flaky": ["yes", "no", "yes"],
    "broken": {"error": "the model is down"},
}
JUDGEMENTS = {"Polite?": json.dumps(VERDICT), "polite": json.dumps(CHECKS)}
OTHERS = ("failed", "errored", "skipped")
TOOLS = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "look_up"}]}
YES = {"type": "contains", "value": "yes"}
CALLS_TOO = TOOLS | {"name": "calls", "weight": 0}
BOTH = {"type": "composite", "name": "both", "evaluators": [YES, CALLS_TOO]}
GATED = BOTH | {"evaluators": [YES, CALLS_TOO | {"required": True}]}
OPTIONAL = {"type": "field_accuracy", "fields": [{"path": "b", "required": False}]}
CASES: list[dict[str, Any]] = [
    {"id": "right", "cluster": "c", "evaluators": [YES, TOOLS | {"weight": 0}, BOTH]},
    {"id": "gated", "input": "right", "evaluators": [GATED]},
    {"id": "unverified", "input": "right", "expected_output": "{}", "evaluators": [OPTIONAL]},
    {"id": "judged", "input": "right", "evaluators": [{"type": "llm_judge", "prompt": "Polite?"}]},
    {"id": "rubric", "input": "right", "rubrics": [{"id": "polite", "outcome": "greets"}]},
    {"id": "wrong", "critical": True, "evaluators": [YES]},
    {"id": "flaky", "evaluators": [YES]},
    {"id": "broken", "evaluators": [YES]},
    {"id": "later", "skip": "not yet", "evaluators": [YES]},
]
REPLAYED = [{"id": name, "response": "yes", "notes": ["from a log"]} for name in ("wrong", "flaky")]


@pytest.fixture
def project(place: OneSuiteProject) -> OneSuiteProject:
    def scripted(name: str, replies: Any) -> dict[str, Any]:
        return {"name": name, "provider": "scripted", "replies": replies}

    config = {
        "targets": [scripted("a", REPLIES), scripted("worse", ["no"]), scripted("j", JUDGEMENTS)],
        "defaults": {"target": "a"},
        "judge": "j",
    }
    place.write("assay.yaml", json.dumps(config))
    write_cases(place, CASES)
    place.write("seen.jsonl", REPLAYED)
    return place


def write_cases(place: OneSuiteProject, cases: list[dict[str, Any]]) -> None:
    place.write("evals/a.eval.yaml", json.dumps({"cases": [{"input": c["id"]} | c for c in cases]}))


def written(place: OneSuiteProject) -> list[dict[str, Any]]:
    """The result files of all runs, the oldest first; each is checked."""
    files = sorted((place.root / ".assay" / "runs").glob("*/*.json"))
    return [checked_result(file.read_bytes()) for file in files]


def cases_of(document: dict[str, Any]) -> dict[str, CaseResult]:
    return {c["id"]: msgspec.convert(c, CaseResult) for c in document["cases"]}


def test_outcomes_and_evaluators(project: OneSuiteProject) -> None:
    project.assay("run", "evals", code=1)
    (document,) = written(project)
    cases = cases_of(document)
    outcomes = {case.id: case.outcome for case in cases.values()}
    assert outcomes["right"] == outcomes["judged"] == outcomes["rubric"] == "passed"
    assert (outcomes["wrong"], outcomes["broken"], outcomes["later"]) == OTHERS
    right, gated = cases["right"].details, cases["gated"].details
    assert (right.tools_called, right.cost_usd, right.cluster) == (["search"], 0.25, "c")
    assert right.usage is not None
    assert right.evaluators[1].details["diff"]
    assert right.evaluators[2].details["members"]
    assert gated.evaluators[0].failed_gate
    assert cases["unverified"].details.evaluators[0].skipped
    assert cases["rubric"].details.evaluators[0].type == "rubric"
    assert document["statistics"]["judges"]


def test_repeats(project: OneSuiteProject) -> None:
    project.assay("run", "evals", "--repeat", "3", code=1)
    flaky = cases_of(*written(project))["flaky"]
    assert len(flaky.trials) == 3
    assert flaky.details.pass_rate == pytest.approx(2 / 3)


def test_a_baseline_and_re_asks(project: OneSuiteProject) -> None:
    write_cases(project, [{"id": "right", "evaluators": [YES]}])
    project.assay("run", "evals")
    project.assay("baseline", "set", "main")
    project.assay("run", "evals", "--target", "worse", "--baseline", "main", code=1)
    first, second = written(project)
    assert "baselineRunId" not in first
    assert second["baselineRunId"] == first["runId"]
    assert second["regressions"] == ["right"]
    assert sum(trial.confirms for trial in cases_of(second)["right"].trials) == 5


def test_a_run_that_stopped_early(project: OneSuiteProject) -> None:
    write_cases(project, [{"id": f"right {n}", "evaluators": [YES]} for n in range(30)])
    project.assay("run", "evals")
    project.assay("baseline", "set", "main")
    options = ("--baseline", "main", "--stop-when", "decided", "--workers", "1")
    project.assay("run", "evals", "--target", "worse", *options, code=1)
    summary = written(project)[1]["summary"]
    assert summary["totalCases"] == 30
    assert summary["skipped"] > 0


def test_a_run_that_gave_up(project: OneSuiteProject) -> None:
    project.assay("run", "evals", "--max-failures", "1", "--workers", "1", code=1)
    (document,) = written(project)
    assert any("max-failures is 1" in (case.error or "") for case in cases_of(document).values())


def test_recorded_answers(project: OneSuiteProject) -> None:
    project.assay("run", "evals", "--filter", "wrong", "--target", "replay:seen.jsonl")
    (document,) = written(project)
    assert cases_of(document)["wrong"].details.notes == ("from a log",)


def test_shards_and_the_run_that_they_are_merged_into(project: OneSuiteProject) -> None:
    write_cases(project, [{"id": f"wrong {n}", "evaluators": [YES]} for n in range(4)])
    for shard in ("1/2", "2/2"):
        file = f"{shard[0]}.json"
        project.assay("run", "evals", "--shard", shard, "-o", file, code=1)
    merged = project.json("runs", "merge", "1.json", "2.json", "--json")
    *shards, whole = written(project)
    assert whole["runId"] == merged["runId"]
    assert cases_of(whole) == cases_of(shards[0]) | cases_of(shards[1])


def test_rubric_cases_that_a_failed_case_of_their_tool_keeps_back(project: OneSuiteProject) -> None:
    (project.root / "evals/a.eval.yaml").unlink()
    golden = {"id": "gs-t-001", "description": "says yes", "input": {"message": "wrong"}}
    expect = {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True}
    golden_case = golden | {"expect": expect | {"responseContains": ["yes"]}}
    rubric = [{"dimension": "tone", "maxScore": 1, "criteria": "1 when polite"}]
    rubric_case = golden | {"id": "rb-t-001", "rubric": rubric}
    project.write("evals/t.golden.json", json.dumps([golden_case]))
    project.write("evals/t.rubric.json", json.dumps([rubric_case]))
    project.assay("run", "evals", code=1)
    documents = {document["tier"]: document for document in written(project)}
    assert cases_of(documents["golden"])["gs-t-001"].details.critical
    assert cases_of(documents["rubric"])["rb-t-001"].outcome == "skipped"


@pytest.mark.parametrize(
    "change",
    [{"tier": "bronze"}, {"cases": [{"id": "a"}]}, {"summary": {}}, {"runId": 3}],
)
def test_a_wrong_result_file_does_not_fit(project: OneSuiteProject, change: dict[str, Any]) -> None:
    project.assay("run", "evals", code=1)
    (document,) = written(project)
    assert not Draft202012Validator(project.json("schema", "result")).is_valid(document | change)


def test_keys_that_are_not_written_are_never_null(project: OneSuiteProject) -> None:
    properties = project.json("schema", "result")["$defs"]["Summary"]["properties"]
    assert properties["selected"] == {"type": "integer", "minimum": 0}
    assert {"type": "null"} in properties["coverage"]["anyOf"]
