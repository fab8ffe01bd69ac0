"""Judges against people: labels, the report, what is kept, and what later runs say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import assay
import preloaded_command
from assay.errors import UsageError
from assay.model.run_result import RunResult
from assay.results import calibrations
from assay.service import history
from assay.service import labels as labels_file
from assay.service.calibration import CalibrationSession
from assay.stats.calibration import Confusion, corrected_rate, kappa, sensitivity, specificity
from unit.conftest import Project, invoke

#: The judge passes what says "good"; people know better about c8 and c9.
SAID = {n: "good" if n < 14 else "bad" for n in range(20)}
WRONG = (8, 9, 18)
TABLE = Confusion(right_passes=12, wrong_passes=2, wrong_failures=1, right_failures=5)


def build(project: Project, prompt: str = "Judge it.", *, weight: float = 1.0, **more: Any) -> None:
    replies = {"verygood": '{"score": 1.0}', "verybad": '{"score": 0.0}'}
    config = {"judge": {"provider": "scripted", "replies": replies}}
    project.write("assay.yaml", json.dumps(config))
    judge = {"name": "quality", "type": "llm_judge", "prompt": prompt, "weight": weight}
    extra = [] if weight else [{"type": "contains", "value": "answer"}]
    cases = [
        {"id": f"c{n}", "input": f"question {n}", "criteria": "help", "evaluators": [judge, *extra]}
        for n in range(20)
    ]
    project.write("suite.yaml", json.dumps({"cases": cases} | more))


def agent(question: str) -> str:
    return f"a very{SAID[int(question.split()[1])]} answer"


def run(**options: Any) -> RunResult:
    return assay.run("suite.yaml", target=agent, **options)


def truth(n: int) -> str:
    return "pass" if (SAID[n] == "good") != (n in WRONG) else "fail"


def labels(project: Project, name: str = "labels.csv") -> Path:
    rows = [f"c{n},{truth(n)}" for n in range(20)]
    return project.write(name, "\n".join(["id,label", *rows]))


def calibrate(*arguments: str, typed: str = "") -> tuple[int, str, str]:
    done = invoke("calibrate", *arguments, typed=typed)
    # In click 8.1 what was typed is seen too.
    return done.exit_code, done.stdout[max(done.stdout.find("{"), 0) :], done.stderr


@pytest.fixture
def judged(project: Project) -> Project:
    build(project)
    run()
    return project


def test_the_report_has_the_numbers_of_the_statistics(judged: Project) -> None:
    labels(judged)
    code, out, _ = calibrate("labels.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["table"] == TABLE.to_dict()
    assert found["labels"] == 20
    for name, measure in (
        ("kappa", kappa),
        ("sensitivity", sensitivity),
        ("specificity", specificity),
    ):
        wanted = measure(TABLE)
        assert wanted is not None
        assert found[name] == wanted.to_dict()
    corrected = corrected_rate(14, 20, TABLE)
    assert corrected is not None
    assert found["corrected"] == corrected.to_dict()
    assert found["majorityBaseline"] == 13 / 20
    assert found["passRate"]["estimate"] == 0.7


def test_the_report_in_words(judged: Project) -> None:
    labels(judged)
    code, out, err = calibrate("labels.csv")
    assert code == 0
    assert "a person passes                 12             1" in out
    assert "a person fails                   2             5" in out
    assert "sensitivity   0.92 (0.67 to 0.99)" in out
    assert "majority      0.65" in out
    assert max(map(len, out.splitlines())) < 80
    assert "kept in calibrations.json" in err


def test_later_runs_report_the_corrected_rate(judged: Project) -> None:
    assert "; not calibrated" in run().report()  # type: ignore[attr-defined]
    labels(judged)
    calibrate("labels.csv")
    later = run()
    (judge,) = later.statistics["judges"]
    corrected = corrected_rate(14, 20, TABLE)
    assert corrected is not None
    assert judge["calibration"]["state"] == "current"
    assert judge["corrected"] == corrected.to_dict()
    assert later.suites[0].statistics["judges"] == [judge]
    text = later.report()  # type: ignore[attr-defined]
    assert "quality (scripted): 70 % of 20 passed, corrected 65 % (" in text
    assert "corrected 65 %" in history.show(later.id).report()


def test_a_judge_that_changed_is_stale(judged: Project) -> None:
    labels(judged)
    calibrate("labels.csv")
    build(judged, "Judge it more strictly.")
    later = run()
    assert later.statistics["judges"][0]["calibration"]["state"] == "stale"
    assert "changed since it was calibrated on 20" in later.report()  # type: ignore[attr-defined]
    calibrate("labels.csv")
    assert run().statistics["judges"][0]["calibration"]["state"] == "current"
    build(judged)
    assert run().statistics["judges"][0]["calibration"]["state"] == "current"
    assert len(calibrations.read(judged.root)) == 2


def test_weight_and_threshold_do_not_make_it_another_judge(judged: Project) -> None:
    labels(judged)
    calibrate("labels.csv")
    build(judged, weight=2.0)
    assert run().statistics["judges"][0]["calibration"]["state"] == "current"


def test_items_of_rubrics_do_not_make_it_another_judge(project: Project) -> None:
    build(project)
    reply = {"checks": [{"id": "a", "satisfied": True}], "overall_reasoning": ""}
    config = {"judge": {"provider": "scripted", "replies": [json.dumps(reply)]}}
    project.write("assay.yaml", json.dumps(config))
    cases = [
        {
            "id": f"c{n}",
            "input": f"question {n}",
            "evaluators": [
                {"type": "rubric", "rubrics": [{"id": "a", "description": f"item {n}"}]}
            ],
        }
        for n in range(2)
    ]
    project.write("suite.yaml", json.dumps({"cases": cases}))
    (judge,) = run().statistics["judges"]
    assert judge["passRate"]["judged"] == 2


def test_the_gate_may_ask_for_calibrated_judges(judged: Project) -> None:
    found = run(require_calibrated=True, min_pass_rate=0.5)
    assert found.exit_code == 1
    assert found.reasons == ("the judge of 'quality' (scripted) is not calibrated",)
    labels(judged)
    calibrate("labels.csv")
    assert run(require_calibrated=True, min_pass_rate=0.5).exit_code == 0
    build(judged, "Otherwise.")
    found = run(require_calibrated=True, min_pass_rate=0.5)
    assert found.reasons == ("the judge of 'quality' (scripted) changed since it was calibrated",)


def test_a_judge_that_does_not_count_need_not_be_calibrated(project: Project) -> None:
    build(project, weight=0.0)
    assert run(require_calibrated=True).exit_code == 0


def test_unexpected_details_of_plugins_are_ignored(judged: Project) -> None:
    judged.write(
        "odd.py",
        "from assay import EvaluationScore\n"
        "def odd(response): return EvaluationScore(1.0, details={'judgeId': 5})\n",
    )
    suite = json.loads(Path("suite.yaml").read_text(encoding="utf-8"))
    for case in suite["cases"]:
        case["evaluators"].append({"type": "python:odd:odd"})
    judged.write("suite.yaml", json.dumps(suite))
    found = run()
    assert found.summary.errored == 0
    assert [judge["evaluator"] for judge in found.statistics["judges"]] == ["quality"]


def test_a_missing_label_file_is_reported_before_a_missing_run(project: Project) -> None:
    project.write("assay.yaml", "{}\n")
    with pytest.raises(UsageError, match="there is no label file nope"):
        CalibrationSession("nope.csv", has_file=True)
    with pytest.raises(UsageError, match="no finished run"):
        CalibrationSession("nope.csv")


def test_a_run_without_judges_says_nothing_of_them(project: Project) -> None:
    build(project)
    project.write("suite.yaml", "cases: [{id: a, input: question 1, expected_output: good}]")
    found = run(require_calibrated=True)
    assert "judges" not in found.statistics
    with pytest.raises(UsageError, match="nothing to calibrate"):
        CalibrationSession("labels.csv")


# Labelling in a terminal


def test_answers_are_shown_without_the_verdict_and_labels_are_kept(judged: Project) -> None:
    code, _, err = calibrate("mine.csv", "--sample", "3", typed="p\nwhat\nf\np\n")
    assert code == 0
    rows = Path("mine.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "suite,id,label,run"
    assert [row.split(",")[2] for row in rows[1:]] == ["pass", "fail", "pass"]
    assert err.count("asked      question") == 3
    assert err.count("answer     a ") == 3
    assert "score" not in err
    assert "verdict" not in err


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl"])
def test_labelling_goes_on_where_it_was_left(judged: Project, name: str) -> None:
    calibrate(name, "--sample", "6", "--seed", "3", typed="p\nf\nq\n")
    first = Path(name).read_text(encoding="utf-8")
    _, out, err = calibrate(name, "--sample", "6", "--seed", "3", "--json", typed="p\np\np\np\n")
    assert "[1 of 4]" in err
    assert Path(name).read_text(encoding="utf-8").startswith(first)
    assert json.loads(out)["labels"] == 6
    _, out, err = calibrate(name, "--sample", "6", "--seed", "3", "--json")
    assert "[1 of" not in err
    assert json.loads(out)["labels"] == 6


def test_a_skipped_answer_is_shown_again_and_the_end_of_input_stops(judged: Project) -> None:
    def piped(*arguments: str, typed: str) -> Any:  # a runner's input never ends in click 8.1
        return preloaded_command.assay("calibrate", "mine.csv", *arguments, typed=typed)

    first = piped("--sample", "4", "--json", typed="s\np\n")
    assert json.loads(first.stdout)["labels"] == 1
    assert "[1 of 3]" in piped("--sample", "4", typed="").stderr


def test_the_seed_decides_which_answers(judged: Project) -> None:
    def ids(seed: int) -> list[str]:
        return [answer.ref.id for answer in CalibrationSession("mine.csv").unlabelled(5, seed)]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    assert len(CalibrationSession("mine.csv").unlabelled(500)) == 20


def test_a_case_that_no_longer_loads_is_shown_by_its_answer(judged: Project) -> None:
    Path("suite.yaml").unlink()
    (answer,) = CalibrationSession("mine.csv").unlabelled(1)
    ((label, text),) = answer.pieces
    assert (label, text[:2]) == ("answer", "a ")


@pytest.fixture
def agentic(project: Project) -> Project:
    """A run with a custom prompt, a rubric and a composite, and calls of tools."""
    checks = json.dumps({"checks": [{"id": "tone", "satisfied": True}], "overall_reasoning": "V"})
    replies = {"is kind": checks, "prompted": '{"score": 0.91, "reasoning": "V"}'}
    project.write("assay.yaml", json.dumps({"judge": {"provider": "scripted", "replies": replies}}))
    prompt = "A prompted view: {{candidate_answer}} {{expected_outcome}} {{tool_calls}}"
    members = [{"type": "llm_judge", "prompt": "A prompted view: be fair."}, {"type": "is_json"}]
    evaluators = [
        {"name": "quality", "type": "llm_judge", "prompt": prompt},
        {"type": "rubric", "rubrics": [{"id": "tone", "description": "It is kind"}]},
        {"name": "mixed", "type": "composite", "evaluators": members},
    ]
    case = {"id": "a", "description": "About Oslo", "input": "How cold is it?"}
    expected = {"criteria": "Names the degrees", "expected_output": "It is -4."}
    project.write("suite.yaml", json.dumps([case | expected | {"evaluators": evaluators}]))
    call = assay.ToolCall("get_weather", {"city": "Oslo"}, {"celsius": -4})
    assay.run("suite.yaml", target=lambda question: assay.Observation("4 degrees", (call,)))
    return project


@pytest.mark.parametrize(
    ("evaluator", "shown", "hidden"),
    [
        ("quality", ["prompt", "criterion", "calls", "answer"], ["asked", "reference"]),
        ("rubric", ["rubric", "asked", "criterion", "reference", "calls", "answer"], ["prompt"]),
        ("mixed", ["prompt", "asked", "criterion", "reference", "calls", "answer"], ["rubric"]),
    ],
)
def test_a_person_sees_what_the_judge_sees(
    agentic: Project, evaluator: str, shown: list[str], hidden: list[str]
) -> None:
    (answer,) = CalibrationSession("mine.csv", evaluator=evaluator).unlabelled(1)
    pieces = dict(answer.pieces)
    assert list(pieces) == shown
    assert pieces["criterion"] == "Names the degrees"
    assert json.loads(pieces["calls"])[0]["params"] == {"city": "Oslo"}
    assert pieces["answer"] == "4 degrees"
    _, _, err = calibrate("mine.csv", "--evaluator", evaluator, "--sample", "1", typed="q\n")
    for label in shown:
        assert f"\n  {label:11}" in err
    for word in (*(f"\n  {label} " for label in hidden), "0.91", "reasoning", "satisfied: true"):
        assert word not in err


def test_rubric_items_and_reference_are_shown(agentic: Project) -> None:
    (answer,) = CalibrationSession("mine.csv", evaluator="rubric").unlabelled(1)
    pieces = dict(answer.pieces)
    assert "It is kind" in pieces["rubric"]
    assert pieces["reference"] == "It is -4."


def test_reference_data_of_a_tier_is_shown(project: Project) -> None:
    checks = json.dumps({"checks": [{"id": "accuracy", "score": 3}], "overall_reasoning": ""})
    config = {"judge": {"provider": "scripted", "replies": [checks]}}
    project.write("assay.yaml", json.dumps(config))
    dimension = {"dimension": "accuracy", "maxScore": 4, "criteria": "The right degrees"}
    case = {"id": "rb-1", "description": "d", "input": {"message": "How cold?"}}
    more = {"rubric": [dimension], "referenceData": {"celsius": -4}}
    project.write("get_weather.rubric.json", json.dumps([case | more]))
    assay.run("get_weather.rubric.json", target=lambda question: "4")
    (answer,) = CalibrationSession("mine.csv").unlabelled(1)
    assert json.loads(dict(answer.pieces)["truth"]) == {"celsius": -4}


def test_a_default_evaluator_of_the_run_is_shown(project: Project) -> None:
    config = {"judge": {"provider": "scripted", "replies": ['{"score": 1.0}']}}
    project.write("assay.yaml", json.dumps(config))
    project.write("suite.yaml", "[{id: a, input: 'How cold?', expected_output: '-4'}]")
    assay.run("suite.yaml", target=lambda question: "4", evaluators=({"type": "llm_judge"},))
    (answer,) = CalibrationSession("mine.csv").unlabelled(1)
    assert dict(answer.pieces)["reference"] == "-4"


def test_a_file_that_changed_since_the_run_is_noted(agentic: Project) -> None:
    suite = Path("suite.yaml")
    options = ("mine.csv", "--evaluator", "quality", "--sample", "1")
    assert "changed since the run" not in calibrate(*options, typed="q\n")[2]
    suite.write_text(suite.read_text().replace("Names", "Tells"), encoding="utf-8")
    assert "note: suite.yaml changed since the run" in calibrate(*options, typed="q\n")[2]


# An earlier calibration


def test_stopping_early_keeps_an_earlier_calibration(judged: Project) -> None:
    calibrate("mine.csv", "--sample", "6", typed="p\n" * 6)
    before = Path("calibrations.json").read_bytes()
    run()
    for name, kept in (("mine.csv", 7), ("other.csv", 1)):
        code, _, err = calibrate(name, "--sample", "20", typed="p\nq\n")
        assert (code, Path("calibrations.json").read_bytes()) == (0, before)
        assert "stopped early: calibrations.json keeps the calibration with 6 labels" in err
        assert f"run `assay calibrate {name}`" in err
        assert len(labels_file.read(Path(name))) == kept
    calibrate("mine.csv")
    assert calibrations.read(judged.root)[0].table.n == 7


def test_stopping_early_keeps_the_first_calibration(judged: Project) -> None:
    _, _, err = calibrate("mine.csv", "--sample", "20", typed="p\nf\nq\n")
    assert "kept in calibrations.json" in err
    assert calibrations.read(judged.root)[0].table.n == 2


def test_stopping_at_once_is_not_an_error(judged: Project) -> None:
    code, _, err = calibrate("mine.csv", "--sample", "20", typed="q\n")
    assert code == 0
    assert "stopped early: no label was added" in err
    assert not Path("calibrations.json").exists()


def test_fewer_labels_of_another_file_replace_nothing(judged: Project) -> None:
    labels(judged)
    calibrate("labels.csv")
    judged.write("few.csv", "id,label\nc0,pass\nc1,pass\n")
    _, _, err = calibrate("few.csv")
    assert "keeps the calibration with 20 labels from labels.csv" in err
    assert calibrations.read(judged.root)[0].labels == "labels.csv"
    judged.write("labels.csv", "id,label\nc0,pass\nc1,pass\n")
    assert "kept in calibrations.json" in calibrate("labels.csv")[2]
    assert calibrations.read(judged.root)[0].table.n == 2


def test_labels_of_several_runs_accumulate(judged: Project) -> None:
    first = run().id
    calibrate("mine.csv", "--sample", "6", typed="p\n" * 6)
    second = run().id
    _, out, err = calibrate("mine.csv", "--sample", "6", typed="p\n" * 6)
    assert "[1 of 6]" in err, "the answers of another run are new ones"
    assert "labels    6 of 20 answers that it judged" in out
    assert "6 more of answers in other runs" in out
    assert calibrations.read(judged.root)[0].table.n == 12
    assert {label.run for label in labels_file.read(Path("mine.csv"))} == {first, second}
    assert invoke("runs", "rm", first).exit_code == 0
    assert json.loads(calibrate("mine.csv", "--json")[1])["unknownLabels"] == 6


def test_a_line_without_its_end_is_ended(judged: Project) -> None:
    judged.write("mine.csv", "label,id\nfail,c0")
    session = CalibrationSession("mine.csv")
    answer = next(a for a in session.unlabelled(20) if a.ref.id == "c5")
    session.label(answer, True)
    assert Path("mine.csv").read_text(encoding="utf-8") == "label,id\nfail,c0\npass,c5\n"


# Files of labels


def test_a_missing_label_file_is_reported(judged: Project) -> None:
    code, _, err = calibrate("nowhere.csv")
    assert code == 2
    assert "there is no label file nowhere.csv" in err
    assert "--sample" in err
    assert not Path("nowhere.csv").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.txt", "", "must end in .csv or .jsonl"),
        ("l.csv", "id,verdict\nc1,pass\n", "l.csv:1: the columns are 'id', 'verdict';"),
        ("l.csv", "", "l.csv:1: the columns are missing;"),
        ("l.csv", "id,label\nc1,maybe\n", "l.csv:2: the label of 'c1' is 'maybe'"),
        ("l.csv", "id,label\n,pass\n", "l.csv:2: the id is ''"),
        ("l.csv", "id,label\nc1,pass\nc1,fail\n", "l.csv:3: 'c1' has a different label on line 2"),
        ("l.csv", 'id,label\n"c1,pass\n', "l.csv:"),
        ("l.jsonl", '{"id": "c1", "label": true}\n[]\n', "l.jsonl:2: is not an object"),
        ("l.jsonl", "{\n", "l.jsonl:1: is not JSON"),
        ("l.csv", "id,label\nelsewhere,pass\n", "has no label of an answer"),
        ("l.csv", b"id,label\n\xff,pass\n", "cannot be read"),
    ],
)
def test_wrong_labels_are_refused(
    judged: Project, name: str, text: str | bytes, message: str
) -> None:
    judged.write(name, text)
    code, _, err = calibrate(name)
    assert code == 2
    assert message in err


def test_labels_may_be_words_numbers_or_truth_values(judged: Project) -> None:
    rows = [("c0", True), ("c1", 1), ("c2", "Yes"), ("c3", False), ("c4", "bad"), ("c0", "pass")]
    lines = [json.dumps({"id": name, "label": label}) for name, label in rows]
    judged.write("l.jsonl", "\n".join([*lines, "", '{"id": "other", "label": "no"}']))
    _, out, _ = calibrate("l.jsonl", "--json")
    found = json.loads(out)
    assert found["table"] == Confusion(3, 2, 0, 0).to_dict()
    assert found["unknownLabels"] == 1


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl"])
def test_an_id_may_have_any_line_separator(tmp_path: Path, name: str) -> None:
    label = labels_file.Label("", "first\u2028second\x85third", True)
    labels_file.append(tmp_path / name, label)
    assert [found[:3] for found in labels_file.read(tmp_path / name)] == [label[:3]]


def test_labels_with_and_without_their_suite_are_about_one_answer(judged: Project) -> None:
    judged.write("l.csv", "suite,id,label\n,c1,pass\nsuite.yaml,c1,pass\n")
    _, out, _ = calibrate("l.csv", "--json")
    found = json.loads(out)
    assert (found["labels"], found["unknownLabels"]) == (1, 0)
    judged.write("l.csv", "suite,id,label\n,c1,pass\nsuite.yaml,c1,fail\n")
    code, _, err = calibrate("l.csv")
    assert code == 2
    assert "l.csv:3: 'c1' has a different label on line 2" in err


def test_an_id_of_two_suites_needs_its_suite(judged: Project) -> None:
    Path("other.yaml").write_bytes(Path("suite.yaml").read_bytes())
    assay.run(["suite.yaml", "other.yaml"], target=agent)
    judged.write("l.csv", "id,label\nc1,pass\n")
    code, _, err = calibrate("l.csv")
    assert code == 2
    assert "l.csv:2: 'c1' is a case of suite.yaml, other.yaml" in err
    judged.write("l.csv", "id,label,suite\nc1,pass,other.yaml\n")
    assert calibrate("l.csv")[0] == 0


def test_measures_that_labels_do_not_determine_are_not_reported(judged: Project) -> None:
    judged.write("l.csv", "id,label\nc0,pass\nc1,pass\n")
    assert "not known: there is no label of a bad answer" in calibrate("l.csv")[1]
    judged.write("l.csv", "id,label\nc19,fail\n")
    assert "not known: there is no label of a good answer" in calibrate("l.csv")[1]
    judged.write("l.csv", "id,label\nc0,fail\nc19,pass\n")
    assert "not known: the judge is no better than chance" in calibrate("l.csv")[1]


def test_several_judges_are_distinguished_by_name(judged: Project) -> None:
    suite = json.loads(Path("suite.yaml").read_text(encoding="utf-8"))
    for case in suite["cases"]:
        case["evaluators"].append({"name": "style", "type": "llm_judge", "prompt": "Style?"})
    judged.write("suite.yaml", json.dumps(suite))
    run()
    labels(judged)
    code, _, err = calibrate("labels.csv")
    assert code == 2
    assert "'quality', 'style'" in err
    assert "--evaluator" in err
    assert calibrate("labels.csv", "--evaluator", "style")[0] == 0
    assert (
        "no judge of the run is called 'tone'" in calibrate("labels.csv", "--evaluator", "tone")[2]
    )


# calibrations.json


def test_the_file_is_readable_and_says_where_it_is_from(judged: Project) -> None:
    labels(judged)
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    found = CalibrationSession("labels.csv", now=lambda: moment).calibrate()
    text = Path("calibrations.json").read_text(encoding="utf-8")
    assert json.loads(text) == [
        {
            "judgeId": found.judge.id,
            "evaluator": "quality",
            "type": "llm_judge",
            "judge": "scripted",
            "labels": "labels.csv",
            "runId": found.run_id,
            "calibratedAt": "2026-01-31T12:00:00Z",
            **TABLE.to_dict(),
        }
    ]
    assert text.count("\n") > 5


@pytest.mark.parametrize("text", ["{}", "[{}]", "[", '[{"judgeId": 3}]'])
def test_a_broken_calibration_file_is_reported_before_a_run(judged: Project, text: str) -> None:
    judged.write("calibrations.json", text)
    with pytest.raises(UsageError, match="is not a list of calibrations"):
        run()
