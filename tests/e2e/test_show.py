"""Cases as people read them: `show`, `export` with a filter, `run -v`, `compare --answers`."""

from __future__ import annotations

import json
import re
from typing import Any

import click
import pytest

from assay.cli.completion import filters
from assay.reporters.terminal import Terminal
from assay.text import columns
from e2e.projects import Project

AGENT = """
import json, pathlib
def answer(question):
    return json.loads(pathlib.Path("answers.json").read_text())[question]
"""
LINK = "https://shop.example.com/help/refunds?ref=agent&lang=en&more=parameters-that-go-on-and-on"
REFUND = {
    "response": f"I cannot refund that.\nSee {LINK}",
    "toolCalls": [
        {
            "name": "lookup",
            "params": {"order": "A100"},
            "result": {"amount": 43.5},
            "success": True,
            "durationMs": 120,
        },
        {"name": "refund", "params": {"amount": 43.5}, "success": False, "error": "over limit"},
    ],
    "usage": {"inputTokens": 812, "outputTokens": 40},
    "costUsd": 0.0021,
}
JUDGE = {
    "provider": "scripted",
    "replies": {"Explains": {"response": {"score": 0.2, "reasoning": "It refuses to explain."}}},
}


@pytest.fixture
def shop(home: Project) -> Project:
    home.write("shop_agent.py", AGENT)
    home.write("assay.yaml", {"judge": JUDGE})
    answer(home, refund=REFUND, late="It arrives on Friday, at noon.")
    home.write(
        "evals/shop.eval.yaml",
        {
            "cases": [
                {
                    "id": "refund",
                    "tags": ["billing"],
                    "input": "refund",
                    "expected_outcome": "Explains the policy.",
                },
                {
                    "id": "late",
                    "input": "late",
                    "repeat": 2,
                    "evaluators": [
                        {"type": "contains", "value": "Friday"},
                        {"type": "contains", "name": "polite", "value": "on"},
                    ],
                },
            ]
        },
    )
    return home


def answer(home: Project, **answers: Any) -> None:
    home.write("answers.json", answers)


def run(home: Project, *arguments: str, code: int = 1) -> str:
    target = ("--target", "shop_agent.py:answer")
    return home.call("run", "evals", *target, *arguments, code=code).stdout


def test_a_case_is_shown_with_all_that_a_person_needs(shop: Project) -> None:
    run(shop)
    shown = shop.call("show", "refund").stdout
    assert shown.splitlines()[:26] == [
        "FAILED evals/shop.eval.yaml:2 refund",
        "",
        "Question",
        "  refund",
        "",
        "Expected",
        "  outcome: Explains the policy.",
        "",
        "Answer",
        "  I cannot refund that.",
        f"  See {LINK}",
        "",
        "Calls (2)",
        '  1. lookup(order="A100")',
        '     returned {"amount": 43.5} (120 ms)',
        "  2. refund(amount=43.5)",
        "     error: over limit",
        "",
        "Evaluators",
        "  llm_judge: fail, score 0.2",
        "    criterion: Explains the policy.",
        "    judge scripted: It refuses to explain.",
        "",
        "Why it did not pass",
        "  - the score 0.2 is below the threshold 0.8",
        "",
    ]
    facts = dict(re.findall(r"^(\w+) +(.+)$", shown, re.MULTILINE))
    assert facts["Tokens"] == "812 input, 40 output"
    assert facts["Cost"] == "$0.0021"
    assert facts["Tags"] == "billing"
    assert facts["Suite"] == "evals/shop.eval.yaml, position 0"
    late = shop.call("show", "latest", "1").stdout
    assert "Answer of repeat 1 of 2\n" in late
    assert "Repeats    2 of 2 passed (passed, passed)\n" in late
    assert "  polite (contains): pass, score 1\n" in late


@pytest.mark.parametrize(
    "name", ["refund", "0", "evals/shop.eval.yaml: refund", "evals/shop.eval.yaml:refund"]
)
def test_a_case_is_named_by_its_id_its_file_or_its_position(shop: Project, name: str) -> None:
    run(shop)
    assert json.loads(shop.call("show", name, "--json").stdout)["row"]["id"] == "refund"
    assert shop.call("show", "latest", name).stdout.startswith("FAILED evals/shop.eval.yaml:2")


def test_a_list_counts_what_it_does_not_show(shop: Project) -> None:
    run(shop)
    lines = shop.call("show").stdout.splitlines()
    assert lines[0].split() == ["#", "Outcome", "Score", "Repeats", "Case", "Tags", "Cost", "Time"]
    assert lines[1].split()[:5] == ["0", "failed", "0.2", "refund", "billing"]
    assert lines[2].split()[:5] == ["1", "passed", "1", "2/2", "late"]
    assert lines[-1] == "Cases      2 cases; 1 passed, 1 failed"
    few = shop.call("show", "--limit", "1", "--sort", "-score").stdout
    assert " late " in few
    assert few.endswith("Cases      1 of 2 cases shown; 1 passed, 1 failed\n")
    found = json.loads(shop.call("show", "tag:billing", "--json").stdout)
    assert (found["total"], [c["id"] for c in found["cases"]]) == (1, ["refund"])
    assert shop.call("show", "outcome:errored").stdout.endswith("Cases      0 cases\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latest", "otcome:failed"], "filter, column 1: unknown field 'otcome'"),
        (
            ["latest", "tag:a", "tag:b"],
            "unexpected 'tag:b': put a filter of several terms in quotes",
        ),
        (["refund", "--baseline"], "has no baseline: name a run, --baseline RUN"),
        (["tag:billing", "--baseline"], "--baseline compares one case: name it by its id"),
        (["--sort", "scor"], "cases cannot be sorted by 'scor': did you mean 'score'?"),
        (["nothing", "refund"], "the store has no run or baseline 'nothing'"),
    ],
)
def test_mistakes_are_exit_code_2(shop: Project, arguments: list[str], message: str) -> None:
    run(shop)
    assert message in shop.call("show", *arguments, code=2).stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refnd", "matches 'refnd': did you mean 'refund'?"),
        ("99", "has no case with the id or at the position 99"),
        ("nowhere", "matches 'nowhere'\n"),
        ('"not even one"', "matches '\"not even one\"'\n"),
    ],
)
def test_a_case_that_the_run_does_not_have_is_exit_code_5(
    shop: Project, name: str, message: str
) -> None:
    run(shop)
    done = shop.call("show", name, code=5)
    assert message in done.stderr
    assert done.stdout == ""


def test_ids_with_a_word_similar_to_the_unknown_one_are_suggested(home: Project) -> None:
    names = ("capital-of-france", "the capital of Peru", "population_of_peru")
    cases = [{"id": name, "input": "?", "expected_output": "?"} for name in names]
    home.write("capitals.eval.yaml", {"cases": cases})
    home.write("agent.py", "def answer(question):\n    return question\n")
    home.call("run", ".", "--target", "agent.py:answer")
    shown = home.call("show", "capitl", code=5).stderr
    assert "matches 'capitl': similar ids: 'capital-of-france', 'the capital of Peru'\n" in shown


def test_answers_are_compared_with_those_of_the_baseline(shop: Project) -> None:
    run(shop)
    shop.call("baseline", "set", "main")
    answer(shop, refund=REFUND, late="It arrives at noon.")
    run(shop, "--baseline", "main")
    both = (
        "    before:\n      It arrives on Friday, at noon.\n    now:\n      It arrives at noon.\n"
    )
    compared = shop.call("compare", "main", "latest", "--answers", code=None).stdout
    assert both in compared
    assert "before:" not in shop.call("compare", "main", "latest", code=None).stdout
    shown = shop.call("show", "late", "--baseline").stdout
    assert "Against main (" in shown
    assert "  passed there, failed here\n" in shown
    assert re.sub("^  ", "", both, flags=re.MULTILINE) in shown
    shop.call("export", "main", "-o", "old.jsonl")
    document = json.loads(
        shop.call("compare", "old.jsonl", "latest", "--answers", "--json", code=None).stdout
    )
    assert document["answers"] == [
        {
            "suite": "evals/shop.eval.yaml",
            "id": "late",
            "before": "It arrives on Friday, at noon.",
            "now": "It arrives at noon.",
        }
    ]
    assert json.loads(shop.call("show", "late", "--baseline", "--json").stdout)["baseline"]
    changed = json.loads(shop.call("show", "changed:regressed", "--json").stdout)
    assert [c["id"] for c in changed["cases"]] == ["late"]


def test_a_judge_that_fails_a_case_shows_answer_criterion_and_words(shop: Project) -> None:
    report = run(shop)
    assert "(It refuses to explain.)" in report
    assert f"  answer: I cannot refund that. See\n          {LINK}\n" in report
    assert "  criterion: Explains the policy.\n" in report
    assert "calls:" not in report


def test_a_judge_in_a_composite_shows_its_words_too(shop: Project) -> None:
    case = {
        "id": "both",
        "input": "refund",
        "expected_outcome": "Explains the policy.",
        "evaluators": [
            {
                "type": "composite",
                "aggregator": {"type": "weighted_average"},
                "evaluators": [
                    {"type": "llm_judge", "name": "strict"},
                    {"type": "not_contains", "value": "x"},
                ],
            }
        ],
    }
    shop.write("evals/shop.eval.yaml", {"cases": [case]})
    report = run(shop)
    assert "  criterion: Explains the policy.\n" in report
    assert "It refuses to explain." in report


def test_skipped_and_errored_cases_are_shown_with_their_reason_once(shop: Project) -> None:
    cases = [
        {"id": "later", "input": "x", "skip": "not yet"},
        {"id": "broken", "input": "unknown question", "expected_output": "x"},
    ]
    shop.write("evals/shop.eval.yaml", {"cases": cases})
    run(shop, code=3)
    later, broken = (shop.call("show", name).stdout for name in ("later", "broken"))
    assert "Answer" not in later
    assert later.count("not yet") == 1
    assert "Answer\n  none: " in broken
    assert broken.count("KeyError") == 1


def test_verbose_shows_answers_and_calls_and_quiet_only_the_verdict(shop: Project) -> None:
    report = run(shop, "-v")
    assert f"  answer:\n    I cannot refund that.\n    See {LINK}\n" in report
    assert "    2. refund(amount=43.5)\n       error: over limit\n" in report
    done = shop.call("run", "evals", "--target", "shop_agent.py:answer", "-q", code=1)
    assert done.stdout == "FAILED: 1 of 2 judged cases passed\n"
    assert done.stderr == ""


def test_suites_without_selected_cases_get_no_row(shop: Project) -> None:
    shop.write(
        "evals/other.eval.yaml", {"cases": [{"id": "x", "input": "late", "expected_output": "y"}]}
    )
    report = run(shop, "--select", "id:late", code=0)
    assert "\nshop " in report
    assert "other" not in report
    assert "pass^2" in report
    assert "pass^" not in run(shop, "--select", "id:refund")
    assert "Suite " not in run(shop, "--select", "id:nothing", code=5)


def test_exports_are_filtered(shop: Project) -> None:
    run(shop)
    lines = shop.call("export", "latest", "outcome:failed").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["refund"]
    whole = [json.loads(line) for line in shop.call("export", "latest").stdout.splitlines()]
    assert json.loads(lines[0]) == whole[0]
    shop.call("export", "latest", "id:late", "-o", "late.csv")
    assert (shop.root / "late.csv").read_text().splitlines()[1].startswith(whole[0]["runId"])
    seen = shop.call("export", "observations", "latest", "id:late").stdout.splitlines()
    assert [json.loads(line)["id"] for line in seen] == ["late", "late"]
    done = shop.call("export", "latest", "outcom:failed", "-o", "none.csv", code=2)
    assert "column 1: unknown field 'outcom'" in done.stderr
    assert not (shop.root / "none.csv").exists()


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202eabc\u2028 ##vso[task.x]\r"


def test_hostile_answers_are_escaped_and_cut_in_the_middle(shop: Project) -> None:
    long = "start " + "x" * 1_000_000 + " end"
    secret = "sk-" + "a1" * 20
    text = f"{HOSTILE}\n::error::x\n{long}\n{secret}"
    calls = [{"name": HOSTILE, "params": {HOSTILE: long}, "error": HOSTILE, "success": False}]
    answer(shop, refund={"response": text, "toolCalls": calls}, late="Friday on")
    run(shop)
    for shown in (
        shop.call("show", "refund").stdout,
        run(shop, "-v"),
        shop.call("show").stdout,
    ):
        assert all(line.isprintable() for line in shown.split("\n"))
        assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]
        assert "##vso[" not in shown
        assert secret not in shown
        assert len(shown) < 100_000
    shown = shop.call("show", "refund").stdout
    assert "  start\n  xxx" in shown
    assert re.search(r"\[\.\.\. 9\d\d,\d\d\d characters left out \.\.\.\]", shown)
    assert "xxx\n  end\n  [redacted]\n" in shown
    assert (
        long
        in json.loads(shop.call("show", "refund", "--json").stdout)["trials"][0]["observation"][
            "response"
        ]
    )


def test_hostile_ids_are_shown_and_can_be_named(home: Project) -> None:
    name = "a\tb \x1b[31m\u202e" + "z" * 300
    case = {"id": name, "input": "x", "expected_output": "y"}
    home.write("evals/x.eval.jsonl", json.dumps(case) + "\n")
    home.call("run", "evals", "--target", "echo:", code=1)
    listed = home.call("show").stdout
    assert all(line.isprintable() for line in listed.split("\n"))
    assert r"\x1b[31m" in listed
    assert home.call("show", "latest", name).stdout.startswith("FAILED evals/x.eval.jsonl:1 a\\tb")


def test_lines_fit_eighty_columns_and_no_word_is_broken(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.reporters.terminal.Terminal.of", lambda out: Terminal(width=80))
    text = " ".join(f"word{n}" for n in range(100)) + f" {LINK}"
    answer(shop, refund={"response": text, "toolCalls": []}, late="Friday on")
    reports = [run(shop, "-v"), shop.call("show", "refund").stdout, shop.call("show").stdout]
    for report in reports:
        assert all(columns(line) <= 80 or LINK in line for line in report.splitlines())
    for report in reports[:2]:
        assert set(text.split()) <= set(report.split())


def test_the_shell_completes_the_last_term_of_a_filter() -> None:
    found = filters(click.Context(click.Command("x")), click.Argument(["x"]), "tag:a -out")
    assert [item.value for item in found] == ["tag:a -outcome:"]
    found = filters(click.Context(click.Command("x")), click.Argument(["x"]), "outcome:passed,f")
    assert [item.value for item in found] == ["outcome:passed,failed"]
