"""`assay regression add`: a recorded failure becomes a locked regression case."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from assay.errors import UsageError
from assay.service import bugs

GOLDEN = {
    "id": "gs-get_weather-001",
    "description": "the minus sign",
    "input": {"message": "How cold is it in Oslo?"},
    "expect": {
        "toolsCalled": ["get_weather"],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["-4", "{{seed:city}}"],
    },
}


@pytest.fixture
def failed(place: Any) -> Any:
    """A run with a golden case and cases of a YAML suite, some of which failed."""
    place.write("evals/seed-manifest.json", json.dumps({"city": "Oslo"}))
    place.write("evals/get_weather.golden.json", json.dumps([GOLDEN]))
    answer = {"id": GOLDEN["id"], "response": "4", "toolCalls": []}
    place.write("seen.jsonl", (place.root / "seen.jsonl").read_text() + json.dumps(answer))
    place.run()
    return place


def cases(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def test_a_golden_case_that_failed_is_added_and_locked(failed: Any) -> None:
    report = bugs.Report("latest/gs-get_weather-001", "WX-212")
    file, identity = bugs.capture(report, today=date(2026, 1, 15))
    assert file == failed.root / "evals" / "get_weather.regression.json"
    assert cases(file) == [
        {
            "id": "rg-get_weather-001",
            "description": "regression — the minus sign",
            "difficulty": "regression",
            "createdAt": "2026-01-15",
            "bugRef": "WX-212",
            "input": GOLDEN["input"],
            "expect": GOLDEN["expect"],
        }
    ]
    (row,) = failed.json("regression", "list", "--json")
    assert (row["id"], row["status"]) == (identity, "locked")
    failed.assay("validate", "evals", "--strict")


def test_the_command_takes_the_next_number_and_todays_date(failed: Any) -> None:
    add = ("regression", "add", "--from", "latest/gs-get_weather-001", "--bug")
    failed.assay(*add, "4f2a1c9")
    second = failed.assay(*add, "77b01de", "--description", "it was lost again")
    added = "evals/get_weather.regression.json: added and locked rg-get_weather-002\n"
    assert second.stdout == added
    one, two = cases(failed.root / "evals" / "get_weather.regression.json")
    assert date.fromisoformat(one["createdAt"])
    assert two["description"] == "regression — it was lost again"


def test_a_bug_that_has_its_case_gets_no_second_one(failed: Any) -> None:
    add = ("regression", "add", "--from", "latest/gs-get_weather-001", "--bug", "4f2a1c9")
    failed.assay(*add)
    again = failed.assay(*add, "--description", "it was lost again", code=2)
    file = "evals/get_weather.regression.json"
    assert f"{file} has rg-get_weather-001 already" in again.stderr
    assert len(cases(failed.root / file)) == 1
    failed.assay(*add, "--contains", "below zero")
    assert len(cases(failed.root / file)) == 2


def test_a_case_without_an_expect_block_needs_to_be_told(failed: Any) -> None:
    failed.write("evals/b.eval.yaml", "cases: [{id: oslo, input: Cold?, expected_output: '-4'}]")
    failed.write("seen.jsonl", [{"id": "oslo", "response": "4"}])
    failed.json("run", "evals/b.eval.yaml", "--target", "replay:seen.jsonl", "--json", code=1)
    add = ("regression", "add", "--from", "latest/oslo", "--bug", "1")
    assert "--contains or --tool-called" in failed.assay(*add, code=2).stderr
    more = ("--contains", "-4", "--contains", "Oslo", "--tool-called", "get_weather")
    failed.assay(*add, *more)
    (case,) = cases(failed.root / "evals" / "get_weather.regression.json")
    assert case["input"] == {"message": "Cold?"}
    assert case["expect"] == {"responseContains": ["-4", "Oslo"], "toolsCalled": ["get_weather"]}
    assert "'-4'" in case["description"], "the reason of the failure tells what the bug was"


def test_values_of_a_snapshot_have_to_be_replaced(failed: Any) -> None:
    groups = [["{{snapshot:now}}"], ["{{snapshot:now}}", "cold"]]
    params = {"tool": "get_weather", "paramName": "at", "assertion": "equals"}
    texts = {"responseContains": ["{{snapshot:now}} in Oslo"], "responseContainsAny": groups}
    assertions = [params | {"value": {"day": "{{snapshot:now}}"}}, params | {"value": 1}]
    tools = {"toolsCalled": [], "toolParams": assertions}
    expect = {"noToolErrors": True, "responseNonEmpty": True, **texts, **tools}
    failed.write("evals/get_weather.golden.json", json.dumps([GOLDEN | {"expect": expect}]))
    report = bugs.Report("latest/gs-get_weather-001", "WX-212", force=True)
    with pytest.raises(UsageError, match="say what should come in their place, by --contains"):
        bugs.capture(report)
    file, _ = bugs.capture(replace(report, contains=("-4",)))
    assert cases(file)[0]["expect"] == {
        "toolsCalled": [],
        "toolParams": [params | {"value": 1}],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["-4"],
        "responseContainsAny": [["cold"]],
    }


def test_the_tool_and_the_file_can_be_named(failed: Any) -> None:
    add = ("regression", "add", "--from", "latest/cold", "--bug", "1")
    assert "name it with --tool" in failed.assay(*add, code=2).stderr
    failed.assay(*add, "--tool", "forecast")
    assert cases(failed.root / "evals" / "forecast.regression.json")[0]["id"] == "rg-forecast-001"
    failed.assay(*add, "--file", "sea.regression.json")
    assert cases(failed.root / "sea.regression.json")[0]["id"] == "rg-sea-001"
    wrong = failed.assay(*add, "--file", "sea.json", code=2).stderr
    assert "sea.json: the file of the case is called <tool>.regression.json" in wrong
    other = ("--file", "sea.regression.json", "--tool", "lake")
    assert "lake.regression.json" in failed.assay(*add, *other, code=2).stderr


def test_a_result_that_did_not_fail_is_refused_unless_forced(failed: Any) -> None:
    add = ("regression", "add", "--bug", "1", "--from", "latest/warm")
    refused = failed.assay(*add, code=2).stderr
    assert "warm passed in the run" in refused
    assert "--force" in refused
    failed.assay(*add, "--force")
    assert cases(failed.root / "evals" / "get_weather.regression.json")


def test_a_file_that_changed_since_is_refused_unless_forced(failed: Any) -> None:
    suite = failed.root / "evals" / "a.eval.yaml"
    suite.write_text(suite.read_text() + "# another thought\n")
    add = ("regression", "add", "--bug", "1", "--from", "latest/cold", "--tool", "x")
    assert "evals/a.eval.yaml changed since the run" in failed.assay(*add, code=2).stderr
    failed.assay(*add, "--force")


def test_an_id_in_two_suites_is_named_with_its_suite(failed: Any) -> None:
    failed.write("evals/b.eval.yaml", "cases: [{id: cold, input: Cold?, expected_output: '-4'}]")
    failed.run()
    add = ("regression", "add", "--bug", "1", "--tool", "x", "--contains", "-4", "--from")
    refused = failed.assay(*add, "latest/cold", code=2).stderr
    assert "evals/a.eval.yaml:cold, evals/b.eval.yaml:cold" in refused
    failed.assay(*add, "latest/evals/b.eval.yaml:cold")
    failed.assay(*add, "latest/a:cold")
    first, second = cases(failed.root / "evals" / "x.regression.json")
    assert [first["input"]["message"], second["input"]["message"]] == ["Cold?", "How cold is it?"]


def test_a_baseline_with_a_slash_in_its_name_is_found(failed: Any) -> None:
    failed.assay("baseline", "set", "release/2")
    failed.assay("regression", "add", "--bug", "1", "--tool", "x", "--from", "release/2/cold")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("latest/clod", "has no case 'clod'; did you mean 'cold'?"),
        ("cold", "write RUN/CASE, as latest/cold"),
        ("mian/cold", "no run or baseline 'mian'"),
    ],
)
def test_a_result_that_is_not_there_is_told(failed: Any, source: str, message: str) -> None:
    add = ("regression", "add", "--bug", "1", "--from", source)
    assert message in failed.assay(*add, code=2).stderr


def test_a_bug_reference_is_required(failed: Any) -> None:
    add = ("regression", "add", "--from", "latest/cold", "--tool", "x")
    assert "--bug" in failed.assay(*add, code=2).stderr
    assert "the bug reference is empty" in failed.assay(*add, "--bug", " ", code=2).stderr


def test_a_conversation_is_no_regression_case(failed: Any) -> None:
    failed.write(
        "evals/c.eval.yaml",
        """\
cases:
  - id: talk
    input_messages:
      - {role: user, content: Hello}
      - {role: assistant, content: Hi}
      - {role: user, content: Cold?}
    expect: {response_contains: ["-4"]}
""",
    )
    failed.write("seen.jsonl", [{"id": "talk", "response": "4"}])
    failed.json("run", "evals/c.eval.yaml", "--target", "replay:seen.jsonl", "--json", code=1)
    add = ("regression", "add", "--from", "latest/talk", "--bug", "1", "--tool", "x")
    assert "the input of talk is 3 messages" in failed.assay(*add, code=2).stderr
