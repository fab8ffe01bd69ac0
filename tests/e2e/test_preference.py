"""`assay compare --preference` and `assay.prefer`, with real runs and judges written in Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from e2e.projects import Project

CASES = 12
AGENTS = r"""
import json, re

def terse(question):
    return "yes"

def wordy(question):
    return "yes, and this is a much longer answer to " + question

def middling(question):
    return "yes, to " + question

def answers(messages):
    text = messages[-1]["content"]
    fenced = r"\[(\S+) %s\]\n(.*?)\n\[/\1\]"
    names = "first_answer", "second_answer"
    return [re.search(fenced % name, text, re.S)[2] for name in names]

def reply(better, **more):
    return {"response": json.dumps({"reasoning": "because", "better": better}), **more}

def same_for_some(question):
    return "yes" if "number 1" in question else wordy(question)

def down_for_some(question):
    if "number 1" in question:
        raise RuntimeError("down")
    return wordy(question)

def impatient(messages):
    import os, signal
    if "number 5?" in messages[-1]["content"] and answers(messages)[0] == "yes":
        os.kill(os.getpid(), signal.SIGINT)
    return longer(messages)

def always_first(messages):
    return reply("first", cost_usd=0.25)

def longer(messages):
    one, other = answers(messages)
    return reply("first" if len(one) > len(other) else "second", cost_usd=0.25)

def unsure(messages):
    return reply("neither")

def leaking(messages):
    text = messages[-1]["content"]
    return reply("tie" if "terse" in text or "wordy" in text else "first")

def seeing(messages):
    return reply("first" if "sesame" in messages[-1]["content"] else "tie")

def half_broken(messages):
    if "number 3?" in messages[-1]["content"]:
        return "no verdict"
    return longer(messages)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = Project(tmp_path)
    (tmp_path / ".git").mkdir()
    found.write("agents_to_compare.py", AGENTS)
    cases = [{"id": f"c{i}", "input": f"is it number {i}?"} for i in range(CASES)]
    found.write(
        "evals/a.eval.yaml",
        {"name": "a", "evaluators": [{"type": "contains", "value": "yes"}], "cases": cases},
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def python(name: str) -> str:
    return f"python:agents_to_compare:{name}"


def runs(project: Project, *names: str) -> list[str]:
    for name in names:
        project.call("run", "evals/", "--target", python(name))
    return [run_id for run_id, _ in project.runs()]


def judged(project: Project, judge: str, *more: str, code: int = 0) -> dict[str, Any]:
    base, candidate = runs(project, "terse", "wordy")
    found = project.call(
        *("compare", base, candidate, "--preference", "Which is clearer?"),
        *("--judge", python(judge), "--json", *more),
        code=code,
    )
    preference: dict[str, Any] = json.loads(found.stdout)["preference"]
    return preference


def test_a_judge_that_always_prefers_the_first_answer_gives_ties_and_one_half(
    project: Project,
) -> None:
    found = judged(project, "always_first")
    (pair,) = found["pairs"]
    assert (pair["ties"], pair["flipped"], pair["judged"]) == (CASES, CASES, CASES)
    assert pair["winRate"]["estimate"] == 0.5
    assert pair["winRate"]["low"] < 0.5 < pair["winRate"]["high"]
    assert pair["better"] is None
    assert {case["preferred"] for case in found["cases"]} == {"tie"}


def test_a_judge_with_an_opinion_gives_wins_with_an_interval_and_its_cost(
    project: Project,
) -> None:
    found = judged(project, "longer")
    (pair,) = found["pairs"]
    assert (pair["wins"], pair["losses"], pair["ties"]) == (CASES, 0, 0)
    assert (pair["longerWon"], pair["shorterWon"]) == (CASES, 0)
    assert pair["winRate"]["estimate"] == 1
    assert pair["better"] == python("wordy")
    assert found["judge"]["calls"] == 2 * CASES
    assert found["judge"]["costUsd"] == 0.25 * 2 * CASES


def test_the_judge_does_not_see_the_names_of_the_targets(project: Project) -> None:
    found = judged(project, "leaking")
    assert found["pairs"][0]["flipped"] == CASES


def test_a_reply_that_is_no_verdict_is_an_error_and_never_a_tie(project: Project) -> None:
    project.write("assay.yaml", {"defaults": {"workers": 1}})
    found = judged(project, "unsure", code=3)
    (pair,) = found["pairs"]
    assert (pair["judged"], pair["ties"], pair["winRate"]) == (0, 0, None)
    assert pair["errored"] == 10
    assert found["unasked"] == CASES - 10
    assert "not 'first', 'second' or 'tie'" in found["cases"][0]["error"]
    assert "never gave a verdict" in found["notes"][0]


def test_a_single_unreadable_reply_leaves_the_other_cases(project: Project) -> None:
    found = judged(project, "half_broken", code=3)
    (pair,) = found["pairs"]
    assert (pair["wins"], pair["errored"]) == (CASES - 1, 1)
    (errored,) = (case for case in found["cases"] if case.get("error"))
    assert errored["id"] == "c3"
    assert errored["preferred"] is None


def test_the_budget_ends_the_judging(project: Project) -> None:
    project.write("assay.yaml", {"defaults": {"workers": 1}})
    found = judged(project, "longer", "--budget-usd", "1.6", code=3)
    assert found["judge"]["costUsd"] == 2.0
    assert found["unasked"] == CASES - 4
    assert "the budget of $1.6 is spent" in found["notes"][0]


def test_identical_answers_are_a_tie_and_cost_nothing(project: Project) -> None:
    base, candidate = runs(project, "terse", "same_for_some")
    done = project.call(
        *("compare", base, candidate, "--preference", "x", "--judge", python("always_first")),
        "--json",
    )
    found = json.loads(done.stdout)["preference"]
    assert "compares 9 pairs of answers in both orders: 18 calls; 3 more are identical" in (
        done.stderr
    )
    assert found["judge"]["calls"] == 18
    (pair,) = found["pairs"]
    assert (pair["judged"], pair["ties"], pair["identical"], pair["flipped"]) == (12, 12, 3, 9)
    assert pair["flipRate"] == 1
    same = [case for case in found["cases"] if case.get("identical")]
    assert [case["id"] for case in same] == ["c1", "c10", "c11"]
    assert {case["preferred"] for case in same} == {"tie"}


def test_no_judge_is_asked_if_all_answers_are_identical(project: Project) -> None:
    base, candidate = runs(project, "wordy", "wordy")
    done = project.call(
        "compare", base, candidate, "--preference", "x", "--judge", python("unsure")
    )
    assert "the answers of all 12 pairs are identical: nothing to ask" in done.stderr
    assert "12 ties, 12 of them identical answers" in done.stdout
    assert "the order decided" not in done.stdout


def test_cases_that_are_not_compared_are_counted(project: Project) -> None:
    base, candidate = runs(project, "terse", "wordy")
    project.write("evals/a.eval.yaml", _with_another_check_of_c3(project))
    project.call("run", "evals/", "--target", python("down_for_some"), code=3)
    latest = project.runs()[-1][0]
    found = assay.prefer(base, candidate, latest, criteria="x", judge=python("longer"))
    assert [pair.judged for pair in found.pairs] == [12, 8, 8]
    assert any(
        note.startswith("6 pairs of answers not compared: one of the runs did not judge")
        for note in found.notes
    )
    assert any(
        note.startswith("2 pairs of answers not compared: the case changed") for note in found.notes
    )


def _with_another_check_of_c3(project: Project) -> Any:
    suite = yaml.safe_load((project.root / "evals/a.eval.yaml").read_text())
    suite["cases"][3]["evaluators"] = [{"type": "contains", "value": "e"}]
    return suite


def test_a_judge_that_is_one_of_the_targets_is_pointed_out(project: Project) -> None:
    model = {"provider": "scripted", "replies": [json.dumps({"reasoning": "", "better": "tie"})]}
    project.write("assay.yaml", {"targets": [{"name": "old", **model}, {"name": "j", **model}]})
    for target in ("old", python("wordy")):
        project.call("run", "evals/", "--target", target, code=None)
    found = assay.prefer(*(run_id for run_id, _ in project.runs()), criteria="x", judge="j")
    assert list(found.notes) == [
        "the judge is the model of old: models tend to prefer their own answers"
    ]


def test_ctrl_c_ends_the_judging_and_the_cache_continues_it(project: Project) -> None:
    project.write("assay.yaml", {"defaults": {"workers": 1}})
    base, candidate = runs(project, "terse", "wordy")
    arguments = ("compare", base, candidate, "--preference", "x", "--judge", python("impatient"))
    stopped = project.run(*arguments, "--cache", code=3)
    # The second question about the sixth case is still asked.
    assert "6 wins, 0 losses, 0 ties" in stopped.stdout
    assert "6 pairs of answers not judged" in stopped.stdout
    assert "not all answers were compared: it was cancelled" in stopped.stdout
    project.write(
        "agents_to_compare.py", AGENTS.replace("os.kill(os.getpid(), signal.SIGINT)", "pass")
    )
    done = project.run(*arguments, "--cache")
    assert "12 wins, 0 losses, 0 ties" in done.stdout
    assert "12 replies from the cache" in done.stdout


def test_a_second_ctrl_c_interrupts_the_command(project: Project) -> None:
    once = 'and answers(messages)[0] == "yes"'
    project.write("agents_to_compare.py", AGENTS.replace(once, ""))
    base, candidate = runs(project, "terse", "wordy")
    done = project.run(
        *("compare", base, candidate, "--preference", "x", "--judge", python("impatient")),
        code=130,
    )
    assert "assay: interrupted" in done.stderr


def test_the_progress_of_many_pairs_is_shown(project: Project) -> None:
    cases = [{"id": f"c{i}", "input": f"is it number {i}?"} for i in range(100)]
    project.write(
        "evals/a.eval.yaml",
        {"name": "a", "evaluators": [{"type": "contains", "value": "yes"}], "cases": cases},
    )
    project.write("assay.yaml", {"defaults": {"workers": 1}})
    base, candidate = runs(project, "terse", "wordy")
    done = project.call(
        "compare", base, candidate, "--preference", "x", "--judge", python("longer")
    )
    assert "30 of 100 pairs, $15.00" in done.stderr


def test_replies_come_from_the_cache_the_second_time(project: Project) -> None:
    first = judged(project, "longer", "--cache")
    base, candidate = (run_id for run_id, _ in project.runs()[:2])
    again = project.call(
        *("compare", base, candidate, "--preference", "Which is clearer?", "--json", "--cache"),
        *("--judge", python("longer")),
    )
    found = json.loads(again.stdout)["preference"]
    assert (found["judge"]["calls"], found["judge"]["cached"]) == (0, 2 * CASES)
    assert found["pairs"] == first["pairs"]


def test_the_terminal_shows_the_calls_before_and_the_result_after(project: Project) -> None:
    base, candidate = runs(project, "terse", "wordy")
    done = project.call(
        *("compare", base, candidate, "--preference", "Which is clearer?"),
        *("--judge", python("longer")),
    )
    assert "compares 12 pairs of answers in both orders: 24 calls" in done.stderr
    assert "wordy is preferred" in re.sub(r"\s+", " ", done.stdout)
    assert "12 wins, 0 losses, 0 ties" in done.stdout
    assert "24 calls, $6.00, not calibrated" in done.stdout


def test_the_configuration_has_criteria_and_judge(project: Project) -> None:
    project.write(
        "assay.yaml", {"preference": {"criteria": "brevity", "judge": python("always_first")}}
    )
    base, candidate = runs(project, "terse", "wordy")
    done = project.call("compare", base, candidate, "--json", "--preference")
    found = json.loads(done.stdout)["preference"]
    assert found["criteria"] == "brevity"
    assert found["pairs"][0]["ties"] == CASES


def test_labels_calibrate_the_judge(project: Project) -> None:
    labels = ["id,better"]
    labels += [f"c{i},{python('wordy') if i < 8 else python('terse')}" for i in range(10)]
    project.write("labels.csv", "\n".join([*labels, "c10,tie", "gone,tie"]) + "\n")
    found = judged(project, "longer", "--labels", "labels.csv")
    assert found["labels"]["labels"] == 11
    assert found["labels"]["unknown"] == 1
    assert found["labels"]["decided"] == 10
    assert found["labels"]["agreement"]["estimate"] == pytest.approx(8 / 11)
    assert found["judge"]["calibration"] == "current"
    (kept,) = json.loads((project.root / "calibrations.json").read_text())
    assert (kept["evaluator"], kept["rightPasses"], kept["wrongPasses"]) == ("preference", 8, 2)
    again = assay.prefer(
        *(run_id for run_id, _ in project.runs()),
        criteria="Which is clearer?",
        judge=python("longer"),
    )
    assert again.judge.calibration == "current"
    other = assay.prefer(
        *(run_id for run_id, _ in project.runs()), criteria="length", judge=python("longer")
    )
    assert other.judge.calibration == "stale"


def test_a_wrong_label_names_its_line(project: Project) -> None:
    base, candidate = runs(project, "terse", "wordy")
    project.write("labels.csv", f"id,better\nc1,{python('wordi')}\n")
    done = project.call(
        *("compare", base, candidate, "--preference", "x", "--judge", python("longer")),
        *("--labels", "labels.csv"),
        code=2,
    )
    assert "labels.csv:2: 'better' is" in done.stderr
    assert "wordy" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--judge", "x"), "--judge is about --preference"),
        (("--budget-usd", "1"), "--budget-usd is about --preference"),
        (("--preference", "x"), "a judge is needed and none is set: give --judge openai:MODEL, or"),
        (("--preference",), "no criteria say which answers are better"),
    ],
)
def test_what_is_missing_is_named(
    project: Project, arguments: tuple[str, ...], expected: str
) -> None:
    base, candidate = runs(project, "terse", "wordy")
    done = project.call("compare", base, candidate, *arguments, code=2)
    assert expected in re.sub(r"\s+", " ", done.stderr)


def test_a_run_that_is_taken_for_the_criteria_is_pointed_out(project: Project) -> None:
    base, candidate = runs(project, "terse", "wordy")
    done = project.call("compare", "--preference", base, candidate, code=2)
    assert f"the criteria of --preference are '{base}': write these after both runs" in done.stderr


def test_reports_of_a_group_have_its_preference(project: Project) -> None:
    project.call("run", "evals/", "--target", python("terse"), "--target", python("wordy"))
    project.call(
        *("compare", "latest", "--preference", "Which is clearer?", "--judge", python("longer")),
        *("-o", "targets.md"),
    )
    assert "12 wins, 0 losses, 0 ties" in (project.root / "targets.md").read_text()


def test_the_judge_sees_who_said_what_in_a_conversation(project: Project) -> None:
    said = [("system", "be brief"), ("user", "hello"), ("assistant", "hi"), ("user", "is it 1?")]
    talk = [{"role": role, "content": text} for role, text in said]
    project.write(
        "evals/a.eval.yaml",
        {"cases": [{"id": "c", "input": talk, "evaluators": [{"type": "contains", "value": "y"}]}]},
    )
    base, candidate = runs(project, "terse", "wordy")
    seen: list[str] = []

    def judge(messages: list[dict[str, str]]) -> str:
        seen.append(messages[-1]["content"])
        return json.dumps({"reasoning": "", "better": "tie"})

    assay.prefer(base, candidate, criteria="x", judge=judge)
    assert "system: be brief\n\nuser: hello\n\nassistant: hi\n\nuser: is it 1?" in seen[0]


def test_python_ranks_more_than_two_runs(project: Project) -> None:
    from agents_to_compare import longer  # type: ignore[import-not-found]

    ids = runs(project, "terse", "wordy", "middling")
    found = assay.prefer(*ids, criteria="length", judge=longer)
    assert len(found.pairs) == 3
    assert [ranked.target for ranked in found.ranking] == [
        python("wordy"),
        python("middling"),
        python("terse"),
    ]
    strengths = [ranked.strength for ranked in found.ranking]
    assert all(each and each.low < each.estimate < each.high for each in strengths)
    assert found.judge.calls == 2 * 3 * CASES


def test_runs_of_one_target_are_named_as_they_were_given(project: Project) -> None:
    ids = runs(project, "wordy", "wordy")
    found = assay.prefer(*ids, criteria="length", judge=python("always_first"))
    assert found.targets == tuple(ids)


def test_the_same_run_twice_is_refused(project: Project) -> None:
    (run_id,) = runs(project, "wordy")
    with pytest.raises(assay.AssayError, match="given twice"):
        assay.prefer(run_id, run_id, criteria="length", judge=python("longer"))


def test_secrets_do_not_reach_the_judge_nor_the_result(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "sesame-open-1234")
    project.write(
        "assay.yaml",
        {
            "targets": [
                {
                    "name": "t",
                    "provider": "http",
                    "url": "http://localhost:1",
                    "headers": {"Authorization": "${{ AGENT_KEY }}"},
                }
            ]
        },
    )
    base, candidate = runs(project, "terse", "wordy")
    done = project.call(
        *("compare", base, candidate, "--preference", "Does it contain sesame-open-1234?"),
        *("--judge", python("seeing"), "--json"),
    )
    found = json.loads(done.stdout)["preference"]
    assert found["pairs"][0]["judged"] == CASES
    assert found["pairs"][0]["ties"] == CASES
    assert found["pairs"][0]["flipped"] == 0
    assert "sesame" not in done.output


def test_the_expected_cost_is_said_before_it_starts(project: Project) -> None:
    judge = {"name": "j", "provider": "openai", "model": "gpt-6-luna", "api_key": "k"}
    judge |= {"base_url": "http://127.0.0.1:1"}
    project.write("assay.yaml", {"targets": [judge], "defaults": {"max_retries": 0, "workers": 1}})
    base, candidate = runs(project, "terse", "wordy")
    done = project.call(
        *("compare", base, candidate, "--preference", "Which is clearer?", "--judge", "j"), code=3
    )
    assert re.search(
        r"12 pairs of answers in both orders: 24 calls, about \$0\.00\d\d", done.stderr
    )
    assert "10 cases not judged" in done.stdout
