"""Which cases are asked, how often and until when; and that no order changes a result."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.model.options import RunOptions
from e2e.projects import Agent, Project, cases_of, normal, outcomes

WORKERS = (1, 3, 50)


def scripted(replies: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"targets": [{"name": "a", "provider": "scripted", "replies": replies}], **config}


def contains(name: str, word: str = "yes", **more: Any) -> dict[str, Any]:
    return {"id": name, "input": name, "expect": {"response_contains": [word]}, **more}


def project_of(home: Project, cases: list[dict[str, Any]], **replies: Any) -> Project:
    home.write("assay.yaml", scripted(replies))
    home.write("one.eval.yaml", {"cases": cases})
    return home


def without_options(document: str) -> str:
    """Options are recorded, and so differ."""
    parsed = json.loads(document)
    for suite in parsed["suites"]:
        del suite["options"]
    return json.dumps(parsed)


ANSWERS = st.sampled_from(["yes", "no", {"error": "broken"}, {"response": "yes", "costUsd": 0.5}])
SUITES = st.lists(st.lists(ANSWERS, min_size=1, max_size=3), min_size=1, max_size=12)


@given(SUITES, st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=max(6, settings().max_examples // 8))
def test_results_depend_neither_on_workers_nor_on_the_seed(
    replies: list[list[Any]], repeat: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = {f"c{n:02}": said for n, said in enumerate(replies)}
        project = project_of(Project(Path(folder)), [contains(n) for n in names], **names)
        found = set()
        for workers in WORKERS:
            arguments = ["--repeat", str(repeat), "--workers", str(workers), "--json"]
            code = expected_code(replies, repeat)
            done = project.call("run", ".", *arguments, "--seed", str(seed + workers), code=code)
            found.add(without_options(normal(done.stdout)))
        [document] = found
        assert list(outcomes(document)) == list(names), "in the order of the file"


def expected_code(replies: list[list[Any]], repeat: int) -> int:
    """What the words of the contract come to, worked out anew."""
    codes = []
    for said in replies:
        trials = [said[min(n, len(said) - 1)] for n in range(repeat)]
        judged = [t for t in trials if t in ("yes", "no") or "response" in t]
        codes.append(3 if not judged else 1 if "no" in judged else 0)
    return 1 if 1 in codes else 3 if 3 in codes else 0


@pytest.fixture
def mixed(home: Project) -> Project:
    """Two files, in which cases have tags."""
    home.write("assay.yaml", scripted({"c": "yes"}))
    for file, first in (("one", 0), ("two", 10)):
        cases = [
            contains(f"c{n}", tags=["even"] if n % 2 == 0 else []) for n in range(first, first + 7)
        ]
        home.write(f"{file}.eval.yaml", {"cases": cases})
    home.write("t.golden.json", [golden("t", n) for n in (1, 2)])
    return home


def golden(tool: str, number: int) -> dict[str, Any]:
    expect = {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True}
    name = f"gs-{tool}-{number:03}"
    return {"id": name, "description": "", "input": {"message": f"c {name}"}, "expect": expect}


def selected(project: Project, *arguments: str) -> list[str]:
    return list(outcomes(project.document(".", *arguments)))


def test_cases_are_selected_by_pattern_tag_tier_and_number(mixed: Project) -> None:
    every = selected(mixed)
    assert len(every) == 16
    assert selected(mixed, "--filter", "c1*") == ["c1", *(f"c{n}" for n in range(10, 17))]
    assert selected(mixed, "--filter", "c1", "--filter", "c2") == ["c1", "c2"]
    assert selected(mixed, "--tag", "even", "--filter", "c?") == ["c0", "c2", "c4", "c6"]
    assert selected(mixed, "--tier", "golden") == ["gs-t-001", "gs-t-002"]
    assert selected(mixed, "--limit", "3") == every[:3]


def test_shards_together_are_the_whole(mixed: Project) -> None:
    parts = [selected(mixed, "--shard", f"{part}/3") for part in (1, 2, 3)]
    assert sorted(chain(*parts)) == sorted(selected(mixed))
    assert [len(part) for part in parts] == [6, 5, 5]


def test_a_repeated_case_passes_with_its_rate_and_errored_trials_are_left_out(
    home: Project,
) -> None:
    replies = {
        "half": ["yes", "no"],
        "strict": ["yes", "no"],
        "almost": ["yes", "no"],
        "errs": ["yes", {"error": "broken"}],
        "never": [{"error": "broken"}],
        "lenient": ["no"],
    }
    cases = [
        contains("half", min_pass_rate=0.5),
        contains("strict"),
        contains("almost", min_pass_rate=0.996),
        contains("errs"),
        contains("never"),
        contains("lenient", min_pass_rate=0.0),
    ]
    project = project_of(home, cases, **replies)
    document = project.document(".", "--repeat", "2", code=1)
    assert outcomes(document) == {
        "half": "passed",
        "strict": "failed",
        "almost": "failed",
        "errs": "passed",
        "never": "errored",
        "lenient": "passed",
    }
    found = cases_of(document)
    assert "1 of 2 trials passed (all must pass)" in found["strict"]["error"]
    assert "1 of 2 trials passed (99.6 % must pass)" in found["almost"]["error"]
    assert [trial["outcome"] for trial in found["errs"]["details"]["trials"]] == [
        "passed",
        "errored",
    ]
    summary = json.loads(document)["suites"][0]["summary"]
    assert (summary["totalCases"], summary["passed"], summary["errored"]) == (6, 3, 1)


def test_asking_ends_after_so_many_failed_cases(home: Project) -> None:
    cases = [contains(f"c{n}", repeat=2, min_pass_rate=0.5) for n in range(30)]
    project = project_of(home, cases, c=["no", "yes"])
    project.document(".", "--max-failures", "1")  # trials failed, but no case did
    project = project_of(home, cases, c="no")
    done = project.call("run", ".", "--json", "--max-failures", "2", "--workers", "1", code=1)
    assert "stopped asking: 2 cases failed, and max-failures is 2" in done.stderr
    counts = list(outcomes(done.stdout).values())
    assert counts.count("errored") > 10
    again = project.call("run", ".", "--json", "--max-failures", "2", "--resume", code=1)
    assert normal(again.stdout) == normal(done.stdout), "what failed before counts"
    more = project.call("run", ".", "--json", "--max-failures", "99", "--resume", code=1)
    assert set(outcomes(more.stdout).values()) == {"failed"}


def test_asking_ends_when_the_budget_is_spent(home: Project) -> None:
    cases = [contains(f"c{n}") for n in range(20)]
    project = project_of(home, cases, c={"response": "yes", "costUsd": 0.25})
    done = project.call("run", ".", "--json", "--budget-usd", "1", "--workers", "1", code=3)
    assert "the budget of $1 is spent" in done.stderr
    assert list(outcomes(done.stdout).values()).count("passed") == 4
    assert "not asked: the budget of $1 is spent" in done.stdout
    again = project.call("run", ".", "--json", "--budget-usd", "1", "--resume", code=3)
    assert list(outcomes(again.stdout).values()).count("passed") == 4
    project.call("run", ".", "--json", "--budget-usd", "9", "--resume")


def test_a_second_run_with_a_cache_asks_nobody_whatever_it_expects(
    home: Project, agent: Agent
) -> None:
    agent.reply = lambda body: {"response": "yes", "toolCalls": [], "costUsd": 0.5}
    home.write("assay.yaml", {"targets": [{"name": "a", "provider": "http", "url": agent.url}]})
    home.write("one.eval.yaml", {"cases": [contains("c1"), contains("c2")]})
    options = ("run", ".", "--json", "--cache", "--repeat", "2")
    first = home.call(*options)
    assert len(agent.seen) == 4, "each repeat is asked"
    home.write("one.eval.yaml", {"cases": [contains("c1", "no"), contains("c2")]})
    second = home.call(*options, code=1)
    assert len(agent.seen) == 4
    assert "4 cached" in second.stderr
    assert "cached" not in first.stderr
    assert outcomes(second.stdout) == {"c1": "failed", "c2": "passed"}
    trials = cases_of(second.stdout)["c1"]["details"]["trials"]
    assert [trial["cached"] for trial in trials] == [True, True]
    summary = json.loads(second.stdout)["suites"][0]["summary"]
    assert (summary["estimatedCostUsd"], summary["totalDurationMs"]) == (0.0, 0.0)
    assert json.loads(first.stdout)["suites"][0]["summary"]["totalDurationMs"] > 0
    home.call("run", ".", "--json", "--cache", "--repeat", "3", code=1)
    assert len(agent.seen) == 6, "a third repeat was never asked"
    home.call("run", ".", "--json", code=1)
    assert len(agent.seen) == 8, "the cache is only used when it is wanted"


def test_another_evaluator_judges_cases_that_name_none(home: Project) -> None:
    cases: list[dict[str, Any]] = [
        {"id": "c1", "input": "c1", "expected_output": "YES"},
        {"id": "c2", "input": "c2", "evaluators": [{"type": "contains", "value": "no"}]},
    ]
    project = project_of(home, cases, c="Yes")
    assert outcomes(project.document(".", code=1)) == {"c1": "failed", "c2": "failed"}
    found = cases_of(project.document(".", "--evaluator", "is_json", code=1))
    assert [entry["type"] for entry in found["c1"]["details"]["evaluators"]] == ["is_json"]
    assert [entry["type"] for entry in found["c2"]["details"]["evaluators"]] == ["contains"]
    project.write("affirmation.py", "def says_yes(response):\n    return response == 'Yes'\n")
    found = cases_of(project.document(".", "--evaluator", "python:affirmation:says_yes", code=1))
    assert found["c1"]["passed"]
    wrong = project.call("run", ".", "--evaluator", "is_jsn", code=2)
    assert "is_json" in wrong.stderr


# Confirmations


def flips(to: Callable[[int], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An agent whose answers about c1 are given by how often it was asked."""
    times = 0

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal times
        said = "yes"
        if body["message"] == "c1":
            said = to(times)
            times += 1
        return {"response": said, "toolCalls": []}

    return reply


@pytest.fixture
def critical(home: Project, agent: Agent) -> Project:
    """With a baseline in which a critical case and another passed."""
    home.write("assay.yaml", {"targets": [{"name": "a", "provider": "http", "url": agent.url}]})
    home.write("one.eval.yaml", {"cases": [contains("c1", critical=True), contains("c2")]})
    agent.reply = flips(lambda times: "yes")
    home.call("run", ".")
    home.call("baseline", "set", "main")
    agent.seen.clear()
    return home


def test_a_flaky_critical_case_does_not_fail_the_gate(critical: Project, agent: Agent) -> None:
    agent.reply = flips(lambda times: "no" if times < 2 else "yes")
    done = critical.call("run", ".", "--baseline", "main", "--json")
    trials = cases_of(done.stdout)["c1"]["details"]["trials"]
    assert [trial["outcome"] for trial in trials] == ["failed", "failed", *["passed"] * 3]
    assert [trial.get("confirms", False) for trial in trials] == [False, *[True] * 4]
    document = json.loads(done.stdout)
    assert document["verdict"] == "passed"
    assert document["comparison"]["losses"][0]["status"] == "excused"
    assert document["suites"][0]["summary"]["failed"] == 1
    assert len(agent.seen) == 6
    assert "asking 1 case again that passed in the baseline: up to 5 trials" in done.stderr


def test_a_steady_critical_regression_fails_the_gate(critical: Project, agent: Agent) -> None:
    agent.reply = flips(lambda times: "no")
    done = critical.call("run", ".", "--baseline", "main", "--json", code=1)
    assert json.loads(done.stdout)["suites"][0]["regressions"] == ["c1"]
    assert len(agent.seen) == 5, "two of five cannot reach the majority"
    critical.call("run", ".", "--baseline", "main", "--confirm", "0", code=1)
    assert len(agent.seen) == 7, "nothing was asked again"


def test_confirmations_that_were_made_before_a_kill_are_not_made_again(
    critical: Project, agent: Agent
) -> None:
    agent.reply = flips(lambda times: "no")
    process = critical.start("run", ".", "--baseline", "main", "--json")
    agent.arrived = lambda count: process.kill() if count == 4 else None
    process.communicate()
    assert len(critical.finished()) == 3
    agent.seen.clear()
    done = critical.call("run", ".", "--baseline", "main", "--json", "--resume", code=1)
    assert [body["message"] for body in agent.seen] == ["c1"] * 2
    assert len(cases_of(done.stdout)["c1"]["details"]["trials"]) == 4


@pytest.mark.parametrize(
    ("number", "shown"), [(signal.SIGKILL, "INCOMPLETE: "), (signal.SIGINT, "INTERRUPTED: ")]
)
def test_a_loss_is_not_confirmed_by_some_of_its_re_asks(
    critical: Project, agent: Agent, number: signal.Signals, shown: str
) -> None:
    agent.reply = flips(lambda times: "no")
    process = critical.start("run", ".", "--baseline", "main", "-o", "run.json")
    agent.arrived = lambda count: process.send_signal(number) if count == 4 else None
    process.communicate()
    run_id, _ = max(critical.runs())
    assert critical.call("runs", "show", run_id).stdout.startswith(shown)
    for candidate in [run_id] if number == signal.SIGKILL else [run_id, "run.json"]:
        found = json.loads(critical.call("compare", "main", candidate, "--json", code=3).stdout)
        assert (found["verdict"], found["losses"][0]["status"]) == ("inconclusive", "unconfirmed")
    agent.reply = flips(lambda times: "yes")
    agent.arrived = lambda count: None
    done = critical.call("run", ".", "--baseline", "main", "--json", "--resume")
    assert json.loads(done.stdout)["verdict"] == "passed"
    left = 4 if number == signal.SIGKILL else 3
    assert f"asking 1 case again that passed in the baseline: up to {left} trials" in done.stderr


@pytest.mark.parametrize("value", ["inf", "nan"])
@pytest.mark.parametrize(
    ("flag", "key"),
    [
        ("--timeout", "timeout_seconds"),
        ("--budget-usd", "budget_usd"),
        ("--requests-per-minute", "requests_per_minute"),
        ("--tokens-per-minute", "tokens_per_minute"),
    ],
)
def test_a_limit_that_is_none_is_refused(home: Project, value: str, flag: str, key: str) -> None:
    project_of(home, [contains("a")], a="yes")
    done = home.call("run", ".", flag, value, code=2)
    assert f"{flag} is {value}; it must be a finite number" in done.output
    with pytest.raises(ValidationError, match="finite"):
        RunOptions(**{key: float(value)})


def test_a_limit_of_the_environment_that_is_none_is_refused(
    home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TIMEOUT_SECONDS", "Infinity")
    project_of(home, [contains("a")], a="yes")
    done = home.call("run", ".", code=2)
    assert "'timeout_seconds' is inf; it must be a finite number" in done.output


@pytest.mark.parametrize("key", ["timeout_seconds", "budget_usd", "requests_per_minute"])
def test_a_limit_of_the_file_that_is_none_is_refused(home: Project, key: str) -> None:
    project_of(home, [contains("a")], a="yes")
    home.write("assay.yaml", scripted({"a": "yes"}, defaults={key: float("inf")}))
    output = home.call("run", ".", code=2).output
    assert f"{key!r} is .inf; it must be a finite number" in output


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--limit", "0", "Error: --limit is 0; it must be >= 1\n"),
        ("--min-pass-rate", "50", "Error: --min-pass-rate is 50.0; it must be <= 1 (did you"),
        ("--tag", "", "Error: --tag is ''; it must not be empty\n"),
        ("--timeout", "-1", "Error: --timeout is -1.0; it must be > 0\n"),
        ("--shard", "0/4", "Error: --shard: '0/4' is not a shard (for example 1/4"),
    ],
)
def test_an_option_that_is_wrong_is_called_as_it_was_written(
    place: Any, option: str, value: str, told: str
) -> None:
    assert told in place.assay("run", "evals", option, value, code=2).stderr
