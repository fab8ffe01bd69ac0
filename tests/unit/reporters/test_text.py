"""The report on a terminal: what it says, in which order, and how wide.

The texts in `goldens` are whole reports. Read them when they change.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from assay.model.comparison import CaseRef, Comparison, Loss, Reasks
from assay.model.run_result import RunResult
from assay.reporters import text
from assay.text import columns
from unit.sample_runs import (
    BRAGA,
    EVORA,
    FARO,
    LISBON,
    PORTO,
    entry,
    mixed_run,
    run,
    suite,
    summary,
    trajectory,
    written,
)

GOLDENS = Path(__file__).parents[1] / "goldens"


def all_errored() -> RunResult:
    cases = [entry(f"case-{n}", "errored", "connection refused", line=n) for n in range(1, 4)]
    return run(suite(*cases), reasons=("coverage is 0 %, below 100 %",))


def hostile() -> RunResult:
    evil = "\x1b[2J\x1b]0;owned\x07\r::error::x\n##vso[task.setvariable]\u202eabc\ud800"
    case = entry(
        "::error::an\nid",
        "failed",
        "::set-output name=x::y",
        "ends with \x1b[31m red and \r\n two lines",
        "wide " + "日本語の長い答え" * 8,
        line=1,
        description="##[error]one\x00",
        evaluators=[
            trajectory(
                {
                    "status": "wrong_args",
                    "expected": {"tool": "t", "args": {"a": 1}},
                    "actual": {"tool": "t", "args": {"a": 2}},
                    "differences": [{"path": "::error::p", "expected": 1, "actual": 2}],
                },
                name="##[add-mask]",
            )
        ],
    )
    bad = suite(case, name="::warning::name", staleness_warnings=[evil], notes=[evil])
    loss = Loss(*CaseRef(bad.file, "::error::an\nid"), "repeated", False, Reasks(), evil)
    comparison = Comparison(
        evil, "x", "inconclusive", 1, "failed", losses=(loss,), explanation=evil, warnings=(evil,)
    )
    return run(bad, comparison=comparison, reasons=(evil,), notes=(evil,), folder=evil)


RUNS: dict[str, Callable[[], RunResult]] = {
    "mixed": mixed_run,
    "passed": lambda: run(suite(LISBON, entry("oeiras")), reasons=("every case passed",)),
    "errored": all_errored,
    "hostile": hostile,
    "empty": lambda: run(exit_code=5, reasons=("no case was selected",)),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_report_reads_like_this(name: str) -> None:
    assert written("text", RUNS[name]()) == (GOLDENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_wider_than_a_page_or_moves_the_cursor(name: str) -> None:
    for line in written("text", RUNS[name]()).splitlines():
        assert columns(line) <= 100
        assert line.isprintable()


def test_no_build_server_obeys_what_others_wrote() -> None:
    lines = written("text", hostile()).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::")]
    assert not [line for line in lines if "##[" in line or "##vso[" in line]


def test_only_the_first_hundred_failures_are_told_and_the_rest_is_counted() -> None:
    cases = [entry(f"f{n}", "failed", f"wrong {n}") for n in range(130)]
    cases += [entry(f"e{n}", "errored", f"broken {n}") for n in range(101)]
    report = written("text", run(suite(*cases)))
    assert report.count("\nFAILED evals") + report.startswith("FAILED evals") == 100
    assert "and 30 more failed cases\n" in report
    assert report.count("ERRORED evals") == 100
    assert "and 1 more errored case\n" in report


def test_a_reason_that_cases_share_is_told_once() -> None:
    cases = [entry(f"e{n}", "errored", "nobody there", line=n) for n in range(1, 15)]
    cases.insert(1, entry("other", "errored", "it broke", line=99))
    lines = written("text", run(suite(*cases))).splitlines()
    place = "ERRORED evals/weather.eval.yaml"
    assert lines[2:17] == [
        *[f"{place}:{n} e{n}" for n in range(1, 11)],
        "and 4 more errored cases for the same reason",
        "  - nobody there",
        "",
        f"{place}:99 other",
        "  - it broke",
    ]


def test_it_is_told_when_the_gate_passed_although_a_case_failed() -> None:
    same = Comparison("main", "x", "inconclusive", 2, "passed")
    failing = suite(entry("a", "failed", "wrong"))
    assert "\n  gate regression: passed\n" in written("text", run(failing, comparison=same))
    assert "\n- gate regression: passed\n" in written("md", run(failing, comparison=same))


def test_inconclusive_leads_the_report() -> None:
    other = Comparison("main", "x", "not_comparable", 0, "inconclusive")
    report = written("text", run(suite(entry("a")), comparison=other))
    assert report.startswith("INCONCLUSIVE: 1 of 1 judged case passed; against main: none lost")
    assert "\nINCONCLUSIVE (exit code 0)\n" in report
    summary = written("md", run(suite(entry("a")), comparison=other))
    assert summary.startswith("## Assay: inconclusive\n")


def test_a_loss_is_printed_once_and_cases_that_failed_before_are_marked() -> None:
    ref = CaseRef("evals/weather.eval.yaml", "lost")
    loss = Loss(*ref, "repeated", False, Reasks(0, 5, 0), "passed before, fails now: it repeats")
    old = CaseRef("evals/weather.eval.yaml", "old")
    compared = Comparison(
        "main",
        "x",
        "regressed",
        2,
        "failed",
        losses=(loss,),
        regressions=(ref,),
        still_failing=(old,),
    )
    cases = [entry(name, "failed", f"wrong {name}") for name in ("lost", "old")]
    found = run(suite(*cases), comparison=compared, exit_code=1, reasons=("1 loss",))
    for name in ("text", "md", "xml", "github"):
        report = written(name, found)
        # JUnit has its reasons as a message and as a text.
        assert report.count("passed before, fails now: it repeats") == (2 if name == "xml" else 1)
        assert "failed before too" in report


def test_every_loss_is_shown_among_many_failures() -> None:
    cases = [entry(f"old{n}", "failed", f"wrong {n}") for n in range(300)]
    cases.append(entry("lost", "failed", "new trouble"))
    ref = CaseRef("evals/weather.eval.yaml", "lost")
    loss = Loss(*ref, "unconfirmed", False, Reasks(), "passed before, fails now: not confirmed")
    compared = Comparison("main", "x", "unchanged", 301, "inconclusive", losses=(loss,))
    report = written("text", run(suite(*cases), comparison=compared))
    assert "passed before, fails now: not confirmed\n  - new trouble\n" in report
    assert "and 200 more failed cases\n" in report


def test_reasons_steps_skips_lists_and_notes_beyond_measure_are_counted() -> None:
    step = {"status": "missing", "expected": {"tool": "search"}}
    many = entry(
        "many", "failed", *(f"r{n}" for n in range(25)), evaluators=[trajectory(*[step] * 45)]
    )
    skips = [entry(f"s{n}", "skipped", f"reason {n}") for n in range(25)]
    refs = tuple(CaseRef("", f"c{n}") for n in range(25))
    report = written(
        "text",
        run(
            suite(many, *skips),
            comparison=Comparison("main", "x", "unchanged", 25, "passed", added=refs),
            notes=tuple(f"n{n}" for n in range(25)),
            reasons=tuple(f"why {n}" for n in range(25)),
        ),
    )
    assert "  - and 5 more reasons\n" in report
    assert "    and 5 more steps\n" in report
    assert "  5: other reasons\n" in report
    assert "added (25):\n" in report
    assert "    and 5 more\n" in report
    assert "and 5 more warnings and notes\n" in report
    assert report.endswith("  and 5 more\n")


def test_the_trajectory_of_a_member_of_a_composite_is_drawn_and_a_matched_one_is_not() -> None:
    missing = trajectory({"status": "missing", "expected": {"tool": "search"}}, name="path")
    fine = trajectory({"status": "matched", "actual": {"tool": "search"}}, name="fine")
    both = {"name": "both", "type": "composite", "details": {"members": [missing, fine]}}
    report = written("text", run(suite(entry("a", "failed", "wrong", evaluators=[both, fine]))))
    assert "  trajectory of both: path:\n    - search\n" in report
    assert "fine" not in report


def on_a_screen_of(columns: int, run: RunResult, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("assay.reporters.terminal._width", lambda out: columns)
    return shown(run, Screen()).splitlines()


def test_on_a_narrow_terminal_numbers_are_whole_and_reasons_take_three_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = entry(
        "oslo", "failed", "found " + "word " * 50 + "at last", description="what it is " * 9
    )
    gate = Comparison("main", "x", "regressed", 1, "failed", explanation="why " * 15 + "a-b")
    lines = on_a_screen_of(
        60,
        run(
            suite(case, entry("faro", "errored", "broken")),
            statistics={"coverage": {"judged": 1, "planned": 2, "worst": 0.25, "best": 0.75}},
            comparison=gate,
            folder="/a/folder/whose/name/is/copied/" + "x" * 60,
        ),
        monkeypatch,
    )
    assert max(len(line) for line in lines if not line.startswith("Results")) <= 60
    reason = next(index for index, line in enumerate(lines) if line.startswith("  - found"))
    assert " ... " in lines[reason + 1]
    assert lines[reason + 2].endswith("word at last")
    assert not lines[reason + 3].startswith("    word")
    coverage = next(index for index, line in enumerate(lines) if line.startswith("Coverage"))
    assert lines[coverage + 1] == "           between 25 % and 75 %"
    assert any(line.endswith(" a-b") for line in lines)
    assert "Results    /a/folder/whose/name/is/copied/" + "x" * 60 in lines


def test_the_id_of_a_run_is_whole_on_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = run(suite(entry("a", "passed")))
    assert f"Run        {passed.id}" in on_a_screen_of(40, passed, monkeypatch)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("main", "main (0198c0de-1)"),
        ("de", "de (0198c0de-1)"),
        ("0198c0de", "0198c0de-1"),
        (None, "0198c0de-1"),
    ],
)
def test_the_baseline_is_called_as_the_user_called_it(asked: str | None, told: str) -> None:
    found = run(suite(LISBON), comparison=Comparison("0198c0de-1", "x", "unchanged", 1, "passed"))
    found = replace(found, record=replace(found.record, options={"baseline": asked}))
    assert f"AGAINST {told}: none lost, 0 new passes\n" in written("text", found)


def test_the_id_of_a_case_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    case = entry("a-very-long-id-" * 6 + "end", "failed", "wrong", description="left out")
    lines = on_a_screen_of(60, run(suite(case)), monkeypatch)
    assert lines[2].endswith("-end")


def test_a_case_without_a_reason_says_so() -> None:
    assert "  - no reason was given\n" in written("text", run(suite(entry("a", "failed"))))


def test_costs_of_target_and_judges_are_told_apart() -> None:
    counts = summary([LISBON], estimated_cost_usd=1.5, judge_cost_usd=0.00001)
    cheap = suite(LISBON, summary=counts)
    assert "Cost       $1.50 target, under $0.0001 judges\n" in written("text", run(cheap))
    assert "Cost" not in written("text", run(suite(LISBON)))


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def shown(run: RunResult, screen: Screen) -> str:
    text.write(run, screen)
    return screen.getvalue()


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    coloured = shown(mixed_run(), Screen())
    assert "\x1b[31;1mFAILED evals" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(mixed_run(), Screen()) == written("text", mixed_run())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert shown(mixed_run(), Screen()) == written("text", mixed_run())


def test_a_terminal_that_knows_few_characters_gets_escapes() -> None:
    case = entry("a", "failed", "expected 'café ☃'")
    assert "  - expected 'caf\\xe9 \\u2603'" in shown(run(suite(case)), Screen("ascii"))
    assert "  - expected 'café \\u2603'" in shown(run(suite(case)), Screen("cp1252"))


def test_a_suite_is_not_read_when_nothing_in_it_is_told() -> None:
    def unreadable() -> Any:
        raise AssertionError("read")

    quiet = suite(LISBON, entries=unreadable)
    assert "PASSED" in written("text", run(quiet))


def test_a_suite_is_read_no_further_than_needed() -> None:
    def broken_after_the_failure() -> Any:
        yield from suite(PORTO, FARO, EVORA, BRAGA).entries()
        raise AssertionError("read on")

    one = suite(PORTO, FARO, EVORA, BRAGA, LISBON, entries=broken_after_the_failure)
    assert "FAILED evals/weather.eval.yaml:9 porto" in written("text", run(one))
