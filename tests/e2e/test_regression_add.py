"""`assay regression add`: a recorded failure becomes a locked regression case."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from assay.errors import UsageError
from assay.service import bug_reports

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
    report = bug_reports.BugReport("latest/gs-get_weather-001", "WX-212")
    file, identity = bug_reports.regression_from_run(report, today=date(2026, 1, 15))
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


def test_an_expected_output_that_failed_is_taken_over(failed: Any) -> None:
    failed.write("evals/b.eval.yaml", "cases: [{id: oslo, input: Cold?, expected_output: '-4'}]")
    failed.write("seen.jsonl", [{"id": "oslo", "response": "4"}])
    failed.json("run", "evals/b.eval.yaml", "--target", "replay:seen.jsonl", "--json", code=1)
    add = ("regression", "add", "--from", "latest/oslo", "--bug", "1")
    more = ("--contains", "-4", "--contains", "Oslo", "--tool-called", "get_weather")
    failed.assay(*add, *more)
    (case,) = cases(failed.root / "evals" / "get_weather.regression.json")
    assert case["input"] == {"message": "Cold?"}
    assert case["expect"] == {
        "responseMatches": [r"^\s*-4\s*$"],
        "responseContains": ["-4", "Oslo"],
        "toolsCalled": ["get_weather"],
    }
    assert "'-4'" in case["description"], "the reason of the failure tells what the bug was"


def test_values_of_a_snapshot_have_to_be_replaced(failed: Any) -> None:
    groups = [["{{snapshot:now}}"], ["{{snapshot:now}}", "cold"]]
    params = {"tool": "get_weather", "paramName": "at", "assertion": "equals"}
    texts = {"responseContains": ["{{snapshot:now}} in Oslo"], "responseContainsAny": groups}
    assertions = [params | {"value": {"day": "{{snapshot:now}}"}}, params | {"value": 1}]
    tools = {"toolsCalled": [], "toolParams": assertions}
    expect = {"noToolErrors": True, "responseNonEmpty": True, **texts, **tools}
    failed.write("evals/get_weather.golden.json", json.dumps([GOLDEN | {"expect": expect}]))
    report = bug_reports.BugReport("latest/gs-get_weather-001", "WX-212", force=True)
    with pytest.raises(UsageError, match="state others with --contains"):
        bug_reports.regression_from_run(report)
    file, _ = bug_reports.regression_from_run(replace(report, contains=("-4",)))
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
    failed.assay(*add, "--force", "--contains", "degrees")
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


# What failed is taken over, and the new case fails on the recorded answer


def failing(place: Any, evaluators: list[Any], answer: dict[str, Any], **case: Any) -> None:
    """A recorded run of one case that failed."""
    written = {"id": "r", "input": "Refund order 7.", **case}
    if evaluators:
        written["evaluators"] = evaluators
    place.write("evals/r.eval.yaml", json.dumps({"cases": [written]}))
    place.write("seen.jsonl", [{"id": "r"} | answer])
    options = ("--target", "replay:seen.jsonl", "--json")
    place.json("run", "evals/r.eval.yaml", *options, code=1)


ADD = ("regression", "add", "--from", "latest/r", "--bug", "PAY-9")


def added(place: Any, *options: str, tool: str = "refund") -> Any:
    """The `expect` block of the case that was added; the case fails on the recorded answer."""
    place.assay(*ADD, *options)
    file = place.root / "evals" / f"{tool}.regression.json"
    case = cases(file)[-1]
    seen = json.loads((place.root / "seen.jsonl").read_text()) | {"id": case["id"]}
    place.write("again.jsonl", [seen])
    options = ("--target", "replay:again.jsonl", "--filter", case["id"])
    place.assay("run", str(file), *options, code=1)
    place.assay("validate", "--strict", str(file))
    return case["expect"]


def call(name: str, **params: Any) -> dict[str, Any]:
    return {"name": name, "params": params, "success": True}


def param(name: str, value: Any, assertion: str = "equals") -> dict[str, Any]:
    return {"tool": "refund", "paramName": name, "assertion": assertion, "value": value}


def test_arguments_of_a_step_become_tool_params(place: Any) -> None:
    args = {
        "amount": 42.5,
        "order": {"id": 7, "lines": [{"sku": "a"}, {"sku": {"regex": "^b"}}]},
        "reason": {"one_of": ["late", "broken"]},
        "note": {"exists": False},
        "rate": {"gte": 1},
        "a.b": 1,
        "deep": {"c.d": 2},
    }
    step = {"tool": "refund", "args": args}
    made = call("refund", amount=43.5)
    trajectory = {"type": "tool_trajectory", "expected": [{"tool": "find"}, step]}
    failing(place, [trajectory], {"response": "Done.", "toolCalls": [call("find"), made]})
    assert added(place) == {
        "toolParams": [
            param("amount", 42.5),
            param("order.id", 7),
            param("order.lines[0].sku", "a"),
            param("order.lines[1].sku", "^b", "matches"),
            param("reason", ["late", "broken"], "oneOf"),
            {"tool": "refund", "paramName": "note", "assertion": "notExists"},
            param("a.b", 1),
        ]
    }


def test_arguments_of_expected_messages_become_tool_params(place: Any) -> None:
    said = {"role": "assistant", "tool_calls": [{"tool": "refund", "input": {"amount": 42.5}}]}
    seen = {"response": "Done.", "toolCalls": [call("refund", amount=43.5)]}
    failing(place, [], seen, expected_output=[said])
    assert added(place) == {"toolParams": [param("amount", 42.5)]}


@pytest.mark.parametrize(
    ("keys", "calls", "expect"),
    [
        ({"expected": ["refund"]}, [], {"toolsCalled": ["refund"]}),
        ({"mode": "any_order", "minimums": {"refund": 2}}, ["refund"], {"toolsCalled": 2}),
        ({"forbidden": ["refund", "b"]}, ["refund"], {"toolsNotCalled": ["refund"]}),
        ({"maximums": {"refund": 0}}, ["refund"], {"toolsNotCalled": ["refund"]}),
        ({"mode": "exact", "expected": []}, ["refund"], {"toolsNotCalled": ["refund"]}),
        (
            {"expected": ["find", "refund"]},
            ["refund", "find"],
            {"toolsCalled": ["find", "refund"], "toolsCalledMode": "sequence"},
        ),
    ],
)
def test_other_parts_of_a_trajectory_are_taken_over(
    place: Any, keys: dict[str, Any], calls: list[str], expect: dict[str, Any]
) -> None:
    steps = [{"tool": name} for name in keys.get("expected", ())]
    keys = keys | ({"expected": steps} if "expected" in keys else {})
    answer = {"response": "Done.", "toolCalls": [call(name) for name in calls]}
    failing(place, [{"type": "tool_trajectory", **keys}], answer)
    if expect == {"toolsCalled": 2}:
        expect = {"toolsCalled": ["refund", "refund"]}
    assert added(place, "--tool", "refund") == expect


@pytest.mark.parametrize(
    ("entry", "response", "expect"),
    [
        ({"type": "contains", "values": ["a", "b"]}, "a", {"responseContains": ["a", "b"]}),
        ({"type": "not_contains", "value": "a"}, "a", {"responseNotContains": ["a"]}),
        ({"type": "contains_any", "values": ["a", "b"]}, "", {"responseContainsAny": [["a", "b"]]}),
        ({"type": "not_contains_any", "values": ["a"]}, "a", {"responseNotContains": ["a"]}),
        ({"type": "contains_all", "values": ["a", "b"]}, "b", {"responseContains": ["a", "b"]}),
        ({"type": "icontains", "value": "$5 (USD)"}, "", {"responseMatches": [r"(?i)\$5 \(USD\)"]}),
        ({"type": "starts_with", "value": "a."}, "b", {"responseMatches": [r"^a\."]}),
        ({"type": "ends_with", "value": "a?"}, "b", {"responseMatches": [r"a\?$"]}),
        ({"type": "regex", "value": "^a+$"}, "b", {"responseMatches": ["^a+$"]}),
        ({"type": "equals", "value": " a|b "}, "a", {"responseMatches": [r"^\s*a\|b\s*$"]}),
        ({"type": "is_json"}, "b", {"jsonValid": True}),
        ({"type": "json_schema", "value": {"type": "null"}}, "1", {"jsonSchema": {"type": "null"}}),
        (
            {
                "type": "composite",
                "evaluators": [{"type": "contains", "value": "a"}, {"type": "is_json"}],
            },
            "b",
            {"responseContains": ["a"], "jsonValid": True},
        ),
    ],
)
def test_checks_of_texts_are_taken_over(
    place: Any, entry: dict[str, Any], response: str, expect: dict[str, Any]
) -> None:
    failing(place, [entry], {"response": response, "toolCalls": []})
    assert added(place, "--tool", "refund") == expect


@pytest.mark.parametrize(
    ("entry", "expect"),
    [
        ({"type": "latency", "threshold": 100}, {"maxLatencyMs": 100}),
        ({"type": "cost", "budget": 0.5}, {"maxCostUsd": 0.5}),
        ({"type": "token_usage", "max_output": 5, "max_input": 1}, {"maxTokens": 5}),
        (
            {"type": "execution_metrics", "max_tool_calls": 1, "max_duration_ms": 100},
            {"maxToolCalls": 1, "maxLatencyMs": 100},
        ),
    ],
)
def test_limits_that_were_exceeded_are_taken_over(
    place: Any, entry: dict[str, Any], expect: dict[str, Any]
) -> None:
    took = {"durationMs": 101, "costUsd": 1, "usage": {"inputTokens": 9, "outputTokens": 6}}
    failing(place, [entry], {"response": "a", "toolCalls": [call("a"), call("b")], **took})
    assert added(place, "--tool", "refund") == expect


def test_only_checks_that_failed_are_taken_over_besides_the_block(place: Any) -> None:
    entries = [{"type": "contains", "value": "Done"}, {"type": "contains", "value": "42.5"}]
    answer = {"response": "Done.", "toolCalls": [call("refund")]}
    failing(place, entries, answer, expect={"tools_called": ["refund"]})
    assert added(place) == {"toolsCalled": ["refund"], "responseContains": ["42.5"]}


@pytest.mark.parametrize(
    ("options", "expect"),
    [
        (["--param", "refund.amount=42.5"], param("amount", 42.5)),
        (["--param", 'refund.order.id="7"'], param("order.id", "7")),
        (["--param", "refund.note=a=b"], param("note", "a=b")),
        (
            ["--param", "pay.v2.amount=1", "--tool", "refund"],
            param("amount", 1) | {"tool": "pay.v2"},
        ),
    ],
)
def test_an_argument_can_be_stated(place: Any, options: list[str], expect: Any) -> None:
    entry = {"type": "similarity", "value": "something else"}
    answer = {"response": "Done.", "toolCalls": [call("refund", amount=43.5), call("pay.v2")]}
    failing(place, [entry], answer)
    assert added(place, *options) == {"toolParams": [expect]}


@pytest.mark.parametrize("wrong", ["refund", "refund=1", "refund.amount", ".amount=1", "="])
def test_an_argument_without_a_path_or_a_value_is_refused(failed: Any, wrong: str) -> None:
    add = ("regression", "add", "--from", "latest/cold", "--bug", "1", "--tool", "x")
    refused = failed.assay(*add, "--param", wrong, code=2).stderr
    assert f"--param {wrong!r} is not of the form TOOL.PATH=VALUE" in refused
    assert not (failed.root / "evals" / "x.regression.json").exists()


def test_a_case_that_passes_on_the_recorded_answer_is_refused(place: Any) -> None:
    entry = {"name": "near", "type": "similarity", "value": "something else"}
    failing(place, [entry], {"response": "Done.", "toolCalls": [call("refund", amount=43.5)]})
    bare = place.assay(*ADD, code=2).stderr
    assert "nothing can be taken over from r" in bare
    assert "an 'expect' block cannot express what failed: near (similarity)" in bare
    assert "--param TOOL.PATH=VALUE" in bare
    for options in (["--param", "refund.amount=43.5"], ["--tool-called", "refund"]):
        refused = place.assay(*ADD, *options, code=2).stderr
        assert "would pass on the recorded answer" in refused
        assert "near (similarity)" in refused
    assert not (place.root / "evals" / "refund.regression.json").exists()


def test_a_case_that_cannot_be_judged_on_the_recorded_answer_is_refused(place: Any) -> None:
    failing(place, [{"type": "contains", "value": "42.5"}], {"response": "Done."})
    refused = place.assay(*ADD, "--tool-called", "refund", code=0)
    assert "added and locked" in refused.stdout, "the text fails, whatever the tools were"
    failing(place, [{"type": "similarity", "value": "xyz"}], {"response": "Done."})
    refused = place.assay(*ADD, "--tool-called", "refund", code=2).stderr
    assert "cannot be judged on the recorded answer: " in refused
    assert "target reports no tool calls" in refused


def test_a_check_that_is_taken_over_in_part_may_not_be_enough(place: Any) -> None:
    args = {"amount": {"approx": 42.5, "tolerance": 0.1}, "reason": "late"}
    steps = [{"tool": "refund", "args": args}]
    made = call("refund", amount=43.5, reason="late")
    failing(
        place,
        [{"type": "tool_trajectory", "expected": steps}],
        {"response": "done", "toolCalls": [made]},
    )
    refused = place.assay(*ADD, code=2).stderr
    assert "would pass on the recorded answer" in refused
    assert "cannot express what failed: tool_trajectory" in refused
    params = added(place, "--param", "refund.amount=42.5")["toolParams"]
    assert params == [param("reason", "late"), param("amount", 42.5)]
