"""The pytest plugin from the outside: eval files as tests of a project."""

from __future__ import annotations

import sys
from itertools import count
from random import Random
from xml.etree import ElementTree

import pytest

from assay.blocking import wait_for
from assay.errors import UsageError
from assay.service import runs
from assay.service.project import find_settings
from assay.service.scaffold import write_project
from assay.service.store import open_store
from e2e.pytest_projects import AGENT, APART, Evals

SUITE = """\
cases:
  - id: good
    input: fine
    expected_output: fine
    tags: [quick, nice-to-have]
  - id: bad
    description: what goes wrong
    input: wrong
    evaluators:
      - {type: contains, value: right}
      - {type: tool_trajectory, mode: in_order, expected: [{tool: look}]}
    tags: [slow, xfail, two words]
  - id: broken
    input: break
    expected_output: whole
  - id: later
    input: fine
    expected_output: fine
    skip: waits for the new API
"""


def summary(result: pytest.RunResult) -> list[str]:
    """The lines of the short summary, without what follows the nodeid."""
    words = ("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL")
    lines = [line for line in result.outlines if line.startswith(words)]
    return [" ".join(line.split(" - ")[0].split()[:2]) for line in lines]


def test_each_case_is_an_item(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    result = evals.pytest("-rA")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    assert summary(result) == [
        "PASSED evals/a.eval.yaml::good",
        "SKIPPED [1]",
        "ERROR evals/a.eval.yaml::broken",
        "FAILED evals/a.eval.yaml::bad",
    ]
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of broken*",
            "mine raised RuntimeError: the agent broke (agent.py:11)",
            "contains: expected the answer to contain 'right', found 'wrong'",
            "*trajectory of tool_trajectory*",
            "- look",
            "+ find(n=1)",
            "*= assay =*",
            "failed: 1 of 2 judged cases passed",
            "SKIPPED [1] evals/a.eval.yaml: waits for the new API",
        ]
    )


def test_the_run_is_recorded_as_any_other(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    evals.pytest()
    (run,) = evals.runs
    assert run.status == "finished"
    assert run.started_by == "pytest"
    assert run.plan["paths"] == ["evals/a.eval.yaml"]
    assert run.summary is not None
    assert [run.summary[name] for name in ("passed", "failed", "errored", "skipped")] == [1] * 4


def test_without_the_option_nothing_is_collected(evals: Evals, pytester: pytest.Pytester) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    evals.write("pytest.ini", "[pytest]\nassay = true\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1, failed=1, errors=1, skipped=1)


def test_cases_and_tests_are_in_one_session(evals: Evals) -> None:
    evals.cases("a: fine")
    evals.write("test_it.py", "def test_it(): pass\n")
    evals.pytest().assert_outcomes(passed=2)


def test_all_cases_are_asked_at_once(evals: Evals) -> None:
    """Nobody passes the gate of the agent before five are there."""
    evals.cases(*(f"c{number}: together" for number in range(5)))
    evals.write("evals/a.eval.yaml", (evals.root / "evals/a.eval.yaml").read_text("utf-8"))
    evals.pytest().assert_outcomes(failed=5)
    assert evals.asked == {"together": 5}


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["-k", "good"], {"fine": 1}),
        (["-m", "quick"], {"fine": 1}),
        (["-m", "quick or slow"], {"fine": 1, "wrong": 1}),
        (["-m", "not slow and nice-to-have"], {"fine": 1}),
        (["evals/a.eval.yaml::bad"], {"wrong": 1}),
        (["--deselect", "evals/a.eval.yaml::bad"], {"fine": 1, "break": 1}),
        (["-k", "two words"], {}),
        (["-k", "later"], {}),
        (["--co"], {}),
        (["--setup-plan"], {}),
    ],
)
def test_only_selected_cases_are_asked(
    evals: Evals, arguments: list[str], asked: dict[str, int]
) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    evals.pytest("--strict-markers", *arguments)
    assert evals.asked == asked


def test_tags_that_are_marks_already_are_keywords_only(evals: Evals) -> None:
    evals.write("pytest.ini", "[pytest]\nmarkers =\n    slow: of this project\n")
    evals.write("evals/a.eval.yaml", SUITE)
    result = evals.pytest("--strict-markers", "-k", "xfail", "-rA")
    assert summary(result) == ["FAILED evals/a.eval.yaml::bad"]
    assert summary(evals.pytest("-m", "slow", "-rA")) == ["FAILED evals/a.eval.yaml::bad"]
    assert evals.pytest("-m", "xfail").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_last_failed(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    evals.pytest()
    evals.pytest("--lf").assert_outcomes(failed=1, errors=1)
    assert evals.asked == {"wrong": 1, "break": 1}
    evals.pytest("--ff").stdout.fnmatch_lines(["evals/a.eval.yaml FE.s *"])


def test_selected_cases_pair_with_those_of_a_whole_run(evals: Evals) -> None:
    evals.cases("a: fine", "b: fine", "c: fine")
    evals.pytest()
    evals.baseline()
    result = evals.pytest("-k", "c", "--assay-baseline", "main", "-rA")
    assert summary(result) == ["PASSED evals/a.eval.yaml::c", "PASSED assay::gate"]
    result.stdout.fnmatch_lines(["passed: 1 of 1 judged case passed; against main*none lost*"])


def test_positions_of_selected_cases_are_those_of_their_files(evals: Evals) -> None:
    evals.cases("a: fine", "b: fine", "c: fine")
    evals.pytest("-k", "c")
    store = open_store(find_settings())
    (trial,) = store.trials(evals.runs[0].id)
    store.close()
    assert trial.position == 2


def test_a_bad_file_is_a_collection_error(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", "cases:\n  - id: a\n    inptu: x\n")
    evals.cases("b: fine", name="evals/b.eval.yaml")
    result = evals.pytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*ERROR collecting evals/a.eval.yaml*", "evals/a.eval.yaml:3:5: error[[]unknown-key*"]
    )
    assert not evals.asked
    assert not evals.runs


def test_a_wrong_project_is_one_collection_error(evals: Evals) -> None:
    evals.write("assay.yaml", "targest: []\n")
    evals.cases("a: fine", name="evals/a.eval.yaml")
    evals.cases("a: fine", name="evals/b.eval.yaml")
    result = evals.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["assay.yaml:1:1: error*targets*"])


def test_a_warning_about_a_file_is_a_warning_of_pytest(evals: Evals) -> None:
    case = "{id: a, input: fine, expected_output: fine, evaluators: [{type: contains, value: f}]}"
    evals.write("evals/a.eval.yaml", f"cases:\n  - {case}\n")
    evals.pytest().assert_outcomes(passed=1, warnings=1)
    evals.pytest("--assay-strict").assert_outcomes(errors=1)


def test_files_that_assay_does_not_run_are_left_alone(evals: Evals) -> None:
    evals.cases("a: fine", name="evals/a.eval.yaml")
    evals.write("data/settings.yaml", "colour: red\n")
    evals.write("data/broken.yaml", "a: [\n")
    evals.write("evals/b.jsonl", '{"id": "b", "input": "fine", "expected_output": "fine"}\n')
    evals.write("evals/b.yaml", "tags: [other]\n")
    evals.write("evals/rows.csv", "id,input,expected_output\nc,fine,fine\n")
    evals.write("evals/named.yaml", "cases: rows.csv\n")
    result = evals.pytest("-rA")
    assert summary(result) == [
        "PASSED evals/a.eval.yaml::a",
        "PASSED evals/b.jsonl::b",
        "PASSED evals/named.yaml::c",
    ]


def test_repeats_are_in_one_item(evals: Evals) -> None:
    case = "{id: a, input: sometimes, expected_output: 'yes', min_pass_rate: %s}"
    evals.write("evals/a.eval.yaml", f"cases:\n  - {case % 0.8}\n")
    result = evals.pytest("--assay-repeat", "4", "--assay-workers", "1", "--junitxml", "out.xml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["2 of 4 trials passed (80 % must pass)"])
    assert evals.asked == {"sometimes": 4}
    case_element = next(ElementTree.parse(evals.root / "out.xml").iter("testcase"))
    found = {p.get("name"): p.get("value") for p in case_element.iter("property")}
    assert found == {
        "assay_run": evals.runs[0].id,
        "assay_score": "0.5",
        "assay_pass_rate": "0.5",
    }
    evals.write("evals/a.eval.yaml", f"cases:\n  - {case % 0.5}\n")
    evals.pytest("--assay-repeat", "4", "--assay-workers", "1").assert_outcomes(passed=1)


def test_junit_tells_failed_errored_and_skipped_apart(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    evals.pytest("--junitxml", "out.xml")
    cases = ElementTree.parse(evals.root / "out.xml").iter("testcase")
    found = {
        (case.get("classname"), case.get("name")): [e.tag for e in case if e.tag != "properties"]
        for case in cases
    }
    file = "evals.a.eval.yaml"
    assert {key: tags[:1] for key, tags in found.items()} == {
        (file, "good"): [],
        (file, "bad"): ["failure"],
        (file, "broken"): ["error"],
        (file, "later"): ["skipped"],
    }


RELEASES = """
import agent, pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.failed:
        agent.release.set()

"""
INTERRUPTS = """
import agent, pytest

def pytest_runtest_teardown():
    raise KeyboardInterrupt

@pytest.hookimpl(trylast=True)
def pytest_keyboard_interrupt():
    agent.release.set()
"""


def asking_first(position: int, cases: int) -> str:
    """A seed with which the case at this position is the first of all to be asked."""
    for seed in count():
        order = [*range(cases)]
        Random(seed).shuffle(order)
        if order[0] == position:
            return str(seed)
    raise AssertionError


def test_exitfirst_cancels_the_run(evals: Evals) -> None:
    """The cases that are being asked when the first one fails finish; the others are not asked."""
    evals.write("conftest.py", RELEASES)
    evals.cases("a: wrong", *(f"c{number}: wait" for number in range(30)))
    options = ["--assay-workers", "5", "--assay-seed", asking_first(0, 31)]
    evals.pytest("-x", *options).assert_outcomes(failed=1)
    assert evals.runs[0].status == "interrupted"
    assert 4 <= evals.asked["wait"] <= 5


def test_maxfail_cancels_the_run_after_so_many_failures(evals: Evals) -> None:
    evals.cases("a: wrong", "b: wrong", *(f"c{number}: fine" for number in range(30)))
    result = evals.pytest("--maxfail", "2", "--assay-workers", "1")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*stopping after 2 failures*"])
    assert evals.asked["wrong"] == 2


def test_a_stopped_run_of_selected_cases_does_not_offer_to_resume(evals: Evals) -> None:
    evals.write("conftest.py", RELEASES)
    evals.cases("a: wrong", *(f"c{number}: wait" for number in range(30)))
    options = ["-x", "--assay-workers", "5", "--assay-seed", asking_first(0, 31)]
    evals.pytest(*options).stdout.fnmatch_lines(["*`assay run --resume * continues it"])
    stopped = evals.pytest(*options, "--deselect", "evals/a.eval.yaml::c29")
    stopped.stdout.fnmatch_lines(["*the run was interrupted; run its cases again*"])
    stopped.stdout.no_fnmatch_line("*--resume*")
    with pytest.raises(UsageError, match="of cases that pytest selected: run them again"):
        wait_for(lambda: runs.execute(runs.RunRequest(resume=evals.runs[0].id), {}))


def test_ctrl_c_cancels_the_run(evals: Evals, pytester: pytest.Pytester) -> None:
    evals.write("conftest.py", INTERRUPTS)
    evals.cases("a: fine", *(f"c{number}: wait" for number in range(30)))
    options = ["--assay", "--assay-workers", "5", "--assay-seed", asking_first(0, 31)]
    record = pytester.inline_run(*options, no_reraise_ctrlc=True)
    assert record.ret == pytest.ExitCode.INTERRUPTED
    assert evals.runs[0].status == "interrupted"
    assert 4 <= evals.asked["wait"] <= 5


def test_an_unknown_baseline_is_one_error_of_the_collection(evals: Evals) -> None:
    evals.cases("a: fine", "b: fine")
    result = evals.pytest("--assay-baseline", "mian")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["the store has no run or baseline 'mian'*"])
    assert not evals.asked


def test_what_keeps_the_run_from_starting_is_an_error_of_each_case(evals: Evals) -> None:
    evals.cases("a: fine", "b: fine")
    result = evals.pytest("--assay-judge", "nope")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*ERROR at setup of a*", "*'nope'*"])
    assert not evals.asked


class TestGate:
    @pytest.fixture(autouse=True)
    def baseline(self, evals: Evals) -> None:
        evals.cases("a: fine", "b: fine", "c: wrong")
        evals.pytest()
        evals.baseline()

    def test_no_case_got_worse(self, evals: Evals) -> None:
        result = evals.pytest("--assay-baseline", "main", "-rA")
        assert result.ret == pytest.ExitCode.OK
        assert summary(result) == [
            "PASSED evals/a.eval.yaml::a",
            "PASSED evals/a.eval.yaml::b",
            "PASSED assay::gate",
            "XFAIL evals/a.eval.yaml::c",
        ]
        result.stdout.fnmatch_lines(["XFAIL evals/a.eval.yaml::c - failed before too"])

    def test_a_loss_fails_the_gate_only(self, evals: Evals) -> None:
        evals.write("agent.py", AGENT.replace('"response": question', '"response": "oops"'))
        sys.modules.pop("agent", None)
        result = evals.pytest("--assay-baseline", "main", "-rA")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.assert_outcomes(failed=1, xfailed=3)
        result.stdout.fnmatch_lines(
            [
                "failed: 0 of 3 judged cases passed; against main*",
                "2 lost cases failed every re-ask",
                "XFAIL evals/a.eval.yaml::a - see assay::gate",
                "FAILED assay::gate*",
            ]
        )

    def test_an_added_case_fails_as_usual(self, evals: Evals) -> None:
        evals.cases("a: fine", "b: fine", "c: wrong", "d: wrong")
        result = evals.pytest("--assay-baseline", "main", "-rA")
        result.assert_outcomes(passed=2, failed=2, xfailed=1)
        assert summary(result)[-2:] == ["FAILED evals/a.eval.yaml::d", "FAILED assay::gate"]

    def test_a_pass_rate_covers_cases_without_a_baseline(self, evals: Evals) -> None:
        evals.cases("a: fine", "b: fine", "c: wrong", "d: wrong")
        options = ["--assay-baseline", "main", "--assay-min-pass-rate", "0"]
        result = evals.pytest(*options)
        assert result.ret == pytest.ExitCode.OK
        result.assert_outcomes(passed=3, xfailed=2)

    def test_a_pass_rate_without_a_baseline(self, evals: Evals) -> None:
        result = evals.pytest("--assay-min-pass-rate", "0.6")
        result.assert_outcomes(passed=3, xfailed=1)
        result = evals.pytest("--assay-min-pass-rate", "0.7")
        result.assert_outcomes(passed=2, failed=1, xfailed=1)
        result.stdout.fnmatch_lines(["2 of 3 judged cases passed; 70 % required"])

    def test_it_can_be_deselected(self, evals: Evals) -> None:
        options = ["--assay-baseline", "main", "--deselect", "assay::gate"]
        evals.pytest(*options).assert_outcomes(passed=2, xfailed=1)

    def test_an_undecided_gate_passes_with_a_warning(self, evals: Evals) -> None:
        options = ["--assay-baseline", "main", "--assay-confirm", "0"]
        evals.cases("a: wrong", "b: fine", "c: wrong")
        evals.write("agent.py", AGENT.replace('"response": question', '"response": "wrong"'))
        evals.cases("a: fine", "b: fine", "c: wrong")
        sys.modules.pop("agent", None)
        result = evals.pytest(*options)
        assert result.ret == pytest.ExitCode.OK
        result.assert_outcomes(passed=1, xfailed=3, warnings=1)
        result.stdout.fnmatch_lines(["*AssayWarning: inconclusive*"])
        result = evals.pytest(*options, "--assay-strict")
        result.assert_outcomes(failed=1, xfailed=3)


def test_the_project_of_init_works(pytester: pytest.Pytester) -> None:
    write_project(pytester.path, pytest=True)
    result = pytester.runpytest_inprocess(*APART)
    result.assert_outcomes(passed=5, skipped=1)
    assert result.ret == pytest.ExitCode.OK


def test_init_replaces_no_configuration_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]")
    names = [file.name for file in write_project(pytester.path, pytest=True)]
    assert "test_agent.py" in names
    assert "pytest.ini" not in names


def test_workers_of_xdist_ask_nothing_twice(evals: Evals) -> None:
    evals.cases(*(f"c{number}: fine" for number in range(12)), "d: wrong")
    evals.pytest()
    evals.baseline()
    result = evals.pytest("-n", "2", "--assay-baseline", "main")
    result.assert_outcomes(passed=13, xfailed=1)
    assert evals.asked == {"fine": 12, "wrong": 1}
    assert len(evals.runs) == 2
    assert result.stdout.str().count("none lost") == 1


def test_workers_of_xdist_ask_only_selected_cases(evals: Evals) -> None:
    evals.write("evals/a.eval.yaml", SUITE)
    options = ["-n", "2", "--strict-markers", "-m", "quick or slow", "--junitxml", "out.xml"]
    evals.pytest(*options).assert_outcomes(passed=1, failed=1)
    assert evals.asked == {"fine": 1, "wrong": 1}
    found = ElementTree.parse(evals.root / "out.xml").iter("testcase")
    assert sorted(case.attrib["name"] for case in found) == ["bad", "good"]
    evals.pytest("-n", "2", "--lf").assert_outcomes(failed=1)
    assert evals.asked == {"wrong": 1}
    evals.pytest("-n", "2", "-k", "bad or broken", "--deselect", "evals/a.eval.yaml::bad")
    assert evals.asked == {"break": 1}
    evals.pytest("-n", "2", "--co")
    assert not evals.asked


@pytest.mark.full
def test_maxfail_with_workers_of_xdist_cancels_the_run(evals: Evals) -> None:
    evals.write("conftest.py", RELEASES)
    evals.cases("a: wrong", "b: wrong", *(f"c{number}: wait" for number in range(40)))
    evals.pytest("-n", "2", "--maxfail", "1", "--assay-workers", "2", "--assay-seed", "0")
    assert evals.runs[0].status == "interrupted"
    assert max(evals.asked.values()) < 40


def test_a_project_that_does_not_use_it_loads_nothing(pytester: pytest.Pytester) -> None:
    code = """
        import sys

        def test_it():
            assert "_assay_pytest" in sys.modules
            loaded = {name.split(".")[0] for name in sys.modules}
            assert not loaded & {"assay", "msgspec", "pydantic", "multiprocessing"}
    """
    pytester.makepyfile(code)
    pytester.makefile(".toml", data="a = 1")
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1)
    pytester.runpytest_subprocess("-p", "no:xdist", "--assay", "-k", "test_it").assert_outcomes(
        passed=1
    )


@pytest.mark.full
def test_ten_thousand_items(evals: Evals) -> None:
    evals.cases(*(f"c{number}: fine" for number in range(10_000)))
    evals.pytest("-q").assert_outcomes(passed=10_000)
    assert sum(evals.asked.values()) == 10_000


@pytest.mark.full
def test_four_workers_and_exitfirst(evals: Evals) -> None:
    evals.cases(*(f"c{number}: fine" for number in range(40)))
    evals.pytest("-n", "4").assert_outcomes(passed=40)
    assert evals.asked == {"fine": 40}
